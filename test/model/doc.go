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
//     they like, and exit with anything when they are told to stop.
//
// Faults have budgets, so that the space is finite; a Config sets them. The search goes
// breadth first, so a violation comes with a shortest trace, as names of actions that
// TestReplay takes.
//
// Two pods of one index and attempt cannot exist, here as in a cluster: they would have
// one name. Not modelled: gangs and scheduling, scaling, updates, and a request that is
// on its way when its controller crashes and is carried out later.
package model
