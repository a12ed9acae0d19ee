package components

import (
	"fmt"
	"path/filepath"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// Names of the components, in cluster.json and on the command line.
const (
	Etcd                   = "etcd"
	KubeAPIServer          = "kube-apiserver"
	KubeControllerManager  = "kube-controller-manager"
	KubeScheduler          = "kube-scheduler"
	KWOK                   = "kwok"
	Containerd             = "containerd"
	PodGateway             = "pod-gateway"
	Kubelet                = "kubelet"
	CopseEtcd              = "copse-etcd"
	CopseAPIServer         = "copse-apiserver"
	CopseControllerManager = "copse-controller-manager"
)

// Address ranges that do not overlap. Nothing routes to them.
const (
	serviceRange = "10.0.0.0/16"
	podRange     = "10.64.0.0/10"

	// serviceIP is the address of the Service "kubernetes", the first of the range.
	serviceIP = "10.0.0.1"
)

// Config is what the flags depend on.
type Config struct {
	// Dir is the state folder.
	Dir state.Dir
	// BinDir is the folder of the programs.
	BinDir string
	// Port and ExtraPort are the ports by component, see state.Component.
	Port, ExtraPort map[string]int
	// WebhookPort is where copse-controller-manager serves its webhook.
	WebhookPort int
	// Node is the real node, if there is one, and PluginDir is where the
	// machine has the CNI plugins for it.
	Node      state.RealNode
	PluginDir string
	// Verbosity is the level of the logs.
	Verbosity int
	// ExtraArgs by component are added to the flags, as the last ones.
	ExtraArgs map[string][]string
}

// Component is a program and how it is called.
type Component struct {
	Name string
	Path string
	Args []string
	// Info is what others need to know.
	Info state.Component
}

// Parts are what a cluster can have or not.
type Parts struct {
	KWOK, RealNode, Copse bool
}

// Names lists the components of a cluster in the order in which they start.
func Names(p Parts) []string {
	names := []string{Etcd, KubeAPIServer, KubeControllerManager, KubeScheduler}
	if p.KWOK {
		names = append(names, KWOK)
	}
	if p.RealNode {
		names = append(names, Containerd, PodGateway, Kubelet)
	}
	if p.Copse {
		names = append(names, CopseEtcd, CopseAPIServer, CopseControllerManager)
	}
	return names
}

// NeedsExtraPort returns whether a component listens on a second port.
func NeedsExtraPort(name string) bool {
	return name == Etcd || name == CopseEtcd || name == Kubelet || name == CopseControllerManager
}

// New describes the component of that name.
func New(name string, c Config) (Component, error) {
	describe, ok := map[string]func(Config) Component{
		Etcd:                   func(c Config) Component { return etcd(Etcd, c) },
		CopseEtcd:              func(c Config) Component { return etcd(CopseEtcd, c) },
		KubeAPIServer:          kubeAPIServer,
		KubeControllerManager:  kubeControllerManager,
		KubeScheduler:          kubeScheduler,
		KWOK:                   kwok,
		Containerd:             containerd,
		PodGateway:             podGateway,
		Kubelet:                kubelet,
		CopseAPIServer:         copseAPIServer,
		CopseControllerManager: copseControllerManager,
	}[name]
	if !ok {
		return Component{}, fmt.Errorf("no component %q", name)
	}
	d := describe(c)
	d.Name = name
	d.Args = append(d.Args, c.ExtraArgs[name]...)
	d.Info.Port = c.Port[name]
	d.Info.ExtraPort = c.ExtraPort[name]
	if name == CopseControllerManager {
		d.Info.WebhookPort = c.WebhookPort
	}
	d.Info.Log = c.Dir.Log(name)
	return d, nil
}

func (c Config) program(name string) string {
	return filepath.Join(c.BinDir, name)
}

// ServiceIP is the address of the Service "kubernetes". With a real node it is
// one that pods can reach.
func (c Config) ServiceIP() string {
	if c.Node.Exists() {
		return c.Node.APIHost
	}
	return serviceIP
}

func (c Config) serviceRange() string {
	if c.Node.Exists() {
		return c.Node.ServiceRange
	}
	return serviceRange
}

// Server is the URL of kube-apiserver.
func (c Config) Server() string { return c.https(KubeAPIServer) }

func (c Config) https(name string) string {
	return fmt.Sprintf("https://127.0.0.1:%d", c.Port[name])
}

func (c Config) http(name string) string {
	return fmt.Sprintf("http://127.0.0.1:%d", c.Port[name])
}

func (c Config) extraHTTP(name string) string {
	return fmt.Sprintf("http://127.0.0.1:%d", c.ExtraPort[name])
}

// flag formats a flag with its value.
func flag(name string, value any) string {
	return fmt.Sprintf("--%s=%v", name, value)
}
