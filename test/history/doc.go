// Package history checks a workload on every revision of its objects, and not only in
// its end state.
//
// A Recorder watches PodCliqueSets, PodCliques, PodCliqueScalingGroups, StartGates,
// PodGangs and PodGroups in Copse's API, and pods, Services, ConfigMaps and PodGroups of the
// native scheduler in the cluster's, all of one namespace, from before the workload is applied.
// Each event is one Revision of the Log. Check is a pure function from a Log to what is
// wrong with it, one file per group of invariants.
//
// # What the order of two revisions is worth
//
// Revisions of one server are ordered exactly, by resourceVersion: each of the two
// servers has one etcd, whose revision that is. (Comparing them is legal since
// Kubernetes 1.35.) What the watch of one kind delivers late thus does no harm.
//
// Between the two servers there is no order but arrival, and arrival can be swapped by
// latency. So the Recorder sets fences: after a revision of one server has arrived it
// lists the other server with limit 1, and keeps the resourceVersion of the answer. The
// list reads the latest state, so whatever has a higher resourceVersion there was
// written after the list began, hence after the revision that came before it. That, and
// nothing else, is called "certainly after" here, and checks report only what is wrong
// in every order that the fences leave open. A decision that is recorded after the act
// is found unless it follows within the latency of the event and the list, some ten
// milliseconds; one that is never recorded is always found. Both directions are sound:
// no latency, and no server that is down for a while, makes a violation out of a correct
// history.
//
// Fences are set at most every 20 ms, and one at the end.
//
// Where a check compares a revision with a time (delays, deadlines), the revision was
// written at the latest when it, or a later one of its server, arrived. Times that are
// stored in objects are whole seconds rounded down; checks allow for that second where
// the controllers may, and not where they must not. The clock of the controllers has to
// be the clock of the test.
//
// # What is not known
//
// A watch that ends is resumed from its last resourceVersion. When the server does not
// have that any more (410: it was restarted), the kind is listed anew and the Log has a
// Gap: revisions in between are missing. Checks that would need one of them report that
// they were not judged, instead of passing.
//
// Deletions carry no author. A deletion of a pod is explained by a recorded decision, by
// the pod's DisruptionTarget condition, or by the test, which says what a user deletes
// (UserDeletes). The framework does so for kubectl delete.
package history
