package controllers

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
)

func TestLongNotesAreRecordedInPart(t *testing.T) {
	fake := events.NewFakeRecorder(1)
	recorder{fake}.Eventf(nil, nil, "Normal", "Reason", "Action", "%s", "100% of "+strings.Repeat("x", 1017))
	if got, want := <-fake.Events, "Normal Reason 100% of "+strings.Repeat("x", 1013)+"..."; got != want {
		t.Errorf("recorded is %q", got)
	}
}

// What one write decides about two replicas is two events.
func TestEventsThatDifferInTheirNotesAreAllRecorded(t *testing.T) {
	client := fake.NewClientset()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := recorder{broadcaster.NewRecorder(scheme.Scheme, "test")}
	about := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", ResourceVersion: "7"}}
	want := []string{"replica 0, restart 1 of 3", "replica 1, restart 2 of 3"}
	for _, note := range want {
		told.Eventf(about, nil, corev1.EventTypeNormal, "ReplicaRestarting", "ReplicaRestarting", "%s", note)
	}
	var got []string
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		list, err := client.EventsV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		got = nil
		for i := range list.Items {
			got = append(got, list.Items[i].Note)
		}
		slices.Sort(got)
		return slices.Equal(got, want), nil
	})
	if err != nil {
		t.Errorf("recorded is %q: %v", got, err)
	}
}
