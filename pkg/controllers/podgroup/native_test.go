package podgroup

import "testing"

func TestMinimum(t *testing.T) {
	for name, tc := range map[string]struct {
		m    minimum
		want int32
	}{
		"as it is":                                {minimum{wanted: 4, asked: 4, count: 4, waits: true}, 4},
		"the group asks for more":                 {minimum{wanted: 6, asked: 4, count: 4, waits: true}, 6},
		"it asks for less":                        {minimum{wanted: 2, asked: 4, count: 4}, 2},
		"some have succeeded and one waits":       {minimum{wanted: 4, asked: 4, count: 4, scheduled: true, waits: true, succeeded: 3}, 1},
		"nobody waits":                            {minimum{wanted: 4, asked: 4, count: 4, scheduled: true, succeeded: 3}, 4},
		"before it was scheduled nobody succeeds": {minimum{wanted: 4, asked: 4, count: 4, waits: true, succeeded: 3}, 4},
		"more have succeeded than are needed":     {minimum{wanted: 2, asked: 2, count: 2, scheduled: true, waits: true, succeeded: 5}, 1},
		"those that have succeeded were deleted":  {minimum{wanted: 4, asked: 4, count: 1, scheduled: true, waits: true}, 1},
		"it asks for more, and some succeeded":    {minimum{wanted: 6, asked: 4, count: 2, scheduled: true, waits: true, succeeded: 2}, 4},
	} {
		if got := tc.m.decide(); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}
