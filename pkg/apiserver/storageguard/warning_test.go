package storageguard

import (
	"context"
	"errors"
	"fmt"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

func TestTheRecordIsMadeAgainWithAWarning(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	s := w.server(etcd)
	s.look(t.Context())
	before := w.record()
	remove := func() {
		if err := w.core.CoreV1().ConfigMaps("copse-system").Delete(t.Context(), ConfigMapName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i, again := range []*server{s, w.server(etcd)} {
		remove()
		again.next(t, w)
		again.is(t, "")
		if after := w.record(); after != before {
			t.Errorf("recorded was %+v and is %+v", before, after)
		}
		if got := w.warnings(); len(got) != i+1 || got[i] != "Warning StorageRecordRecreated" {
			t.Errorf("events: %q", got)
		}
	}
}

// Neither the reply of a write nor an event that fails may lose the warning.
func TestTheWarningOfANewRecordIsNotLostWithAReply(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	s := w.server(etcd)
	s.look(t.Context())
	if err := w.core.CoreV1().ConfigMaps("copse-system").Delete(t.Context(), ConfigMapName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	lost := map[string]int{"configmaps": 1, "events": 2}
	w.core.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource()
		if lost[resource.Resource] == 0 {
			return false, nil, nil
		}
		lost[resource.Resource]--
		if err := w.core.Tracker().Create(resource, action.(clienttesting.CreateAction).GetObject(), "copse-system"); err != nil {
			return true, nil, err
		}
		return true, nil, context.DeadlineExceeded
	})
	s.next(t, w)
	s.next(t, w)
	s.is(t, "")
	for range 2 {
		if got := w.warnings(); len(got) != 1 || got[0] != "Warning StorageRecordRecreated" {
			t.Errorf("events: %q", got)
		}
	}
	if len(s.events.waiting) > 0 || lost["configmaps"] > 0 || lost["events"] > 0 {
		t.Errorf("%d events wait; not lost: %v", len(s.events.waiting), lost)
	}
}

// Nor is it told at every try.
func TestANewRecordThatCannotBeWrittenIsToldOnce(t *testing.T) {
	etcd, w := startEtcd(t), newWorld(t)
	s := w.server(etcd)
	s.look(t.Context())
	if err := w.core.CoreV1().ConfigMaps("copse-system").Delete(t.Context(), ConfigMapName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	refused := true
	w.core.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, ConfigMapName, errors.New("quota"))
	})
	for range 10 {
		s.next(t, w)
		s.events.send(t.Context())
	}
	if got := w.warnings(); len(got) != 1 {
		t.Errorf("events: %q", got)
	}
	refused = false
	s.next(t, w)
	s.is(t, "")
	if err := w.core.CoreV1().ConfigMaps("copse-system").Delete(t.Context(), ConfigMapName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.next(t, w)
	if got := w.warnings(); len(got) != 2 {
		t.Errorf("events when it happens again: %q", got)
	}
}

func TestARefusedWarningDoesNotHoldUpTheNext(t *testing.T) {
	w := newWorld(t)
	s := w.server(nil)
	w.core.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		event := action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
		return event.Reason == "First", nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, event.Name, errors.New("no"))
	})
	s.events.warn("First", "note")
	s.events.warn("Second", "note")
	if got := w.warnings(); len(got) != 1 || got[0] != "Warning Second" {
		t.Errorf("events: %q", got)
	}
}

func TestLongNotesFitIntoAnEvent(t *testing.T) {
	w := newWorld(t)
	s := w.server(nil)
	s.events.warn("Reason", fmt.Sprintf("%01025d", 0))
	s.events.send(t.Context())
	list, err := w.core.EventsV1().Events("copse-system").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || len(list.Items[0].Note) != 1024 {
		t.Errorf("%d events, error %v", len(list.Items), err)
	}
}
