// Package nodes makes the nodes of a cluster: plain Node objects, which KWOK
// plays the kubelet of.
package nodes
