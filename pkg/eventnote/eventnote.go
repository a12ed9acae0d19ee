// Package eventnote fits texts into the notes of events. It does not make events.
package eventnote

import "strings"

const (
	// longest is how many bytes of a note kube-apiserver takes.
	longest  = 1024
	ellipsis = "..."
)

// Fit returns a note as it is, or cut off with three dots where kube-apiserver would refuse
// the event for its length.
func Fit(note string) string {
	if len(note) <= longest {
		return note
	}
	// Not in the middle of a character: an invalid one cannot be sent.
	return strings.ToValidUTF8(note[:longest-len(ellipsis)], "") + ellipsis
}
