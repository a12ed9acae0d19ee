package storageguard

import (
	"strings"
	"testing"
	"time"
)

// nothing is evidence of nothing.
func nothing() *Evidence { return &Evidence{} }

func lost(created time.Time) *Evidence {
	return &Evidence{Findings: []Finding{{Pod: "team/job-0-worker-0", Created: created, Problem: "whose owner does not exist"}}}
}

// Each case of D25, and what lies next to it.
func TestDecide(t *testing.T) {
	var (
		noon     = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
		etcd     = Reading{ID: "a", Revision: 100}
		empty    = Reading{Revision: 1}
		record   = Record{ID: "a", Revision: 90}
		verified = Memory{Verified: true, ID: "a", Revision: 95}
	)
	with := func(r Record, change func(*Record)) Record { change(&r); return r }
	accepting := func(text string) func(*Record) { return func(r *Record) { r.Accept = text } }
	tests := map[string]struct {
		situation Situation
		step      Step
		reason    Reason
		tells     []string
	}{
		// At the start.
		"no record and empty etcd: look first":    {Situation{Reading: empty}, Look, "", nil},
		"no record and empty etcd: bootstrap":     {Situation{Reading: empty, Evidence: nothing()}, Bootstrap, "", nil},
		"the etcd that is recorded: look first":   {Situation{Reading: etcd, Record: record}, Look, "", nil},
		"the etcd that is recorded: open":         {Situation{Reading: etcd, Record: record, Evidence: nothing()}, Open, "", nil},
		"the revision that is recorded: open":     {Situation{Reading: etcd, Record: Record{ID: "a", Revision: 100}, Evidence: nothing()}, Open, "", nil},
		"an id without a record: recreate it":     {Situation{Reading: etcd, Evidence: nothing()}, Recreate, "", nil},
		"an id without a record: look first":      {Situation{Reading: etcd}, Look, "", nil},
		"an id without a record, and lost owners": {Situation{Reading: etcd, Evidence: lost(noon)}, Shut, ReasonLostObjects, []string{"team/job-0-worker-0, whose owner does not exist"}},
		"a record and no id":                      {Situation{Reading: empty, Record: record}, Shut, ReasonNoIdentity, []string{"identity is a", "accept-storage=none@1"}},
		"a record and another id":                 {Situation{Reading: Reading{ID: "b", Revision: 500}, Record: record}, Shut, ReasonOtherIdentity, []string{"identity b", "accept-storage=b@500"}},
		"a revision below the recorded one":       {Situation{Reading: Reading{ID: "a", Revision: 89}, Record: record}, Shut, ReasonRevisionBehind, []string{"revision 89", "at 90", "accept-storage=a@89"}},
		"a pod whose owner etcd lacks":            {Situation{Reading: etcd, Record: record, Evidence: lost(noon)}, Shut, ReasonLostObjects, []string{"team/job-0-worker-0", "accept-storage=a@100"}},
		"before bootstrap, a pod of our groups":   {Situation{Reading: empty, Evidence: lost(noon)}, Shut, ReasonForeignPods, []string{"another installation", "team/job-0-worker-0", "accept-storage=none@1"}},
		"definitions of our groups": {
			Situation{Reading: etcd, Record: record, Evidence: &Evidence{Definitions: []string{"podcliquesets.grove.io"}}},
			Shut, ReasonDefinitions, []string{"podcliquesets.grove.io"},
		},
		"definitions of our groups, before bootstrap": {
			Situation{Reading: empty, Evidence: &Evidence{Definitions: []string{"podcliquesets.grove.io"}}}, Shut, ReasonDefinitions, nil,
		},
		"a record that is no record": {
			Situation{Reading: etcd, Record: with(record, func(r *Record) { r.Defect = `revision is "many", not a revision` })},
			Shut, ReasonRecordDefect, []string{`revision is "many"`},
		},

		// While it runs.
		"running: nothing has changed":                    {Situation{Reading: etcd, Record: record, Memory: verified}, Open, "", nil},
		"running: the record is gone":                     {Situation{Reading: etcd, Memory: verified}, Recreate, "", nil},
		"running: etcd is empty":                          {Situation{Reading: empty, Record: record, Memory: verified}, Shut, ReasonNoIdentity, nil},
		"running: etcd is empty and the record is gone":   {Situation{Reading: empty, Memory: verified}, Shut, ReasonOtherIdentity, []string{"identity none and had a"}},
		"running: etcd is another":                        {Situation{Reading: Reading{ID: "b", Revision: 500}, Record: record, Memory: verified}, Shut, ReasonOtherIdentity, nil},
		"running: the record is another's":                {Situation{Reading: etcd, Record: Record{ID: "b", Revision: 1}, Memory: verified}, Shut, ReasonOtherIdentity, nil},
		"running: below what this process has seen":       {Situation{Reading: Reading{ID: "a", Revision: 94}, Record: record, Memory: verified}, Shut, ReasonRevisionFell, []string{"revision 94", "seen it at 95"}},
		"running: below what another server has recorded": {Situation{Reading: Reading{ID: "a", Revision: 99}, Record: Record{ID: "a", Revision: 100}, Memory: verified}, Shut, ReasonRevisionBehind, nil},
		"running: evidence is for the start":              {Situation{Reading: etcd, Record: record, Memory: verified, Evidence: lost(noon)}, Open, "", nil},

		// What somebody accepts.
		"accepted: an empty etcd, look first":       {Situation{Reading: empty, Record: with(record, accepting("none@1"))}, Look, "", nil},
		"accepted: an empty etcd":                   {Situation{Reading: empty, Record: with(record, accepting("none@1")), Evidence: lost(noon)}, Accept, "", nil},
		"accepted: an empty etcd, nothing is lost":  {Situation{Reading: empty, Record: with(record, accepting("none@1")), Evidence: nothing()}, Accept, "", nil},
		"accepted: another etcd":                    {Situation{Reading: Reading{ID: "b", Revision: 7}, Record: with(record, accepting("b@7")), Evidence: nothing()}, Accept, "", nil},
		"accepted: an older etcd":                   {Situation{Reading: Reading{ID: "a", Revision: 50}, Record: with(record, accepting("a@50")), Evidence: nothing()}, Accept, "", nil},
		"accepted: etcd's upkeep has moved it":      {Situation{Reading: Reading{ID: "a", Revision: 51}, Record: with(record, accepting("a@50")), Evidence: nothing()}, Accept, "", nil},
		"accepted: lost owners":                     {Situation{Reading: etcd, Record: with(record, accepting("a@100")), Evidence: lost(noon)}, Accept, "", nil},
		"accepted: pods of another installation":    {Situation{Reading: empty, Record: Record{Accept: "none@1"}, Evidence: lost(noon)}, Accept, "", nil},
		"accepted: a record that is no record":      {Situation{Reading: etcd, Record: Record{Defect: "x", Accept: "a@100"}, Evidence: nothing()}, Accept, "", nil},
		"accepted: while it runs":                   {Situation{Reading: Reading{ID: "a", Revision: 50}, Record: with(record, accepting("a@50")), Memory: verified}, Accept, "", nil},
		"accepted: nothing was wrong":               {Situation{Reading: etcd, Record: with(record, accepting("a@100")), Evidence: nothing()}, Open, "", nil},
		"accepted was one that has fallen since":    {Situation{Reading: Reading{ID: "a", Revision: 49}, Record: with(record, accepting("a@50"))}, Shut, ReasonRevisionBehind, nil},
		"accepted was another":                      {Situation{Reading: Reading{ID: "b", Revision: 50}, Record: with(record, accepting("c@50"))}, Shut, ReasonOtherIdentity, nil},
		"accepted was anything":                     {Situation{Reading: empty, Record: with(record, accepting("yes"))}, Shut, ReasonNoIdentity, nil},
		"definitions are not accepted":              {Situation{Reading: empty, Record: with(record, accepting("none@1")), Evidence: &Evidence{Definitions: []string{"podcliques.grove.io"}}}, Shut, ReasonDefinitions, nil},
		"pods from before the acceptance count not": {Situation{Reading: etcd, Record: with(record, func(r *Record) { r.Accepted = noon }), Evidence: lost(noon.Add(-time.Second))}, Open, "", nil},
		"pods from after the acceptance count":      {Situation{Reading: etcd, Record: with(record, func(r *Record) { r.Accepted = noon }), Evidence: lost(noon)}, Shut, ReasonLostObjects, nil},
		"accepted by another server: memory is void": {
			Situation{Reading: Reading{ID: "a", Revision: 50}, Record: Record{ID: "a", Revision: 50, Accepted: noon}, Memory: verified}, Open, "", nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.situation.ConfigMap = "copse-system/copse-storage"
			got := Decide(tc.situation)
			if got.Step != tc.step || got.Reason != tc.reason {
				t.Fatalf("%s %s: %s; want %s %s", got.Step, got.Reason, got.Message, tc.step, tc.reason)
			}
			for _, part := range tc.tells {
				if !strings.Contains(got.Message, part) {
					t.Errorf("%q is not told in: %s", part, got.Message)
				}
			}
			if got.Step == Shut && !strings.Contains(got.Message, "503") {
				t.Errorf("what shut means is not told: %s", got.Message)
			}
		})
	}
}

