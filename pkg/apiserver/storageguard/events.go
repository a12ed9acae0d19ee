package storageguard

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/copse-dev/copse/pkg/eventnote"
)

// reporter names this server in events.
const reporter = "copse-apiserver"

// events are warnings about the record. They are queued before what they tell of is
// written, and sent until kube-apiserver has them: the write of a record, whose reply may
// be lost, happens once, and nobody would be warned later.
type events struct {
	core      kubernetes.Interface
	namespace string
	// instance tells this process from others.
	instance string

	mu sync.Mutex
	// waiting are not sent yet.
	waiting []*eventsv1.Event
	// told are the notes since the server was last open, by reason: what goes on is told once.
	told map[string]string
}

// warn queues an event, unless it has been told.
func (e *events) warn(reason, note string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.told[reason] == note {
		return
	}
	if e.told == nil {
		e.told = map[string]string{}
	}
	e.told[reason] = note
	e.waiting = append(e.waiting, &eventsv1.Event{
		// The name makes a second try of a write that succeeded harmless.
		ObjectMeta:          metav1.ObjectMeta{Namespace: e.namespace, Name: fmt.Sprintf("%s-%s", ConfigMapName, uuid.NewUUID())},
		EventTime:           metav1.NowMicro(),
		ReportingController: reporter,
		ReportingInstance:   e.instance,
		Action:              "VerifyStorage",
		Type:                corev1.EventTypeWarning,
		Reason:              reason,
		Note:                eventnote.Fit(note),
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: e.namespace, Name: ConfigMapName},
	})
}

// forget lets what has been told be told again: it has come to an end.
func (e *events) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = nil
}

// send sends what waits, in order. What fails waits for the next call, of which there is one
// at a time.
func (e *events) send(ctx context.Context) {
	for event := e.first(); event != nil; event = e.first() {
		if err := e.create(ctx, event); err != nil {
			klog.V(2).InfoS("An event of the storage guard is tried again", "reason", event.Reason, "err", err)
			return
		}
		e.mu.Lock()
		e.waiting = e.waiting[1:]
		e.mu.Unlock()
	}
}

func (e *events) first() *eventsv1.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		return nil
	}
	return e.waiting[0]
}

func (e *events) create(ctx context.Context, event *eventsv1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	_, err := e.core.EventsV1().Events(e.namespace).Create(ctx, event, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		// It would be refused for ever, and hold up those behind it.
		klog.ErrorS(err, "An event of the storage guard is refused", "reason", event.Reason, "note", event.Note)
		return nil
	}
	return err
}
