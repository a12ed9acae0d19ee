package controllers

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// longestNote is how many bytes of an event's note kube-apiserver takes. The recorder of
// client-go sends what is longer as well, and loses the event.
const longestNote = 1024

// recorder records events with notes that fit.
type recorder struct {
	events.EventRecorder
}

// Eventf records an event, the end of its note cut off where it is too long.
func (r recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, "%s", short(fmt.Sprintf(note, args...)))
}

func short(note string) string {
	const ellipsis = "..."
	if len(note) <= longestNote {
		return note
	}
	// Not in the middle of a character: an invalid one cannot be sent.
	return strings.ToValidUTF8(note[:longestNote-len(ellipsis)], "") + ellipsis
}
