package gang

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
)

// groupDelay gives a scaling group of the template a terminationDelay of its own.
func groupDelay(name string, delay time.Duration) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		for i := range pcs.Spec.Template.PodCliqueScalingGroups {
			if config := &pcs.Spec.Template.PodCliqueScalingGroups[i]; config.Name == name {
				config.TerminationDelay = &metav1.Duration{Duration: delay}
			}
		}
	}
}

// ends is what a decision does to the attempts of a set.
type ends struct {
	// Attempts of the replicas that the status tells of.
	Attempts     []int32
	RestartCount int32
	Fails        summary
	Message      string
	Confirm      []string
	Events       []Event
	Next         time.Duration
}

func endsOf(d SetDecision) ends {
	out := ends{RestartCount: d.Status.RestartCount, Events: d.Events}
	for _, replica := range d.Status.ReplicaStatuses {
		out.Attempts = append(out.Attempts, replica.Attempt)
	}
	if c := meta.FindStatusCondition(d.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget); c != nil {
		out.Fails, out.Message = summary{c.Status, c.Reason}, c.Message
	}
	for _, clique := range d.Confirm {
		out.Confirm = append(out.Confirm, clique.Name)
	}
	if !d.Next.IsZero() {
		out.Next = d.Next.Sub(now)
	}
	return out
}

func restarting(replicaAndCause string) Event {
	return Event{"Normal", EventReplicaRestarting, replicaAndCause}
}

func exceeded(message string) []Event {
	return []Event{{"Warning", EventMaxRestartsExceeded, message + ": all active pods are terminated"}}
}

