package gang

import (
	"testing"
	"time"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// maxRuntime runs from the start, over restarts and downtime, and ends what has not
// finished before it.
func TestMaxRuntime(t *testing.T) {
	const message = "the workload has run for longer than maxRuntime, 10m0s, since 2026-03-01T11:49:59Z"
	tooLong := isTrue(grovev1alpha1.ReasonMaxRuntimeExceeded)
	failed := func(change func(*ends)) ends {
		out := ends{
			Attempts: []int32{0}, Fails: tooLong, Message: message,
			Events: []Event{{"Warning", EventMaxRuntimeExceeded, message + ": all active pods are terminated"}},
		}
		if change != nil {
			change(&out)
		}
		return out
	}
	succeeded := ends{Attempts: []int32{0}, Events: []Event{{"Normal", EventWorkloadSucceeded, "every pod exited with 0, 3 in all"}}}
	limited := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return pair(append([]setOption{maxRuntime(10 * time.Minute), budget(5, 0)}, options...)...)
	}
	// The start is recorded rounded down: up to a second of the runtime had not begun.
	const over = -10*time.Minute - time.Second
	tests := map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		finished time.Time
		want     ends
	}{
		"it has just started": {
			set: limited(started(0)), existing: allOf(pair(), readyPods(2)), want: ends{Attempts: []int32{0}, Next: 10*time.Minute + time.Second},
		},
		"not a second too early": {
			set: limited(started(over + time.Second)), existing: allOf(pair(), readyPods(2)), want: ends{Attempts: []int32{0}, Next: time.Second},
		},
		"at the deadline": {set: limited(started(over)), existing: allOf(pair(), readyPods(2)), want: failed(nil)},
		"over restarts": {
			set: limited(started(over), replicaAttempt(0, 2), budget(5, 2)), existing: allOf(pair(), readyPods(2), inAttempt(2)),
			want: failed(func(e *ends) { e.Attempts, e.RestartCount = []int32{2}, 2 }),
		},
		"also while nothing runs":  {set: limited(started(over)), existing: allOf(pair()), want: failed(nil)},
		"it goes before a restart": {set: limited(started(over)), existing: allOf(pair(), breached(0, "why")), want: failed(nil)},
		"a restart that is due goes on until then": {
			set: limited(started(over + time.Second)), existing: allOf(pair()).but("set-0-worker", breached(0, "why")),
			want: ends{
				Attempts: []int32{1}, RestartCount: 1, Confirm: []string{"set-0-worker"}, Next: time.Second,
				Events: []Event{restarting("replica 0, restart 1 of 5: set-0-worker: why")},
			},
		},
		"the first of runtime and breach to be due is the next look": {
			set: limited(started(over+time.Minute), delayed(2*time.Minute)), existing: allOf(pair(), breached(0, "why")), want: ends{Attempts: []int32{0}, Next: time.Minute},
		},
		"be it the breach": {
			set: limited(started(over+time.Minute), delayed(20*time.Second)), existing: allOf(pair(), breached(0, "why")), want: ends{Attempts: []int32{0}, Next: 21 * time.Second},
		},

		"finished in time, it succeeds though that is seen late": {
			set: limited(started(over)), existing: allOf(pair(), hasSucceeded), finished: now.Add(-time.Second), want: succeeded,
		},
		"finished in time, its success is awaited": {
			set: limited(started(over)), existing: allOf(pair(), hasSucceeded).but("set-0-worker", runningPods(2)), finished: now.Add(-time.Second), want: ends{Attempts: []int32{0}},
		},
		"finished too late": {
			set: limited(started(over)), existing: allOf(pair(), hasSucceeded), finished: now, want: failed(nil),
		},
		"finished, nobody knows when": {set: limited(started(over)), existing: allOf(pair(), hasSucceeded), want: failed(nil)},
		"before the deadline nobody asks when": {
			set: limited(started(over + time.Second)), existing: allOf(pair(), hasSucceeded), want: func() ends {
				out := succeeded
				out.Next = time.Second
				return out
			}(),
		},

		"never before it has started":     {set: limited(), existing: allOf(pair()), want: ends{Attempts: []int32{0}}},
		"never without a limit":           {set: pair(budget(5, 0), started(-1000*time.Hour)), existing: allOf(pair(), readyPods(2)), want: ends{Attempts: []int32{0}}},
		"never without anything about it": {set: pair(started(-1000 * time.Hour)), existing: allOf(pair(), readyPods(2)), want: ends{Attempts: []int32{0}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, tc.existing)
			s.FinishedAt = tc.finished
			expect(t, "ends", tc.want, endsOf(DecideSet(s, now)))
		})
	}
}

// The pass that first sees a pod run records the start; the runtime is awaited from the
// next one on, which reads it back.
func TestTheRuntimeIsAwaitedOnceTheStartIsOnRecord(t *testing.T) {
	s := setOf(pair(maxRuntime(time.Minute)), allOf(pair(), runningPods(1)))
	first := DecideSet(s, now)
	expect(t, "start", at(0), *first.Status.StartTime)
	s.Set = s.Set.DeepCopy()
	s.Set.Status = first.Status
	expect(t, "next", now.Add(61*time.Second), DecideSet(s, now).Next)
}

// How late a decision is, is measured from when it was due.
func TestWhenADecisionWasDue(t *testing.T) {
	three := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return pair(append([]setOption{replicas(3), delayed(time.Minute)}, options...)...)
	}
	breaches := have{"set-0-worker": {breached(2*time.Minute, "a")}, "set-1-worker": {breached(3*time.Minute, "b")}, "set-2-worker": {breached(time.Second, "c")}}
	tests := map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		want     time.Time
	}{
		"nothing is decided":                 {three(budget(5, 0)), nil, time.Time{}},
		"nothing is due":                     {three(budget(5, 0)), have{"set-2-worker": {breached(time.Second, "c")}}, time.Time{}},
		"of several restarts the first":      {three(budget(5, 0)), breaches, now.Add(-2*time.Minute + time.Second)},
		"of a failure that uses up the rest": {three(), breaches, now.Add(-2*time.Minute + time.Second)},
		"the end of the runtime":             {three(budget(5, 0), maxRuntime(time.Minute), started(-5*time.Minute)), breaches, now.Add(-4*time.Minute + time.Second)},
		"the runtime is not over":            {three(budget(5, 0), maxRuntime(time.Hour), started(-5*time.Minute)), nil, time.Time{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "due", tc.want, DecideSet(setOf(tc.set, tc.existing), now).Due) })
	}
}
