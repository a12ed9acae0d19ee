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
)

const (
	// reporter names this server in events.
	reporter = "copse-apiserver"
	// longestNote is what kube-apiserver takes.
	longestNote = 1024
)

// events are warnings about the record. They are queued before what they tell of is
// written, and sent until kube-apiserver has them: the write of a record, whose reply may
// be lost, happens once, and nobody would be warned later.
type events struct {
	core      kubernetes.Interface
	namespace string
	// instance tells this process from others.
	instance string

	mu sync.Mutex
	// waiting are not sent yet, at most one of each reason.
	waiting []*eventsv1.Event
}

// warn queues an event.
func (e *events) warn(reason, note string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, waiting := range e.waiting {
		if waiting.Reason == reason {
			return
		}
	}
	if len(note) > longestNote {
		note = note[:longestNote-3] + "..."
	}
	e.waiting = append(e.waiting, &eventsv1.Event{
		// The name makes a second try of a write that succeeded harmless.
		ObjectMeta:          metav1.ObjectMeta{Namespace: e.namespace, Name: fmt.Sprintf("%s-%s", ConfigMapName, uuid.NewUUID())},
		EventTime:           metav1.NowMicro(),
		ReportingController: reporter,
		ReportingInstance:   e.instance,
		Action:              "VerifyStorage",
		Type:                corev1.EventTypeWarning,
		Reason:              reason,
		Note:                note,
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: e.namespace, Name: ConfigMapName},
	})
}

// send sends what waits, in order. What fails waits for the next call.
func (e *events) send(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.waiting) > 0 {
		if err := e.create(ctx, e.waiting[0]); err != nil {
			klog.V(2).InfoS("An event of the storage guard is tried again", "reason", e.waiting[0].Reason, "err", err)
			return
		}
		e.waiting = e.waiting[1:]
	}
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
