// Package gang decides. From a snapshot of a clique, a scaling group or a set, and the
// time, it says what their status is, which pods are made and which go, and when to
// look again. Every function is pure: no clock, no client, no memory. Controllers
// observe, ask this package, record what it decided in the status, and only then act
// on decisions that they find recorded (D4).
//
// There is one file per policy: availability, completion, creation and deletion of a
// clique's pods; the phase of a set; which cliques a set consists of.
package gang
