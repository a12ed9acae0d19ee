package state

import "path/filepath"

// RealNode is the node with a kubelet and containers.
type RealNode struct {
	// Name of the Node object.
	Name string `json:"name"`
	// Number tells the real nodes of this machine apart, in all that they share.
	Number int `json:"number"`
	// Bridge is the network interface that the pods are connected to.
	Bridge string `json:"bridge"`
	// Cgroup holds all containers. It is below the top of each hierarchy.
	Cgroup string `json:"cgroup"`
	// PodRange is where pods get their addresses from, and Address the first of
	// them: that of the node.
	PodRange string `json:"podRange"`
	Address  string `json:"address"`
	// ServiceRange is where Services get theirs from.
	ServiceRange string `json:"serviceRange"`
	// APIHost and APIPort are where pods reach kube-apiserver: the address of
	// the Service "kubernetes", which every container finds in its environment.
	// It can be reached while the component pod-gateway runs.
	APIHost string `json:"apiHost"`
	APIPort int    `json:"apiPort"`
	// Image is that of the program hack/cluster/cmd/testpod.
	Image string `json:"image"`
}

// Exists returns whether there is a real node.
func (n RealNode) Exists() bool { return n.Name != "" }

// Node is a file or folder of the real node.
func (d Dir) Node(elem ...string) string {
	return filepath.Join(append([]string{string(d), "node"}, elem...)...)
}

// Containerd is the socket of containerd. Its path is how the processes that
// belong to it are told from those of another one.
func (d Dir) Containerd() string { return d.Node("containerd.sock") }
