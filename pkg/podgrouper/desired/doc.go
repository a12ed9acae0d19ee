// Package desired says in the words of PodGroup of scheduler.grove.io what a group wants,
// for server-side apply.
package desired
