// Package storageguard keeps the API server shut while its etcd may not be the one that
// the pods of the cluster belong to (D25). Owners live in Copse's etcd and pods in the
// cluster's: one wrong "not found" from this server, and the garbage collector deletes
// pods that run.
//
// The same random id is kept in etcd and in a ConfigMap of the cluster, which also holds
// the highest revision of etcd that was seen. Decide says what follows from what was
// read; it is pure. Guard reads, acts on the decision and tells it; its handler answers
// requests while the server is shut, and looks once more before an answer says that
// something does not exist.
package storageguard