func TestRestartsInTraining(t *testing.T) {
	tooMany := isTrue(grovev1alpha1.ReasonMaxRestartsExceeded)
	three := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return pair(append([]setOption{replicas(3)}, options...)...)
	}
	// worker is in a scaling group of which one copy of two is enough.
	grouped := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return pair(append([]setOption{group("g", 2, 1, "worker"), budget(1, 0)}, options...)...)
	}
	tests := map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		want     ends
	}{
		"nothing is breached": {set: pair(budget(1, 0)), existing: allOf(pair(), readyPods(2)), want: ends{Attempts: []int32{0}}},
		"a breach restarts at once where there is no delay": {
			set: pair(budget(1, 0)), existing: allOf(pair()).but("set-0-worker", breached(0, "why")),
			want: ends{
				Attempts: []int32{1}, RestartCount: 1, Confirm: []string{"set-0-worker"},
				Events: []Event{restarting("replica 0, restart 1 of 1: set-0-worker: why")},
			},
		},
		"also where the delay is 0": {
			set: pair(budget(1, 0), delayed(0)), existing: allOf(pair()).but("set-0-worker", breached(0, "why")),
			want: ends{
				Attempts: []int32{1}, RestartCount: 1, Confirm: []string{"set-0-worker"},
				Events: []Event{restarting("replica 0, restart 1 of 1: set-0-worker: why")},
			},
		},
		"the last restart of the budget": {
			set: pair(budget(3, 2), replicaAttempt(0, 2)), existing: allOf(pair(), inAttempt(2)).but("set-0-worker", inAttempt(2), breached(0, "why")),
			want: ends{
				Attempts: []int32{3}, RestartCount: 3, Confirm: []string{"set-0-worker"},
				Events: []Event{restarting("replica 0, restart 3 of 3: set-0-worker: why")},
			},
		},
		"the next failure fails the set": {
			set: pair(budget(3, 3), replicaAttempt(0, 3)), existing: allOf(pair(), inAttempt(3)).but("set-0-worker", inAttempt(3), breached(0, "why")),
			want: ends{
				Attempts: []int32{3}, RestartCount: 3, Confirm: []string{"set-0-worker"}, Fails: tooMany,
				Message: "all 3 restarts have been used; replica 0: set-0-worker: why",
				Events:  exceeded("all 3 restarts have been used; replica 0: set-0-worker: why"),
			},
		},
		"also when the budget was lowered meanwhile": {
			set: pair(budget(1, 3), replicaAttempt(0, 3)), existing: allOf(pair(), inAttempt(3)).but("set-0-worker", inAttempt(3), breached(0, "why")),
			want: ends{
				Attempts: []int32{3}, RestartCount: 3, Confirm: []string{"set-0-worker"}, Fails: tooMany,
				Message: "all 1 restarts have been used; replica 0: set-0-worker: why",
				Events:  exceeded("all 1 restarts have been used; replica 0: set-0-worker: why"),
			},
		},
		"the budget is one for all replicas": {
			set: three(budget(2, 2), replicaAttempt(1, 2)), existing: have{"set-0-worker": {breached(0, "why")}},
			want: ends{
				Attempts: []int32{0, 2, 0}, RestartCount: 2, Confirm: []string{"set-0-worker"}, Fails: tooMany,
				Message: "all 2 restarts have been used; replica 0: set-0-worker: why",
				Events:  exceeded("all 2 restarts have been used; replica 0: set-0-worker: why"),
			},
		},
		"without a budget the first failure fails the set": {
			set: pair(), existing: have{"set-0-worker": {breached(0, "why")}},
			want: ends{
				Attempts: []int32{0}, Confirm: []string{"set-0-worker"}, Fails: tooMany,
				Message: "no restart is allowed; replica 0: set-0-worker: why", Events: exceeded("no restart is allowed; replica 0: set-0-worker: why"),
			},
		},
		"several replicas restart in one write, healthy ones do not": {
			set: three(budget(5, 1), replicaAttempt(1, 1)), existing: have{"set-0-worker": {breached(0, "a")}, "set-1-worker": {inAttempt(1), readyPods(2)}, "set-2-launcher": {breached(0, "b")}},
			want: ends{
				Attempts: []int32{1, 1, 1}, RestartCount: 3, Confirm: []string{"set-0-worker", "set-2-launcher"},
				Events: []Event{restarting("replica 0, restart 2 of 5: set-0-worker: a"), restarting("replica 2, restart 3 of 5: set-2-launcher: b")},
			},
		},
		"as many as are left": {
			set: three(budget(2, 0)), existing: have{"set-0-worker": {breached(0, "a")}, "set-1-worker": {breached(0, "b")}},
			want: ends{
				Attempts: []int32{1, 1, 0}, RestartCount: 2, Confirm: []string{"set-0-worker", "set-1-worker"},
				Events: []Event{restarting("replica 0, restart 1 of 2: set-0-worker: a"), restarting("replica 1, restart 2 of 2: set-1-worker: b")},
			},
		},
		"when more are needed than are left, none restarts": {
			set: three(budget(3, 1), replicaAttempt(0, 1)), existing: have{
				"set-0-worker": {inAttempt(1), breached(0, "a")}, "set-1-worker": {breached(0, "b")}, "set-2-worker": {breached(0, "c")},
			},
			want: ends{
				Attempts: []int32{1, 0, 0}, RestartCount: 1, Confirm: []string{"set-0-worker", "set-1-worker", "set-2-worker"}, Fails: tooMany,
				Message: "3 replicas have failed and 2 of 3 restarts are left; replica 0: set-0-worker: a; replica 1: set-1-worker: b; replica 2: set-2-worker: c",
				Events:  exceeded("3 replicas have failed and 2 of 3 restarts are left; replica 0: set-0-worker: a; replica 1: set-1-worker: b; replica 2: set-2-worker: c"),
			},
		},
		"two breaches of one replica are one restart": {
			set: pair(budget(5, 0)), existing: allOf(pair(), breached(0, "why")),
			want: ends{
				Attempts: []int32{1}, RestartCount: 1, Confirm: []string{"set-0-launcher"},
				Events: []Event{restarting("replica 0, restart 1 of 5: set-0-launcher: why")},
			},
		},

		// The recorded time is rounded down, so up to a second of the delay is not in it.
		"a breach waits for its delay, and the second that may be missing from it": {
			set: pair(budget(1, 0), delayed(time.Minute)), existing: have{"set-0-worker": {breached(0, "why")}},
			want: ends{Attempts: []int32{0}, Next: 61 * time.Second},
		},
		"to the last second": {
			set: pair(budget(1, 0), delayed(time.Minute)), existing: have{"set-0-worker": {breached(time.Minute, "why")}},
			want: ends{Attempts: []int32{0}, Next: time.Second},
		},
		"and restarts then": {
			set: pair(budget(1, 0), delayed(time.Minute)), existing: have{"set-0-worker": {breached(61*time.Second, "why")}},
			want: ends{
				Attempts: []int32{1}, RestartCount: 1, Confirm: []string{"set-0-worker"},
				Events: []Event{restarting("replica 0, restart 1 of 1: set-0-worker: why, for 1m1s")},
			},
		},
		"the first of several breaches to be due counts": {
			set: pair(budget(1, 0), delayed(time.Minute)), existing: have{"set-0-launcher": {breached(20*time.Second, "a")}, "set-0-worker": {breached(50*time.Second, "b")}},
			want: ends{Attempts: []int32{0}, Next: 11 * time.Second},
		},
		"in whatever order they come": {
			set: pair(budget(1, 0), delayed(time.Minute)), existing: have{"set-0-launcher": {breached(70*time.Second, "a")}, "set-0-worker": {breached(2*time.Minute, "b")}},
			want: ends{
				Attempts: []int32{1}, RestartCount: 1, Confirm: []string{"set-0-worker"},
				Events: []Event{restarting("replica 0, restart 1 of 1: set-0-worker: b, for 2m0s")},
			},
		},
		"one replica is due and another one later": {
			set: three(budget(5, 0), delayed(time.Minute)), existing: have{
				"set-0-worker": {breached(10*time.Second, "a")}, "set-1-worker": {breached(2*time.Minute, "b")}, "set-2-worker": {breached(30*time.Second, "c")},
			},
			want: ends{
				Attempts: []int32{0, 1, 0}, RestartCount: 1, Confirm: []string{"set-1-worker"}, Next: 31 * time.Second,
				Events: []Event{restarting("replica 1, restart 1 of 5: set-1-worker: b, for 2m0s")},
			},
		},
		"a member of a scaling group restarts the replica, however many copies are left": {
			set: grouped(), existing: allOf(grouped(), readyPods(2)).but("set-0-g-1-worker", breached(0, "why")),
			want: ends{
				Attempts: []int32{1}, RestartCount: 1, Confirm: []string{"set-0-g-1-worker"},
				Events: []Event{restarting("replica 0, restart 1 of 1: set-0-g-1-worker: why")},
			},
		},
		"a scaling group may have a shorter delay": {
			set: grouped(delayed(time.Minute), groupDelay("g", 10*time.Second)), existing: have{"set-0-g-1-worker": {breached(5*time.Second, "why")}},
			want: ends{Attempts: []int32{0}, Next: 6 * time.Second},
		},
		"or a longer one": {
			set: grouped(delayed(time.Minute), groupDelay("g", time.Hour)), existing: have{"set-0-g-1-worker": {breached(2*time.Minute, "why")}},
			want: ends{Attempts: []int32{0}, Next: 58*time.Minute + time.Second},
		},
		"or none": {
			set: grouped(delayed(time.Minute), groupDelay("g", 0)), existing: have{"set-0-g-1-worker": {breached(0, "why")}},
			want: ends{
				Attempts: []int32{1}, RestartCount: 1, Confirm: []string{"set-0-g-1-worker"},
				Events: []Event{restarting("replica 0, restart 1 of 1: set-0-g-1-worker: why")},
			},
		},
		"which is nothing to the cliques beside it": {
			set: grouped(delayed(time.Minute), groupDelay("g", 0)), existing: have{"set-0-launcher": {breached(0, "why")}},
			want: ends{Attempts: []int32{0}, Next: 61 * time.Second},
		},

		"the sixth failure of an index ends the attempt, though the clique is not breached": {
			set: pair(budget(1, 0), delayed(time.Hour)), existing: allOf(pair(), readyPods(2)).but("set-0-worker", readyPods(1), failedBefore(1, 6, -time.Second)),
			want: ends{
				Attempts: []int32{1}, RestartCount: 1, Confirm: []string{"set-0-worker"},
				Events: []Event{restarting("replica 0, restart 1 of 1: set-0-worker: index 1 has failed 6 times, the last time: before")},
			},
		},
		"the fifth does not": {
			set: pair(budget(1, 0)), existing: allOf(pair(), readyPods(2)).but("set-0-worker", readyPods(1), failedBefore(1, 5, -time.Second)),
			want: ends{Attempts: []int32{0}},
		},
		"nor do six of which the index has recovered": {
			set: pair(budget(1, 0)), existing: allOf(pair(), readyPods(2)).but("set-0-worker", failedBefore(1, 6, -time.Minute), recovered(1, -time.Second)),
			want: ends{Attempts: []int32{0}},
		},
		"nor six of an index that the clique does not have any more": {
			set: pair(budget(1, 0)), existing: allOf(pair(), readyPods(2)).but("set-0-worker", failedBefore(2, 6, -time.Second)),
			want: ends{Attempts: []int32{0}},
		},

		"a breach whose status is unknown is none": {
			set: pair(budget(1, 0)), existing: have{"set-0-worker": {condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionUnknown, "R", -time.Hour)}},
			want: ends{Attempts: []int32{0}},
		},
		"nor is one of the attempt before, of a clique that has a new one before it": {
			set: pair(budget(5, 1), replicaAttempt(0, 1)), existing: have{"set-0-worker": {breached(0, "why"), attempt(1)}},
			want: ends{Attempts: []int32{1}, RestartCount: 1},
		},
		"nor of one that does not know of it yet": {
			set: pair(budget(5, 1), replicaAttempt(0, 1)), existing: have{"set-0-worker": {breached(0, "why")}},
			want: ends{Attempts: []int32{1}, RestartCount: 1},
		},
		"nor a sixth failure of the attempt before": {
			set: pair(budget(5, 1), replicaAttempt(0, 1)), existing: have{"set-0-worker": {failedBefore(0, 6, 0)}},
			want: ends{Attempts: []int32{1}, RestartCount: 1},
		},
		"nor one of a later attempt: the set that was read is old": {
			set: pair(budget(5, 1), replicaAttempt(0, 1)), existing: have{"set-0-worker": {breached(0, "why"), inAttempt(2)}},
			want: ends{Attempts: []int32{1}, RestartCount: 1},
		},
		"nor one of a clique that is deleted": {
			set: pair(budget(5, 0)), existing: have{"set-0-worker": {breached(0, "why"), deleted}}, want: ends{Attempts: []int32{0}},
		},
		"nor one of a replica that the set does not have any more": {
			set: pair(budget(5, 0)), existing: have{"set-1-worker": {breached(0, "why")}}, want: ends{Attempts: []int32{0}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, tc.existing)
			d := DecideSet(s, now)
			expect(t, "ends", tc.want, endsOf(d))
			if len(tc.want.Events) > 0 && !(d.Changed && d.Urgent) {
				t.Error("the end of an attempt waits")
			}
		})
	}
}

