package controllers

import (
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/copse-dev/copse/pkg/eventnote"
)

// recorder makes up for what the recorder of client-go loses: an event whose note is too long,
// and one that differs in its note alone from another about the same object as it was then,
// such as the restarts of two replicas in one write. That would be counted as the other.
type recorder struct {
	events.EventRecorder
}

// Eventf records an event, the end of its note cut off where it is too long. Its action, by
// which client-go tells events apart, has a hash of the note.
func (r recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	text := eventnote.Fit(fmt.Sprintf(note, args...))
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(text))
	r.EventRecorder.Eventf(regarding, related, eventType, reason, fmt.Sprintf("%s-%08x", action, hash.Sum32()), "%s", text)
}
