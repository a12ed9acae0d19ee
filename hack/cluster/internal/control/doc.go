// Package control is how a command talks to the supervisor of a cluster: HTTP
// over a unix socket in the state folder.
//
//	GET  /status                       the state of the cluster
//	POST /components/{name}/stop       ?grace=30s
//	POST /components/{name}/start      answers when the component is healthy
//	POST /components/{name}/kill
//	POST /shutdown                     answers at once
package control
