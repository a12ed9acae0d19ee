// Package realnode prepares this machine for a node with real containers, and
// takes all that back: a kubelet, containerd and runc run pods on it.
//
// What a node needs of a machine is either below the cluster's state folder or
// carries the node's number, so that any number of them run side by side and
// next to a Kubernetes or a containerd that the machine has anyway:
//
//   - Mounts, and the folders with fixed names that kubelet and containerd use,
//     are seen by the cluster's own processes alone (mounts.go).
//   - Pods are connected to a bridge, and through it to the cluster's API and
//     to nothing else (bridge.go). No packet is forwarded or rewritten, so no
//     rule of a firewall is needed.
//   - Containers are below one control group, by which they are found and
//     killed when nobody else is left to do it (cgroup.go).
//
// Neither containers nor their shims die with containerd or the supervisor:
// Clean ends them.
package realnode
