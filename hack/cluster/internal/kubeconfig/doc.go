// Package kubeconfig writes the kubeconfig files of a cluster. They hold
// certificates and tokens themselves, so that a file works wherever it is
// copied to.
package kubeconfig
