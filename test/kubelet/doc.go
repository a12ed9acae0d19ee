// Package kubelet runs sets whose containers are real: a kubelet, containerd and runc run
// them on a node of their own, and so exit codes, kills for want of memory, crash loops,
// probes, init containers and the end of a pod on SIGTERM are those that users get. Where
// KWOK plays pods, a test says what happens; here it happens.
//
// The cluster is shared. Its real node is called kubelet-0, is labelled and tainted
// type=kubelet, and is all that pods of these tests tolerate (workload_test.go); any other
// pod goes to nodes that KWOK plays. Containers run the program of hack/cluster/cmd/testpod,
// which takes steps as arguments; other images come from archives or folders through
// Cluster.LoadImage, with imagePullPolicy Never: there is no registry.
//
// Pods reach kube-apiserver, by the address that is in every container's environment.
// Cluster.Stop with framework.PodGateway cuts all pods off, connections that they have
// included, while the kubelet goes on: what it mounts follows within two seconds, for it
// looks at each pod once a second here. (That is the kubelet's flag --sync-frequency, a
// minute by default: --component-args=kubelet=--sync-frequency=1m.) A test that does so
// does not call t.Parallel.
//
// Where a machine lacks what that needs, such as root, all tests are skipped and say what
// it lacks; "cluster preflight" says it as well.
package kubelet
