package gang

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// An event tells of an occurrence once: with the write that records it.
func TestEventsOfAClique(t *testing.T) {
	podFailed := func(message string) Event { return Event{"Warning", EventPodFailed, message} }
	const below = "set-0-worker: 1 of 2 pods are available, at least 2 are needed: "
	failedFor := func(reason, causes string) Event { return Event{"Warning", reason, below + causes} }
	wasBreached := breached(time.Minute, "before")
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		lost   []int32
		parent Parent
		want   []Event
	}{
		"all is well": {clique: training(2), pods: podsOfAll(2, ready)},
		"a failure within the tolerance": {
			clique: training(2, minAvailable(1)), pods: pods(podOf(0, failed), podOf(1, ready)), want: []Event{podFailed("pod-0 failed (exit code 1)")},
		},
		"that is on record": {clique: training(2, minAvailable(1), failedBefore(0, 1, -time.Minute)), pods: pods(podOf(0, failed), podOf(1, ready))},
		"the next pod of the index": {
			clique: training(2, minAvailable(1), failedBefore(0, 1, -time.Hour)), pods: pods(podOf(0, failed, withUID("next")), podOf(1, ready)),
			want: []Event{podFailed("pod-0 failed (exit code 1)")},
		},
		"a failure after ten minutes in which all was well": {
			clique: training(2, minAvailable(1), failedBefore(0, 1, -time.Hour), recovered(0, -30*time.Minute)), pods: pods(podOf(0, failed, withUID("next")), podOf(1, ready)),
			want: []Event{podFailed("pod-0 failed (exit code 1)")},
		},
		"the same pod fails again after it had recovered": {
			clique: training(2, minAvailable(1), failedBefore(0, 1, -time.Hour), recovered(0, -30*time.Minute)), pods: pods(podOf(0, crashLooping), podOf(1, ready)),
			want: []Event{podFailed("pod-0 fails again and again (exit code 1)")},
		},
		"a recovery": {
			clique: training(2, minAvailable(1), failedBefore(0, 1, -time.Minute)), pods: podsOfAll(2, ready),
			want: []Event{{"Normal", EventPodRecovered, "set-0-worker: index 0 is Ready again, 1m0s after: before"}},
		},
		"a recovery and a failure": {
			clique: inference(3, minAvailable(1), failedBefore(0, 1, -time.Minute)), pods: pods(podOf(0, ready), podOf(1, failed), podOf(2, ready)),
			want: []Event{podFailed("pod-1 failed (exit code 1)"), {"Normal", EventPodRecovered, "set-0-worker: index 0 is Ready again, 1m0s after: before"}},
		},
		"three are named": {
			clique: training(5, minAvailable(1)), pods: append(podsOfAll(4, failed), podOf(4, ready)),
			want: []Event{podFailed("pod-0 failed (exit code 1); pod-1 failed (exit code 1); pod-2 failed (exit code 1); and 1 more")},
		},
		"a lost pod": {
			clique: training(2, minAvailable(1)), pods: pods(podOf(0, ready)), lost: []int32{1}, want: []Event{podFailed("the pod of index 1 of set-0-worker is gone")},
		},
		"a failure in Inference": {
			clique: inference(2, minAvailable(1)), pods: pods(podOf(0, failed), podOf(1, ready)), want: []Event{podFailed("pod-0 failed (exit code 1)")},
		},

		"a failure that breaches, in Training": {
			clique: training(2, wasAvailable), pods: pods(podOf(0, failed), podOf(1, ready)),
			want: []Event{podFailed("pod-0 failed (exit code 1)"), failedFor(EventPodCliqueFailed, "pod-0 failed (exit code 1)")},
		},
		"one that breaches, in Inference": {
			clique: inference(2, wasAvailable), pods: pods(podOf(0, failed), podOf(1, ready)),
			want: []Event{podFailed("pod-0 failed (exit code 1)"), failedFor(EventMinAvailableBreached, "pod-0 failed (exit code 1)")},
		},
		"a breach without a failure": {
			clique: training(2, wasAvailable), pods: pods(podOf(0, running, func(p *Pod) { p.Node = "gpu-17" }), podOf(1, ready)),
			want: []Event{failedFor(EventPodCliqueFailed, "pod-0 is not Ready on node gpu-17")},
		},
		"a breach that lasts": {clique: training(2, wasAvailable, wasBreached), pods: pods(podOf(0, running), podOf(1, ready))},
		"a failure while it lasts": {
			clique: training(2, wasAvailable, wasBreached), pods: pods(podOf(0, failed), podOf(1, ready)), want: []Event{podFailed("pod-0 failed (exit code 1)")},
		},
		"a breach after one that was over": {
			clique: inference(2, wasAvailable, condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionFalse, "R", -time.Hour)), pods: pods(podOf(0, running), podOf(1, ready)),
			want: []Event{failedFor(EventMinAvailableBreached, "pod-0 is not Ready")},
		},
		"a breach after an update": {
			clique: inference(2, wasAvailable, condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionUnknown, "R", -time.Hour)), pods: pods(podOf(0, running), podOf(1, ready)),
			want: []Event{failedFor(EventMinAvailableBreached, "pod-0 is not Ready")},
		},
		"the end of a breach": {
			clique: training(2, wasAvailable, wasBreached), pods: podsOfAll(2, ready),
			want: []Event{{"Normal", EventMinAvailableRestored, "set-0-worker: 2 of 2 pods are available, at least 2 are needed, after a breach of 1m0s"}},
		},
		"one that a new attempt ends is not told": {
			clique: training(2, inAttempt(1), attempt(2), wasAvailable, wasBreached), pods: podsOfAll(2, ready),
		},
		"nor one that ends because nothing is needed any more": {clique: inference(0, wasAvailable, wasBreached)},
		"nor is a clique that is still coming":                 {clique: training(2), pods: pods(podOf(0, running), podOf(1, ready))},

		"what becomes of pods below a set that fails is no news": {
			clique: training(2, wasAvailable), pods: pods(podOf(0, failed), podOf(1, ready)), parent: ParentFailing,
		},
		"nor below one that has succeeded": {
			clique: training(2, wasAvailable), pods: pods(podOf(0, failed), podOf(1, ready)), parent: ParentFinished,
		},
		"nor below one that is deleted": {
			clique: inference(2, wasAvailable), pods: pods(podOf(0, failed), podOf(1, ready)), parent: ParentDeleting,
		},
		"nor below a clique that is deleted, such as one that is scaled away": {
			clique: inference(2, wasAvailable, deleted), pods: pods(podOf(0, failed), podOf(1, ready)),
		},
		"pods that do not go are news there, too": {
			clique: inference(2, wasAvailable), pods: pods(podOf(0, ready, terminating, func(p *Pod) { p.Node = "gpu-17" }), podOf(1, ready)), parent: ParentDeleting,
			want: []Event{{"Warning", EventPodsStuckTerminating, "set-0-worker: still there 30s after their grace period: pod-0 on node gpu-17"}},
		},
		"they are told once": {
			clique: inference(2, wasAvailable, condition(grovev1alpha1.ConditionTypePodsStuckTerminating, metav1.ConditionTrue, grovev1alpha1.ReasonPodsTerminating, -time.Minute)),
			pods:   podsOfAll(2, ready, terminating), parent: ParentDeleting,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(tc.clique, tc.pods)
			s.Lost = tc.lost
			if tc.parent != "" {
				s.Parent = tc.parent
			}
			d := DecideClique(s, now)
			expect(t, "events", tc.want, d.Events)
			if len(d.Events) > 0 && !(d.Changed && d.Urgent) {
				t.Error("an event comes with a write that may wait")
			}
			s.Clique = s.Clique.DeepCopy()
			s.Clique.Status, s.Lost = d.Status, nil
			expect(t, "events of the next pass", []Event(nil), DecideClique(s, now).Events)
		})
	}
}
