// Package certs makes the keys and certificates of a cluster: the cluster's
// authority and the identities below it, the front proxy's, the key that
// signs service account tokens, and the authority of Copse's API server.
//
// They are kept in the state folder: a cluster that is started again over its
// old data needs the same service account key and is trusted by the same
// kubeconfig files.
package certs
