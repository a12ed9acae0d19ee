// Package copse installs Copse in a cluster: it applies the project's own
// manifests, changed only where Copse's programs run outside of the cluster,
// and gives each program the token of its service account.
package copse
