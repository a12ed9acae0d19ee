package health

import "testing"

func TestFailures(t *testing.T) {
	for _, tc := range []struct{ body, want string }{
		{"[+]ping ok\n[-]etcd failed: reason withheld\n[-]informer-sync failed: reason withheld\nreadyz check failed\n",
			"waiting for etcd, informer-sync"},
		{"shutting down\n", "shutting down"},
		{"", ""},
	} {
		if got := failures(tc.body); got != tc.want {
			t.Errorf("failures(%q) = %q, want %q", tc.body, got, tc.want)
		}
	}
}
