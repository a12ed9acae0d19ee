package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Cluster is the content of cluster.json. All paths are absolute. It is
// written before the first component starts; the file "ready" next to it says
// when the cluster can be used.
type Cluster struct {
	// Dir is the state folder.
	Dir string `json:"dir"`
	// BinDir is where the programs are, kubectl among them.
	BinDir string `json:"binDir"`
	// PID is the process id of the supervisor.
	PID int `json:"pid"`
	// Started is when the supervisor started.
	Started time.Time `json:"started"`

	// Server is the URL of kube-apiserver.
	Server string `json:"server"`
	// Kubeconfig is the file of an administrator (system:masters).
	Kubeconfig string `json:"kubeconfig"`
	// CertDir holds the keys and certificates, CAFile among them.
	CertDir string `json:"certDir"`
	// CAFile is the authority of kube-apiserver and of the serving
	// certificates of kube-controller-manager and kube-scheduler.
	CAFile string `json:"caFile"`
	// ControlSocket is the supervisor's unix socket. It speaks HTTP.
	ControlSocket string `json:"controlSocket"`

	// Nodes is the number of nodes that were made at the start.
	Nodes int `json:"nodes"`
	// Copse says whether Copse runs in the cluster.
	Copse bool `json:"copse"`
	// RealNode is the node with containers, if there is one.
	RealNode RealNode `json:"realNode,omitzero"`
	// Components by name: etcd, kube-apiserver, kube-controller-manager,
	// kube-scheduler, kwok; with a real node containerd, pod-gateway, kubelet;
	// with Copse copse-etcd, copse-apiserver, copse-controller-manager.
	Components map[string]Component `json:"components"`
}

// Component is one program of the cluster.
type Component struct {
	// Port is where it listens on 127.0.0.1, or of a real node at the node's
	// address. It is the same after a restart.
	Port int `json:"port"`
	// ExtraPort is etcd's peer port, or the health port of the kubelet or of
	// copse-controller-manager, whose Port is that of its metrics.
	ExtraPort int `json:"extraPort,omitempty"`
	// WebhookPort is where copse-controller-manager serves its webhook.
	WebhookPort int `json:"webhookPort,omitempty"`
	// URL is what clients connect to.
	URL string `json:"url"`
	// Health is the URL that answers 200 when the component can do its work.
	Health string `json:"health"`
	// Metrics is the URL of its metrics. The administrator's certificate is
	// accepted wherever metrics need one.
	Metrics string `json:"metrics"`
	// Log is the file with the output of all its processes.
	Log string `json:"log"`
	// Kubeconfig is what it connects to kube-apiserver with, if it does.
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

// Load reads cluster.json. A folder without one gives an empty Cluster.
func (d Dir) Load() (Cluster, error) {
	var c Cluster
	data, err := os.ReadFile(d.ClusterFile())
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%s: %w", d.ClusterFile(), err)
	}
	return c, nil
}

// Save writes cluster.json. Readers see the old file or the new one.
func (d Dir) Save(c Cluster) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(d.ClusterFile(), append(data, '\n'))
}

func writeWhole(path string, data []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