// What a message says can be typed as it is.
func TestTheAcceptanceThatIsToldIsAccepted(t *testing.T) {
	for _, reading := range []Reading{{Revision: 1}, {ID: "2f1e8b42", Revision: 1 << 40}} {
		if !accepts(Acceptance(reading), reading) {
			t.Errorf("%s does not accept %+v", Acceptance(reading), reading)
		}
	}
}

func TestManyPodsAreCounted(t *testing.T) {
	evidence := &Evidence{}
	for range 10 {
		evidence.Findings = append(evidence.Findings, Finding{Pod: "team/pod", Problem: "lost"})
	}
	got := Decide(Situation{Reading: Reading{ID: "a", Revision: 2}, Record: Record{ID: "a"}, Evidence: evidence})
	if !strings.Contains(got.Message, "and 7 more") || strings.Count(got.Message, "team/pod") != 3 {
		t.Error(got.Message)
	}
}

func TestWhichReadingsFollowEachOther(t *testing.T) {
	empty := Reading{Revision: 5, Cluster: 1, Term: 2}
	right := Reading{ID: "right", Revision: 9, Cluster: 1, Term: 2, Created: 6}
	tests := map[string]struct {
		earlier, later Reading
		want           bool
	}{
		"the same":                                {right, right, true},
		"further on":                              {right, Reading{ID: "right", Revision: 10, Cluster: 1, Term: 3, Created: 6}, true},
		"further back":                            {right, Reading{ID: "right", Revision: 8, Cluster: 1, Term: 3, Created: 6}, false},
		"of another cluster":                      {right, Reading{ID: "right", Revision: 10, Cluster: 2, Term: 2, Created: 6}, false},
		"with another identity":                   {right, Reading{ID: "other", Revision: 10, Cluster: 1, Term: 2, Created: 10}, false},
		"without the identity":                    {right, Reading{Revision: 10, Cluster: 1, Term: 2}, false},
		"with an identity that it was given":      {empty, right, true},
		"with one that it had before":             {empty, Reading{ID: "right", Revision: 9, Cluster: 1, Term: 2, Created: 5}, false},
		"with one, after it was started anew":     {empty, Reading{ID: "right", Revision: 9, Cluster: 1, Term: 3, Created: 6}, false},
		"still without one, after it was started": {empty, Reading{Revision: 5, Cluster: 1, Term: 3}, true},
	}
	for name, tc := range tests {
		if got := tc.later.follows(tc.earlier); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
