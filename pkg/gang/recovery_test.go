package gang

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// An index is broken from its failure until a pod of it is Ready again (D8), and that is
// recorded, so that what follows does not depend on who looks when.
func TestAReadyPodMendsItsIndex(t *testing.T) {
	broken := func(options ...cliqueOption) *grovev1alpha1.PodClique {
		return training(2, append([]cliqueOption{minAvailable(1), failedBefore(0, 3, -time.Minute)}, options...)...)
	}
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pod    []Pod
		want   *metav1.Time
		record bool
	}{
		"Ready": {broken(), pods(podOf(0, ready, withUID("new"))), ptr.To(at(0)), true},
		// A container that is started again in its pod is well again as well.
		"the same pod, Ready again":  {broken(), pods(podOf(0, ready)), ptr.To(at(0)), true},
		"in Inference, too":          {inference(2, failedBefore(0, 3, -time.Minute)), pods(podOf(0, ready, withUID("new"))), ptr.To(at(0)), true},
		"it runs, and is not Ready":  {broken(), pods(podOf(0, running, withUID("new"))), nil, false},
		"there is no pod":            {broken(), nil, nil, false},
		"Ready, on its way out":      {broken(), pods(podOf(0, ready, terminating)), nil, false},
		"Ready says one that failed": {broken(), pods(podOf(0, ready, failed)), nil, false},
		"Ready says one that loops":  {broken(), pods(podOf(0, ready, crashLooping)), nil, false},
		"Ready, of an attempt before": {
			broken(inAttempt(1)), pods(podOf(0, ready, withUID("old"), ofAttempt(0))), nil, false,
		},
		"recovered before": {broken(recovered(0, -30*time.Second)), pods(podOf(0, ready, withUID("new"))), ptr.To(at(-30 * time.Second)), false},
		"recovered, and not Ready for a moment": {
			broken(recovered(0, -30*time.Second)), pods(podOf(0, running, withUID("new"))), ptr.To(at(-30 * time.Second)), false,
		},
		"the clock of the node that told of the failure is ahead": {
			training(2, minAvailable(1), failedBefore(0, 3, time.Second)), pods(podOf(0, ready, withUID("new"))), ptr.To(at(time.Second)), true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := DecideClique(snapshotOf(tc.clique, append(tc.pod, podOf(1, ready, ofAttempt(tc.clique.Spec.Attempt)))), now)
			failed := d.Status.FailedIndexes[0]
			expect(t, "recovered", tc.want, failed.RecoveredTime)
			expect(t, "record", tc.record, d.Record)
			expect(t, "count", int32(3), failed.Count)
			expect(t, "message", "before", failed.Message)
		})
	}
}

// With restartPolicy OnFailure a container that keeps failing shows as a crash loop. It is
// one failure, however often it is started (D8).
func TestACrashLoopBreaksItsIndexOnce(t *testing.T) {
	const loops = "pod-0 fails again and again (exit code 1)"
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pod    Pod
		want   string
		record bool
	}{
		"the first time":              {training(1), podOf(0, crashLooping), "0×1 uid-0 " + loops, true},
		"again":                       {training(1, failedBefore(0, 1, -time.Minute)), podOf(0, crashLooping), "0×1 uid-0 before", false},
		"in the next pod":             {training(1, failedBefore(0, 1, -time.Minute)), podOf(0, crashLooping, withUID("next")), "0×2 next " + loops, true},
		"after the pod had recovered": {training(1, failedBefore(0, 1, -time.Minute), recovered(0, -time.Second)), podOf(0, crashLooping), "0×1 uid-0 " + loops, true},
		"long after it, it is the same pod": {
			training(1, failedBefore(0, 3, -time.Hour), recovered(0, -time.Hour)), podOf(0, crashLooping), "0×3 uid-0 " + loops, true,
		},
		"it ends as Failed": {training(1, failedBefore(0, 1, -time.Minute)), podOf(0, failed), "0×1 uid-0 before", false},
		"it runs at last":   {training(1, failedBefore(0, 1, -time.Minute)), podOf(0, running), "0×1 uid-0 before", false},
		"on its way out":    {training(1), podOf(0, crashLooping, terminating), "", false},
		"of an index that has finished": {
			training(1, completed("0"), condition(grovev1alpha1.ConditionTypeSucceeded, metav1.ConditionTrue, grovev1alpha1.ReasonAllPodsSucceeded, 0)), podOf(0, crashLooping), "", false,
		},
		"in Inference the kubelet sees to it": {inference(1), podOf(0, crashLooping), "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := DecideClique(snapshotOf(tc.clique, pods(tc.pod)), now)
			expect(t, "failures", tc.want, failuresOf(d.Status))
			expect(t, "record", tc.record, d.Record)
			// The kubelet starts it again: the pod is left to it.
			expect(t, "delete", []Pod(nil), d.Delete)
			if tc.record {
				expect(t, "since", at(0), d.Status.FailedIndexes[0].LastTime)
				expect(t, "recovered", (*metav1.Time)(nil), d.Status.FailedIndexes[0].RecoveredTime)
			}
		})
	}
}

func TestExhaustedIndex(t *testing.T) {
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		want   bool
	}{
		"nothing has failed":               {training(2), false},
		"five failures":                    {training(2, failedBefore(0, 5, 0)), false},
		"the sixth":                        {training(2, failedBefore(0, 6, 0)), true},
		"more":                             {training(2, failedBefore(0, 9, 0)), true},
		"of any index":                     {training(2, failedBefore(0, 1, 0), failedBefore(1, 6, 0)), true},
		"of which it has recovered":        {training(2, failedBefore(0, 6, -time.Minute), recovered(0, 0)), false},
		"of an index that is scaled away":  {training(2, failedBefore(2, 6, 0)), false},
		"in Inference a pod is never lost": {inference(2, failedBefore(0, 6, 0)), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "exhausted", tc.want, ExhaustedIndex(tc.clique) != nil) })
	}
}

// An index is broken until its pod is Ready or has succeeded (D8): a job that is done is
// not restarted because of how often it failed before.
func TestAFinishedIndexIsNotExhausted(t *testing.T) {
	clique := training(1, completed("0"), failedBefore(0, 6, -time.Minute),
		condition(grovev1alpha1.ConditionTypeSucceeded, metav1.ConditionTrue, grovev1alpha1.ReasonAllPodsSucceeded, 0))
	expect(t, "exhausted", (*grovev1alpha1.FailedIndex)(nil), ExhaustedIndex(clique))
}
