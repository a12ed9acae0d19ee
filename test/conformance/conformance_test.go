package conformance

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// check is one thing that holds for each kind.
type check struct {
	name string
	do   func(*subject)
}

func checks() []check {
	return []check{
		{"create, get, update, delete", life},
		{"generateName", generateName},
		{"what is sent wrongly", sentWrongly},
		{"generation follows the spec", generation},
		{"status and spec have endpoints of their own", isolation},
		{"preconditions of updates and deletions", preconditions},
		{"dry runs leave nothing", dryRun},
		{"field validation", fieldValidation},
		{"JSON, merge and strategic merge patch", patches},
		{"server-side apply and its owners", apply},
		{"finalizers", finalizers},
		{"propagation policies", propagation},
		{"lists in pages", pages},
		{"lists at a resource version", resourceVersions},
		{"selectors", selectors},
		{"deletion of a collection", collection},
		{"watch", watches},
		{"a watch that begins with a list", watchList},
		{"a version of the future", future},
		{"tables", tables},
	}
}

func TestConformance(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			shared := newSubject(t, k)
			for _, c := range checks() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					s := *shared
					s.t = t
					c.do(&s)
				})
			}
		})
	}
}

// A client that comes back to a server that does not know its past any more is told to
// list anew.
func TestAWatchFromAForgottenPastIsRefused(t *testing.T) {
	cluster.Stop(t, "copse-apiserver")
	cluster.Start(t, "copse-apiserver")
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			s := newSubject(t, k)
			s.untilServed()
			w, err := s.client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
			if err != nil {
				s.refused("a watch from the beginning", metav1.StatusReasonExpired, err)
				return
			}
			defer w.Stop()
			event := s.next(w)
			if status, ok := event.Object.(*metav1.Status); !ok || status.Code != http.StatusGone {
				t.Errorf("a watch from the beginning: %s %v", event.Type, event.Object)
			}
		})
	}
}
