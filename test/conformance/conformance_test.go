package conformance

import "testing"

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
		{"a watch from a past that is forgotten", watchPast},
		{"tables", tables},
	}
}

func TestConformance(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			for _, c := range checks() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.do(newSubject(t, k))
				})
			}
		})
	}
}
