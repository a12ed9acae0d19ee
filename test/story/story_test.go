package story

import (
	"strings"
	"testing"
	"time"
)

const description = `Name:         job
Namespace:    test
API Version:  grove.io/v1alpha1
Kind:         PodCliqueSet
Metadata:
  Creation Timestamp:  2026-11-28T21:32:40Z
Spec:
  Replicas:  2
Status:
  Available Pods:  3
  Clique Hashes:
    Hash:  ebwfghsv
    Name:  worker
  Conditions:
    Last Transition Time:  2026-11-28T21:32:58Z
    Message:               replica 0, restart 1 of 2: why
    Reason:                ReplicaRestarted
    Status:                False
    Type:                  Restarting
    Last Transition Time:  2026-11-28T21:32:59Z
    Message:               pods of 1 cliques: worker
    Reason:                TemplateChanged
    Status:                True
    Type:                  UpdatePending
  Phase:                   Running
  Replica Statuses:
    Attempt:  1
    Index:    0
    Open Stages:
      first
    Phase:    Running
    Attempt:  0
    Index:    1
    Phase:    Pending
    Waiting For:
      Clique:      worker
      Have:        1
      Message:     no room
      Status:      Ready
      Want:        2
  Restart Count:   1
  Start Time:      2026-11-28T21:32:44Z
Events:
  Type     Reason             Age                From                      Message
  ----     ------             ----               ----                      -------
  Warning  PodFailed          13s                copse-controller-manager  job-0-worker-0 failed (exit code 1)
  Normal   ReplicaRestarting  4s (x2 over 12s)   copse-controller-manager  replica 0, restart 1 of 2: why
`

func TestAStoryIsTold(t *testing.T) {
	now := time.Date(2026, 11, 28, 21, 33, 0, 0, time.UTC)
	s, err := Read(description, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Tells(
		"Phase: Running", "Restart Count: 1", "Available Pods: 3",
		"Restarting=False ReplicaRestarted: replica 0, restart 1 of 2: why", "UpdatePending=True TemplateChanged: pods of 1 cliques: worker",
		"replica 0: attempt 1, Running", "replica 1: attempt 0, Pending, waits for worker Ready 1/2: no room",
		"Warning PodFailed: job-0-worker-* failed (exit code 1)", "Normal ReplicaRestarting: replica 0, *",
		"no * WorkloadFailed: *",
	); err != nil {
		t.Error(err)
	}
	for name, want := range map[string][]string{
		"a part of a line":                {"Phase: Run"},
		"words of two lines":              {"Restarting=True *"},
		"of another condition":            {"Restarting=False TemplateChanged: *"},
		"what is told though it must not": {"no * PodFailed: *"},
		"another order":                   {"Normal ReplicaRestarting: *", "Warning PodFailed: *"},
	} {
		if s.Tells(want...) == nil {
			t.Errorf("%s: %q is told", name, want)
		}
	}
}

func TestWhatHasNoTimeIsNoStory(t *testing.T) {
	now := time.Date(2026, 11, 28, 21, 33, 0, 0, time.UTC)
	for name, replace := range map[string][2]string{
		"a condition without a time":                {"    Last Transition Time:  2026-11-28T21:32:59Z\n", "    Last Transition Time:  <nil>\n"},
		"a condition from before":                   {"2026-11-28T21:32:58Z", "2026-11-28T20:32:58Z"},
		"a condition that is to come":               {"2026-11-28T21:32:58Z", "2026-11-28T21:42:58Z"},
		"an event without an age":                   {" 13s ", " <unknown> "},
		"an event from before":                      {" 13s ", " 13m "},
		"a phase that runs since nobody knows when": {"  Start Time:      2026-11-28T21:32:44Z\n", ""},
		"one that ended nobody knows when":          {"Phase:                   Running", "Phase: Failed"},
		"no status":                                 {"\nStatus:\n", "\n"},
		"no events":                                 {"\nEvents:", "\n"},
		"no time of creation":                       {"  Creation Timestamp:  2026-11-28T21:32:40Z\n", ""},
	} {
		changed := strings.Replace(description, replace[0], replace[1], 1)
		if changed == description {
			t.Fatalf("%s: the description is the same", name)
		}
		if _, err := Read(changed, now); err == nil {
			t.Errorf("%s is a story", name)
		}
	}
}
