package controllers

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/events"
)

func TestLongNotesAreRecordedInPart(t *testing.T) {
	fake := events.NewFakeRecorder(1)
	for note, want := range map[string]string{
		"100% of " + strings.Repeat("x", 1016): "100% of " + strings.Repeat("x", 1016),
		strings.Repeat("x", 1025):              strings.Repeat("x", 1021) + "...",
		"x" + strings.Repeat("é", 600):         "x" + strings.Repeat("é", 510) + "...",
	} {
		recorder{fake}.Eventf(nil, nil, "Normal", "Reason", "Action", "%s", note)
		if got := strings.TrimPrefix(<-fake.Events, "Normal Reason "); got != want || len(got) > 1024 || !utf8.ValidString(got) {
			t.Errorf("%d bytes become %d: %q", len(note), len(got), got)
		}
	}
}
