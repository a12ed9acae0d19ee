package bootstrap

import "testing"

func TestLastWords(t *testing.T) {
	for _, tc := range []struct{ name, log, want string }{
		{"empty", "", ""},
		{"one process", "--- start\nboom\n", "boom"},
		{"two processes", "--- start\nold\n--- start\nnew\nlines\n", "new\nlines"},
		{"the last has just started", "--- start\nboom\n--- start\n", "boom"},
		{"only starts", "--- start\n--- start\n", "--- start\n--- start"},
	} {
		if got := lastWords(tc.log); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"a\nb\nc\nd", "a\nb\nc\nd"},
		{"a\nb\nc\nd\ne\nf", "a\nb\n[... 2 lines ...]\ne\nf"},
	} {
		if got := excerpt(tc.text, 2); got != tc.want {
			t.Errorf("excerpt of %q is %q, want %q", tc.text, got, tc.want)
		}
	}
}
