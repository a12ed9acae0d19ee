// Package supervisor keeps processes running, as a kubelet does with static
// pods: one that ends is started again after a back-off, one that is stopped
// on request stays down until it is started.
//
// No process outlives its supervisor, however that ends.
package supervisor
