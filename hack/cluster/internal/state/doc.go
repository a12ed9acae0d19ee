// Package state says what is where in the state folder of a cluster, and
// holds the file cluster.json, by which other programs find the cluster's
// parts.
package state
