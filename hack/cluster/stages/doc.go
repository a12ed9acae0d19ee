// Package stages holds what KWOK is told: its options and the stages by which
// it plays the kubelet of nodes and pods. See the README for the annotations
// that a pod or node can carry.
//
// A stage is a condition on an object and a change to make after a delay. KWOK
// looks at an object whenever it changes, forgets what it meant to do with it
// and picks one stage whose condition holds. Three habits follow from that:
//
//   - A delay is kept in the object. Otherwise each change of a pod, and each
//     restart of KWOK, would begin it anew. The stage <what>-timer notes the
//     moment in the annotation <what>-at, as "<duration>@<time>"; the
//     duration tells whether the note still belongs to what is asked for.
//   - The change carries the resource version that the condition was seen on.
//     Otherwise a pod that is deleted meanwhile could still become ready. The
//     change that was missed brings KWOK back to the object; its log has an
//     error of the kind "the object has been modified", which is harmless.
//   - Conditions exclude each other, or a weight says which stage goes first.
package stages
