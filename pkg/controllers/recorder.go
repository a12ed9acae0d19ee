package controllers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/copse-dev/copse/pkg/eventnote"
)

// recorder records events with notes that fit: the recorder of client-go sends what is too
// long as well, and loses the event.
type recorder struct {
	events.EventRecorder
}

// Eventf records an event, the end of its note cut off where it is too long.
func (r recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, "%s", eventnote.Fit(fmt.Sprintf(note, args...)))
}
