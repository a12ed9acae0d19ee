package indexset

import "testing"

func TestWritesRanges(t *testing.T) {
	tests := map[string]struct {
		in   []int32
		want string
	}{
		"none":           {nil, ""},
		"one":            {[]int32{7}, "7"},
		"unordered":      {[]int32{7, 0, 2, 1, 3}, "0-3,7"},
		"two in a row":   {[]int32{4, 5}, "4-5"},
		"the same twice": {[]int32{4, 4}, "4"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := Of(tc.in...)
			if got := s.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			again, err := Parse(tc.want)
			if err != nil || again.String() != tc.want {
				t.Errorf("read back as %q, error %v", again, err)
			}
			for _, i := range tc.in {
				if !s.Has(i) {
					t.Errorf("%d is missing", i)
				}
			}
		})
	}
}

func TestParseRefusesOtherForms(t *testing.T) {
	for _, text := range []string{"a", "-1", "3-1", "1,0", "0-2,2", "0,1", "1,", "0-", "99999999999"} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%q was read as %q", text, s)
		}
	}
}

func TestCounts(t *testing.T) {
	s := Of(0, 1, 2, 5, 9)
	if s.Len() != 5 {
		t.Errorf("Len is %d", s.Len())
	}
	for bound, want := range map[int32]int{0: 0, 1: 1, 3: 3, 5: 3, 6: 4, 100: 5} {
		if got := s.CountBelow(bound); got != want {
			t.Errorf("CountBelow(%d) is %d, want %d", bound, got, want)
		}
	}
	if s.Has(3) || s.Has(-1) || s.Has(10) {
		t.Error("has an index that was never put in")
	}
}

func TestBelow(t *testing.T) {
	for bound, want := range map[int32]string{-1: "", 0: "", 1: "0", 4: "0-3"} {
		if got := Below(bound).String(); got != want {
			t.Errorf("Below(%d) is %q, want %q", bound, got, want)
		}
	}
}

func TestContains(t *testing.T) {
	a, b := Of(0, 1, 2), Of(1)
	if !a.Contains(b) || b.Contains(a) || !a.Contains(Set{}) {
		t.Error("Contains is wrong")
	}
	if got := Union(Of(0, 2), Of(1)).String(); got != "0-2" {
		t.Errorf("Union is %q", got)
	}
}
