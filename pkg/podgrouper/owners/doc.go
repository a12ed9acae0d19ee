// Package owners finds the owners of a pod, from its controller up to the top. It reads
// metadata alone, of any kind, and keeps what it read for a short while, because the pods
// of one owner come all at once.
package owners
