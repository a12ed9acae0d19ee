// Package admission puts pods into their groups while they are being created: Kubernetes'
// own scheduler takes them at no other time. It is the webhook's side of the pod grouper. It
// writes nothing but the pod that it is asked about, so it can be asked any number of times.
package admission