// What is decided once is not decided again, and nothing restarts that fails or has ended.
func TestNothingRestartsAfterTheEnd(t *testing.T) {
	tests := map[string]*grovev1alpha1.PodCliqueSet{
		"it fails":         pair(budget(5, 0), phase(grovev1alpha1.PodCliqueSetRunning), failureTarget("why")),
		"it has failed":    pair(budget(5, 0), phase(grovev1alpha1.PodCliqueSetFailed), failureTarget("why")),
		"it has succeeded": pair(budget(5, 0), phase(grovev1alpha1.PodCliqueSetSucceeded)),
		"it is deleted": pair(budget(5, 0), phase(grovev1alpha1.PodCliqueSetRunning), func(pcs *grovev1alpha1.PodCliqueSet) {
			pcs.DeletionTimestamp = ptr.To(at(0))
		}),
	}
	for name, pcs := range tests {
		t.Run(name, func(t *testing.T) {
			before := pcs.DeepCopy()
			maxRuntime(time.Second)(pcs)
			pcs.Status.StartTime = ptr.To(at(-time.Hour))
			d := DecideSet(setOf(pcs, allOf(pcs, breached(time.Hour, "x"))), now)
			expect(t, "restarts", int32(0), d.Status.RestartCount)
			expect(t, "attempts", int64(0), SumOfAttempts(&grovev1alpha1.PodCliqueSet{Status: d.Status}))
			expect(t, "FailureTarget", conditionOf(before.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget), conditionOf(d.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget))
			expect(t, "events", []Event(nil), d.Events)
			expect(t, "confirm", []*grovev1alpha1.PodClique(nil), d.Confirm)
			expect(t, "next", time.Time{}, d.Next)
		})
	}
}

