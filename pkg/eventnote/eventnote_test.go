package eventnote

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFit(t *testing.T) {
	for note, want := range map[string]string{
		"":                             "",
		strings.Repeat("x", 1024):      strings.Repeat("x", 1024),
		strings.Repeat("x", 1025):      strings.Repeat("x", 1021) + "...",
		"x" + strings.Repeat("é", 600): "x" + strings.Repeat("é", 510) + "...",
		strings.Repeat("é", 600):       strings.Repeat("é", 510) + "...",
	} {
		if got := Fit(note); got != want || len(got) > 1024 || !utf8.ValidString(got) {
			t.Errorf("%d bytes become %d: %q", len(note), len(got), got)
		}
	}
}
