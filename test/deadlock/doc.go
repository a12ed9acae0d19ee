// Package deadlock hunts for sets that wait for ever. Sets are drawn by lot (test/lots),
// brought through the server's defaults and validation, and those that are admitted live
// until nothing happens any more. Then every pod has started, or the set has failed and
// says why, or it waits for room and says so. Anything else is found, and printed with the
// seed that draws it again.
//
// What is hunted is the engine: the decisions of pkg/gang, the plan of the replica
// controller and the events that it hears, and the API server's strategies, which judge each
// status that is written. The reads and writes around them are played here, one pass at a
// time, and so are nodes with little room, a scheduler of gangs, kubelets and waiters; pods
// that fail, vanish, turn bad or take long; and a user who adds copies to scaling groups. Whose
// turn it is, is drawn by lot as well. Caches that lag, crashes and two leaders are left to
// test/chaos, which is slower by a factor of ten.
//
// Who may wait for what is said once more in record.go, in terms of the pods themselves.
package deadlock