// The status that records a restart speaks of the attempt that begins.
func TestARestartedReplicaBeginsAnew(t *testing.T) {
	two := pair(replicas(2), budget(5, 0), phase(grovev1alpha1.PodCliqueSetRunning), started(-time.Hour))
	healthy := []cliqueOption{readyPods(2), updatedPods(2)}
	s := setOf(two, allOf(two, healthy...).but("set-1-worker", runningPods(2), breached(0, "why")))
	s.Gangs[naming.Replica("set", 1)] = gangOf(1, 0, metav1.ConditionTrue, "R", "")
	got := DecideSet(s, now).Status
	expect(t, "replicas", []grovev1alpha1.PodCliqueSetReplicaStatus{
		{Index: 0, Phase: grovev1alpha1.PodCliqueSetRunning},
		{Index: 1, Phase: grovev1alpha1.PodCliqueSetPending, Attempt: 1, WaitingFor: &grovev1alpha1.WaitingFor{Clique: "launcher", Status: "Ready", Want: 1}},
	}, got.ReplicaStatuses)
	expect(t, "phase of the set, of which another replica runs", grovev1alpha1.PodCliqueSetRunning, got.Phase)
	expect(t, "available", [2]int32{1, 3}, [2]int32{got.AvailableReplicas, got.AvailablePods})

	one := pair(budget(5, 0), phase(grovev1alpha1.PodCliqueSetRunning), started(-time.Hour))
	got = DecideSet(setOf(one, allOf(one, healthy...).but("set-0-worker", runningPods(2), breached(0, "why"))), now).Status
	expect(t, "phase of the set, of which nothing else runs", grovev1alpha1.PodCliqueSetPending, got.Phase)
	expect(t, "the start of the set", ptr.To(at(-time.Hour)), got.StartTime)
}
