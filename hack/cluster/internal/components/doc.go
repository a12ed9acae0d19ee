// Package components says how each program of a cluster is called: its flags,
// its health and its metrics are a function of one Config. Nothing here starts
// anything or touches a file.
//
// One file per program. Flags that only repeat a default are left out; each
// that is here says why, unless its name does.
package components
