// Package recovery reads and writes what a PodClique's status.recoveredIndexes tells of one
// index: "12x2@2026-11-29T04:57:56Z/dc4c7c9e" is index 12, which failed twice in a row and
// has been well since that time; the UID of the pod that failed last begins with dc4c7c9e.
// It is what the next failure of the index needs (D8), in a sixth of the room of an entry of
// status.failedIndexes: the status of a set of hundreds of pods that fail and recover is
// written again with each of them.
package recovery
