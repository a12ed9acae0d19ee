// Package bootstrap brings a cluster up, step by step: the state folder, the
// control plane, the nodes and Copse. Then it keeps all that running until it
// is told to stop.
package bootstrap
