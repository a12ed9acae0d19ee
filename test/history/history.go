package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
)

const (
	// settleWithin bounds how long a workload may take to become quiet.
	settleWithin = time.Minute
	// emptyWithin bounds how long deleted sets may leave something behind.
	emptyWithin = time.Minute
	// shownViolations and shownNotes bound what a failed test prints.
	shownViolations = 20
	shownNotes      = 10
)

// History is the history of one namespace during one test. All its methods may be called
// on a nil History, of a test that is not recorded.
type History struct {
	recorder *Recorder
	// reported are the violations and notes that have been told.
	reported map[string]bool
}

// Record begins to record a namespace through a client configuration that reaches both
// API servers. The recording ends with the test.
func Record(t testing.TB, config *rest.Config, namespace string) *History {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	copse, err := copseclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	recorder, err := startRecorder(sourcesOf(kube, copse, namespace))
	if err != nil {
		t.Fatalf("record the history: %v", err)
	}
	t.Cleanup(recorder.stop)
	return &History{recorder: recorder, reported: map[string]bool{}}
}

// UserDeletes says that the test deletes pods or other objects, as a user would. It is
// called before they are deleted.
func (h *History) UserDeletes(names ...string) {
	if h == nil {
		return
	}
	h.recorder.mu.Lock()
	defer h.recorder.mu.Unlock()
	for _, name := range names {
		h.recorder.log.Deletions = append(h.recorder.log.Deletions, Exemption{Pod: name, At: time.Now()})
	}
}

// AllowLate says that the controllers are down for a while, so that deadlines may be
// missed. They must not be early all the same.
func (h *History) AllowLate() {
	if h == nil {
		return
	}
	h.recorder.mu.Lock()
	defer h.recorder.mu.Unlock()
	h.recorder.log.AllowLate = true
}

// Log is the history so far.
func (h *History) Log() *Log {
	return h.recorder.snapshot()
}

// Check fails the test for each violation in the history so far. What a second call
// finds again it does not tell again.
func (h *History) Check(t testing.TB) {
	t.Helper()
	if h == nil {
		return
	}
	h.report(t, Check(h.Log()))
}

func (h *History) report(t testing.TB, found Findings) {
	t.Helper()
	told, untold := 0, 0
	for _, violation := range found.Violations {
		text := violation.String()
		switch {
		case h.reported[text]:
		case told == shownViolations:
			untold++
		default:
			told++
			h.reported[text] = true
			t.Errorf("the history violates %s", text)
		}
	}
	if untold > 0 {
		t.Errorf("and %d more violations", untold)
	}
	notes := slices.DeleteFunc(found.Unjudged, func(note string) bool { return h.reported[note] })
	for i, note := range notes {
		h.reported[note] = true
		if i == shownNotes {
			t.Logf("and %d more were not judged", len(notes)-i)
			break
		}
		t.Logf("not judged: %s", note)
	}
}

// Quiet holds I14: once all faults are over the workload settles, and then nothing is
// written for a while. It fails the test when there is no such while.
func (h *History) Quiet(t testing.TB, quiet time.Duration) {
	t.Helper()
	if h == nil {
		return
	}
	began := time.Now()
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, settleWithin+quiet, true, func(context.Context) (bool, error) {
		return time.Since(h.lastChange(began)) >= quiet, nil
	})
	if err == nil {
		return
	}
	const shown = 30
	revs := h.Log().Revisions
	var text strings.Builder
	for _, rev := range revs[max(0, len(revs)-shown):] {
		fmt.Fprintf(&text, "\n    %s", describe(rev))
	}
	t.Errorf("the history violates I14: not %s without a write within %s; the last writes:%s", quiet, settleWithin, text.String())
}

// lastChange is when the last revision arrived, but not before a time.
func (h *History) lastChange(began time.Time) time.Time {
	h.recorder.mu.Lock()
	defer h.recorder.mu.Unlock()
	if n := len(h.recorder.log.Revisions); n > 0 && h.recorder.log.Revisions[n-1].Arrived.After(began) {
		return h.recorder.log.Revisions[n-1].Arrived
	}
	return began
}

// CheckEmpty holds I10, after the test has deleted all sets of the namespace: it waits
// until nothing of them is left, and fails the test for what is left for too long.
func (h *History) CheckEmpty(t testing.TB) {
	t.Helper()
	if h == nil {
		return
	}
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, emptyWithin, true, func(context.Context) (bool, error) {
		return h.isEmpty(), nil
	})
	log := h.Log()
	if err != nil {
		t.Errorf("the history violates I10: %s after all sets were deleted there is still:%s", emptyWithin, h.left())
		// What went before this wait began has had its time.
		log.LeakAfter = emptyWithin - watchLag
	}
	h.report(t, Check(log))
}

// isEmpty says that no object that a set owns, and no set, is left.
func (h *History) isEmpty() bool {
	return h.left() == ""
}

func (h *History) left() string {
	h.recorder.mu.Lock()
	defer h.recorder.mu.Unlock()
	var text strings.Builder
	for kind, objects := range h.recorder.current {
		for _, obj := range objects {
			// What the user made has no owner.
			if kind == Set || len(obj.GetOwnerReferences()) > 0 {
				fmt.Fprintf(&text, " %s %s", kind, obj.GetName())
			}
		}
	}
	return text.String()
}
