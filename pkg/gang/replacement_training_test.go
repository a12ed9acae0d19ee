package gang

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// In Training pods are replaced within the tolerance of minAvailable, and between a breach
// and the end of its delay; a failed one is kept for its back-off, to be looked at (D10).
func TestTrainingReplaces(t *testing.T) {
	tolerant := func(options ...cliqueOption) *grovev1alpha1.PodClique {
		return training(2, append([]cliqueOption{minAvailable(1)}, options...)...)
	}
	up := podOf(1, ready)
	const off = time.Duration(-1)
	replaced := actions{Delete: []types.UID{"uid-0"}}
	made := actions{Create: []int32{0}}
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		// delay after which a breach ends the attempt; none ends it when it is off.
		delay time.Duration
		want  actions
	}{
		"a failed pod is kept for 10 s":           {clique: tolerant(failedBefore(0, 1, 0)), pods: pods(podOf(0, failed), up), want: actions{Next: 10 * time.Second}},
		"less what has passed":                    {clique: tolerant(failedBefore(0, 1, -9*time.Second)), pods: pods(podOf(0, failed), up), want: actions{Next: time.Second}},
		"then it goes":                            {clique: tolerant(failedBefore(0, 1, -10*time.Second)), pods: pods(podOf(0, failed), up), want: replaced},
		"20 s after the second failure":           {clique: tolerant(failedBefore(0, 2, 0)), pods: pods(podOf(0, failed), up), want: actions{Next: 20 * time.Second}},
		"160 s after the fifth":                   {clique: tolerant(failedBefore(0, 5, 0)), pods: pods(podOf(0, failed), up), want: actions{Next: 160 * time.Second}},
		"never after the sixth":                   {clique: tolerant(failedBefore(0, 6, -time.Hour)), pods: pods(podOf(0, failed), up)},
		"nor is it made again then":               {clique: tolerant(failedBefore(0, 6, -time.Hour)), pods: pods(up)},
		"nor is any other":                        {clique: training(3, minAvailable(1), failedBefore(0, 6, -time.Hour), failedBefore(2, 1, -time.Hour)), pods: pods(up, podOf(2, failed))},
		"when it is gone another is made":         {clique: tolerant(failedBefore(0, 1, -10*time.Second)), pods: pods(up), want: made},
		"not before":                              {clique: tolerant(failedBefore(0, 1, -10*time.Second)), pods: pods(podOf(0, failed, terminating), up)},
		"a lost one is made again after its time": {clique: tolerant(failedBefore(0, 1, -4*time.Second)), pods: pods(up), want: actions{Next: 6 * time.Second}},
		"the pod after it stays":                  {clique: tolerant(failedBefore(0, 1, -time.Minute)), pods: pods(podOf(0, running, withUID("new")), up)},
		"one that loops is the kubelet's":         {clique: tolerant(failedBefore(0, 1, -time.Minute)), pods: pods(podOf(0, crashLooping), up)},
		"one that has finished is never made":     {clique: tolerant(completed("0"), failedBefore(0, 1, -time.Minute)), pods: pods(up)},
		"nor does it go":                          {clique: tolerant(completed("0"), failedBefore(0, 1, -time.Minute)), pods: pods(podOf(0, succeeded, withUID("new")), up)},
		"one that was drained is made again": {
			clique: tolerant(failedBefore(0, 1, -time.Minute)), pods: pods(podOf(0, succeeded, terminating), up),
		},
		"without a failure nothing is made that was there: a live look says whether it is lost": {clique: tolerant(), pods: pods(up)},
		"an index that is well again and is gone, likewise": {
			clique: tolerant(failedBefore(0, 1, -time.Hour), recovered(0, -time.Minute)), pods: pods(up),
		},

		"a breach without a delay ends the attempt at once: nothing is replaced": {
			clique: training(2, wasAvailable, failedBefore(0, 1, -time.Minute), breached(time.Minute, "x")), pods: pods(podOf(0, failed), up),
		},
		"within its delay the pod is replaced": {
			clique: training(2, wasAvailable, failedBefore(0, 1, -time.Minute), breached(30*time.Second, "x")), pods: pods(podOf(0, failed), up), delay: time.Minute, want: replaced,
		},
		"and made again": {
			clique: training(2, wasAvailable, failedBefore(0, 1, -time.Minute), breached(30*time.Second, "x")), pods: pods(up), delay: time.Minute, want: made,
		},
		"to its end": {
			clique: training(2, wasAvailable, failedBefore(0, 1, -time.Minute), breached(60*time.Second, "x")), pods: pods(podOf(0, failed), up), delay: time.Minute, want: replaced,
		},
		"not after it": {
			clique: training(2, wasAvailable, failedBefore(0, 1, -time.Minute), breached(61*time.Second, "x")), pods: pods(podOf(0, failed), up), delay: time.Minute,
		},
		"nor made again": {
			clique: training(2, wasAvailable, failedBefore(0, 1, -time.Minute), breached(61*time.Second, "x")), pods: pods(up), delay: time.Minute,
		},
		"where nothing ends the attempt, for as long as it takes": {
			clique: training(2, wasAvailable, failedBefore(0, 1, -time.Minute), breached(time.Hour, "x")), pods: pods(podOf(0, failed), up), delay: off, want: replaced,
		},
		"no index is made when another one ends the attempt": {
			clique: training(3, notCreated, failedBefore(0, 1, -time.Minute), breached(time.Minute, "x")), pods: pods(podOf(0, failed), up),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(tc.clique, tc.pods)
			s.TerminationDelay = &tc.delay
			if tc.delay == off {
				s.TerminationDelay = nil
			}
			expect(t, "actions", tc.want, actionsOf(DecideClique(s, now)))
		})
	}
}

func TestNothingIsMadeBeforeOthersAreDrained(t *testing.T) {
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		want   actions
	}{
		"a new attempt":                 {clique: training(2, inAttempt(1), notCreated)},
		"the rest of it":                {clique: training(2, inAttempt(1), notCreated), pods: pods(podOf(0, ofAttempt(1), running))},
		"a replacement":                 {clique: inference(1, failedBefore(0, 1, -time.Minute))},
		"old pods go all the same":      {clique: training(2, inAttempt(1), notCreated), pods: podsOfAll(2, running), want: actions{Delete: []types.UID{"uid-0", "uid-1"}}},
		"what is too much goes as well": {clique: inference(1), pods: podsOfAll(2, ready), want: actions{Delete: []types.UID{"uid-1"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(tc.clique, tc.pods)
			s.OthersDrained = false
			expect(t, "actions", tc.want, actionsOf(DecideClique(s, now)))
		})
	}
}

// A pod that is active below a parent that is over is there because two controllers
// overlapped; finished ones stay, so that their logs can be read (D11, D12), and so does one
// of which the kubelet has yet to say that it is Failed.
func TestActivePodsGoBelowAParentThatIsOver(t *testing.T) {
	for _, parent := range []Parent{ParentFinished, ParentFailing} {
		for _, clique := range []*grovev1alpha1.PodClique{training(4, completed("0")), inference(4)} {
			t.Run(string(parent)+" "+string(clique.Spec.WorkloadType), func(t *testing.T) {
				s := snapshotOf(clique, pods(podOf(0, succeeded), podOf(1, failed), podOf(2, running), podOf(3, failing)))
				s.Parent = parent
				expect(t, "actions", actions{Delete: []types.UID{"uid-2"}}, actionsOf(DecideClique(s, now)))
			})
		}
	}
}
