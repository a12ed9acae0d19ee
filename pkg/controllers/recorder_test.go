package controllers

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"
)

func TestLongNotesAreRecordedInPart(t *testing.T) {
	fake := events.NewFakeRecorder(1)
	recorder{fake}.Eventf(nil, nil, "Normal", "Reason", "Action", "%s", "100% of "+strings.Repeat("x", 1017))
	if got, want := <-fake.Events, "Normal Reason 100% of "+strings.Repeat("x", 1013)+"..."; got != want {
		t.Errorf("recorded is %q", got)
	}
}
