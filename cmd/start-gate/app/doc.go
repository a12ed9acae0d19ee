// Package app is the waiter of a pod: its flags, how it learns that its gate is open, and
// how it ends.
//
// There are two signals, and whichever comes first counts (D21). The StartGate of the
// pod's replica is watched through the API, which takes less than a second from the
// controller's write to the exit. The file of a mounted ConfigMap says the same up to a
// minute later, and needs no way from the pod to the API. Both carry the attempt, so that
// what was opened for an earlier one lets nobody pass.
//
// A waiter reads one object and writes none. It runs once in every pod of a gang, next to
// containers that pay for an accelerator, so it is small: it speaks to the API with net/http
// and declares the few fields that it reads. With the API types of pkg/apis the stripped
// binary is 10.4 MB, and with client-go's dynamic client 10.7 MB, in place of less than 7 MB.
// Of apimachinery it takes what costs next to nothing: back-off, and the rules of names.
package app
