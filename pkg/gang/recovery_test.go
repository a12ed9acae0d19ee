package gang

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// Hundreds of failures that are made good leave a status that is cheap to write, and no
// write of their own; the next failure of each index counts as if all were told in full.
func TestRecoveriesBeyondTheLastFewAreKeptInShort(t *testing.T) {
	const well = 12
	clique := training(40, minAvailable(1))
	for index := range int32(well) {
		clique.Status.FailedIndexes = append(clique.Status.FailedIndexes, grovev1alpha1.FailedIndex{
			Index: index, Count: index%2 + 1, LastTime: at(-time.Hour), PodUID: types.UID(fmt.Sprintf("%08d-and-more", index)),
			// The first is the last to recover.
			RecoveredTime: ptr.To(at(-time.Duration(index+1) * time.Minute)), Message: "failed",
		})
	}
	clique.Status.ObservedAttempt = clique.Spec.Attempt
	others := podsOfAll(well, ready)
	quiet := DecideClique(snapshotOf(clique, others), now)
	expect(t, "kept in short while no index fails", 0, len(quiet.Status.RecoveredIndexes))

	broken := append(slices.Clone(others), podOf(20, failed))
	fails := DecideClique(snapshotOf(clique, broken), now)
	indexes := func(status *grovev1alpha1.PodCliqueStatus) (all []int32) {
		for i := range status.FailedIndexes {
			all = append(all, status.FailedIndexes[i].Index)
		}
		return all
	}
	expect(t, "told in full", []int32{0, 1, 2, 3, 4, 5, 6, 7, 20}, indexes(&fails.Status))
	expect(t, "kept in short", []string{
		"8@" + at(-9*time.Minute).UTC().Format(time.RFC3339) + "/00000008", "9x2@" + at(-10*time.Minute).UTC().Format(time.RFC3339) + "/00000009",
		"10@" + at(-11*time.Minute).UTC().Format(time.RFC3339) + "/00000010", "11x2@" + at(-12*time.Minute).UTC().Format(time.RFC3339) + "/00000011",
	}, fails.Status.RecoveredIndexes)
	expect(t, "events", 1, len(fails.Events))

	// A ninth that recovers waits for the next failure, as long as it takes.
	clique.Status = fails.Status
	clique.Status.FailedIndexes = append(clique.Status.FailedIndexes, grovev1alpha1.FailedIndex{Index: 21, Count: 1, LastTime: at(-time.Minute), PodUID: "uid-21", RecoveredTime: ptr.To(at(0))})
	waits := DecideClique(snapshotOf(clique, broken), now)
	expect(t, "in short while a failed pod waits for its back-off", fails.Status.RecoveredIndexes, waits.Status.RecoveredIndexes)
}

// The failure after a recovery that is kept in short counts on, of the same pod it does not
// count again, and after ten minutes it starts anew (D8).
func TestARecoveryThatIsKeptInShortIsRemembered(t *testing.T) {
	for name, tc := range map[string]struct {
		record string
		uid    types.UID
		count  int32
	}{
		"another pod fails":                      {"3x5@" + at(-9*time.Minute).UTC().Format(time.RFC3339) + "/aaaaaaaa", "bbbbbbbb-1", 6},
		"the same pod fails again":               {"3x5@" + at(-9*time.Minute).UTC().Format(time.RFC3339) + "/aaaaaaaa", "aaaaaaaa-1", 5},
		"it has been well for ten minutes":       {"3x5@" + at(-11*time.Minute).UTC().Format(time.RFC3339) + "/aaaaaaaa", "bbbbbbbb-1", 1},
		"the pod before was lost":                {"3@" + at(-9*time.Minute).UTC().Format(time.RFC3339), "bbbbbbbb-1", 2},
		"another index, whose record is in full": {"2x5@" + at(-9*time.Minute).UTC().Format(time.RFC3339) + "/aaaaaaaa", "aaaaaaaa-1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			clique := training(5, minAvailable(1))
			clique.Status.ObservedAttempt = clique.Spec.Attempt
			clique.Status.RecoveredIndexes = []string{"1@" + at(-time.Minute).UTC().Format(time.RFC3339), tc.record}
			pod := podOf(3, failed)
			pod.UID = tc.uid
			got := DecideClique(snapshotOf(clique, pods(pod)), now)
			failed := failureOf(&got.Status, 3)
			if failed == nil {
				t.Fatalf("not on record: %+v", got.Status)
			}
			expect(t, "count", tc.count, failed.Count)
			expect(t, "pod", tc.uid, failed.PodUID)
			expect(t, "recovered", (*metav1.Time)(nil), failed.RecoveredTime)
			_, inShort := takeRecovery(&got.Status, 3)
			expect(t, "still in short", false, inShort)
			expect(t, "events", true, len(got.Events) > 0)
			expect(t, "exhausted", tc.count == 6, exhaustedIndex(clique, &got.Status) != nil)
		})
	}
}

func TestANewAttemptForgetsRecoveries(t *testing.T) {
	clique := training(5)
	clique.Spec.Attempt = 1
	clique.Status.RecoveredIndexes = []string{"1@2026-11-29T04:57:56Z"}
	expect(t, "kept in short", 0, len(DecideClique(snapshotOf(clique, nil), now).Status.RecoveredIndexes))
}
