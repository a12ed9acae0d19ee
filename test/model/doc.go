// Package model explores, state by state, what the decisions of pkg/gang lead to when
// everything around them goes wrong. The world is small: one Training set of one or two
// cliques with three pods in all, a few restarts, a leader and a second controller that
// believes to lead. The decisions are made by the very functions that the controllers
// call; what the controllers do around them (reading caches, reading live, writing with
// a version, making and deleting pods by UID) is modelled here, in small steps that
// interleave freely:
//
//   - each controller sees sets, cliques and pods through three caches of its own; each
//     may stop to follow at any moment and for any time;
//   - a pass looks whenever it likes, so an event that is never delivered is one that a
//     pass does not follow;
//   - a write of a status succeeds only on the version that was read, and only if the
//     server's validation accepts it;
//   - what follows a live read happens later, one pod at a time, and a controller may
//     crash before each of these steps;
//   - pods become Ready, fail, succeed, flap, are deleted by a user and terminate when
//     they like, and exit with anything when they are told to stop; a user may delete the set;
//   - with a start barrier pods come to it when they like, and pass it once the gate says so
//     of their attempt. The gate is not cached: a write by an older one is a conflict.
//
// Faults have budgets, so that the space is finite; a Config sets them. The search goes
// breadth first, so a violation comes with a shortest trace, as names of actions that
// TestReplay takes.
//
// Every so often a state is run to its end without faults: the set has to end, nothing may
// be left below it, and whoever has something to do because time has passed must have asked
// to be woken.
//
// Two pods of one index and attempt cannot exist, here as in a cluster: they would have
// one name. The second controller also stands for requests that a dead process has left on
// their way. Not modelled: scaling groups and Inference, gangs and scheduling, scaling,
// updates, and events that get lost for good.
package model
