// Package servingcert keeps the certificate of a webhook's server: an authority of its own
// and a serving certificate, in a Secret that all replicas share, and the authorities that
// the cluster trusts, in the webhook's configuration. Each is renewed long before its end,
// and an authority is trusted long before anything is signed by it, so nobody waits for a
// renewal or notices one. Nothing has to be mounted or restarted.
package servingcert
