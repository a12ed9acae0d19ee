package gang

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestCompletedIndexesOnlyGrow(t *testing.T) {
	drained := func(offset time.Duration) podOption {
		return func(p *Pod) { p.DeletionRequested = ptr.To(now.Add(offset)) }
	}
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		want   string
	}{
		"exit 0 finishes an index":              {training(3), pods(podOf(0, running), podOf(1, succeeded)), "1"},
		"several make a range":                  {training(4), podsOfAll(4, succeeded), "0-3"},
		"they join what was finished before":    {training(4, completed("0,2")), pods(podOf(1, succeeded)), "0-2"},
		"a deleted pod leaves its index":        {training(3, completed("0-1")), pods(podOf(2, running)), "0-1"},
		"so does a failure after the success":   {training(3, completed("0-1")), pods(podOf(0, failed, withUID("again")), podOf(2, running)), "0-1"},
		"exit 1 finishes nothing":               {training(1), pods(podOf(0, failed)), ""},
		"a Ready pod has not finished":          {training(1), pods(podOf(0, ready)), ""},
		"Inference never finishes":              {inference(1), pods(podOf(0, succeeded)), ""},
		"a pod above the size finishes nothing": {training(1), pods(podOf(0, running), podOf(1, succeeded)), ""},
		// D9: what exits with 0 because it was told to stop has not finished.
		"exit 0 before the deletion was requested": {
			training(1), pods(podOf(0, succeeded, finished(-61*time.Second), drained(-60*time.Second))), "0",
		},
		"exit 0 after the deletion was requested": {
			training(1), pods(podOf(0, succeeded, finished(-59*time.Second), drained(-60*time.Second))), "",
		},
		"exit 0 within the second of the request proves nothing": {
			training(1), pods(podOf(0, succeeded, finished(-60*time.Second), drained(-60*time.Second))), "",
		},
		"exit 0 of a pod that was told to go at an unknown time": {
			training(1), pods(podOf(0, succeeded, finished(-60*time.Second), func(p *Pod) { p.DeletionRequested = &time.Time{} })), "",
		},
		// Somebody has asked once more, with a shorter grace period.
		"exit 0 after a request that is on record, and before another one": {
			training(1, failedBefore(0, 1, -60*time.Second)), pods(podOf(0, succeeded, finished(-60*time.Second), drained(-30*time.Second))), "",
		},
		"exit 0 of a pod that had failed before": {
			training(1, failedBefore(0, 1, -time.Hour)), pods(podOf(0, succeeded)), "0",
		},
		"exit 0 at an unknown time, of a pod that is being deleted": {
			training(1), pods(podOf(0, succeeded, func(p *Pod) { p.FinishedAt = time.Time{} }, drained(-60*time.Second))), "",
		},
		"exit 0 at an unknown time": {
			training(1), pods(podOf(0, succeeded, func(p *Pod) { p.FinishedAt = time.Time{} })), "0",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "completed", tc.want, DecideClique(snapshotOf(tc.clique, tc.pods), now).Status.CompletedIndexes)
		})
	}
}

func TestFailuresAreRecordedOncePerPod(t *testing.T) {
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		lost   []int32
		want   string
		// wantTime is that of the first failure.
		wantTime metav1.Time
		record   bool
	}{
		"a failed pod": {
			clique: training(2), pods: pods(podOf(0, running), podOf(1, failed)),
			want: "1×1 uid-1 pod-1 failed (exit code 1)", wantTime: at(-time.Minute), record: true,
		},
		"several, by index": {
			clique: training(3), pods: pods(podOf(2, failed), podOf(0, failed), podOf(1, running)),
			want: "0×1 uid-0 pod-0 failed (exit code 1); 2×1 uid-2 pod-2 failed (exit code 1)", wantTime: at(-time.Minute), record: true,
		},
		"at an unknown time: now": {
			clique: training(1), pods: pods(podOf(0, failed, func(p *Pod) { p.FinishedAt = time.Time{} })),
			want: "0×1 uid-0 pod-0 failed (exit code 1)", wantTime: at(0), record: true,
		},
		"by a node whose clock is ahead: now": {
			clique: training(1), pods: pods(podOf(0, failed, finished(10*time.Minute))),
			want: "0×1 uid-0 pod-0 failed (exit code 1)", wantTime: at(0), record: true,
		},
		"by a node whose clock is behind: not before the pod was made": {
			clique: training(1), pods: pods(podOf(0, failed, finished(-time.Hour), func(p *Pod) { p.Created = now.Add(-10 * time.Second) })),
			want: "0×1 uid-0 pod-0 failed (exit code 1)", wantTime: at(-10 * time.Second), record: true,
		},
		"by a server whose clock is ahead: now": {
			clique: training(1), pods: pods(podOf(0, failed, func(p *Pod) { p.Created = now.Add(time.Minute) })),
			want: "0×1 uid-0 pod-0 failed (exit code 1)", wantTime: at(0), record: true,
		},
		"the same pod again": {
			clique: training(1, failedBefore(0, 1, -time.Minute)), pods: pods(podOf(0, failed)),
			want: "0×1 uid-0 before", wantTime: at(-time.Minute),
		},
		"the next pod of the index": {
			clique: training(1, failedBefore(0, 1, -2*time.Minute)), pods: pods(podOf(0, failed, withUID("next"))),
			want: "0×2 next pod-0 failed (exit code 1)", wantTime: at(-time.Minute), record: true,
		},
		"another index goes between those on record": {
			clique: training(3, failedBefore(0, 1, -time.Hour), failedBefore(2, 1, -time.Hour)),
			pods:   pods(podOf(0, failed), podOf(1, failed), podOf(2, failed)),
			want:   "0×1 uid-0 before; 1×1 uid-1 pod-1 failed (exit code 1); 2×1 uid-2 before", wantTime: at(-time.Hour), record: true,
		},
		"however long ago the last one was, the count goes on": {
			clique: training(1, failedBefore(0, 4, -time.Hour)), pods: pods(podOf(0, failed, withUID("next"))),
			want: "0×5 next pod-0 failed (exit code 1)", wantTime: at(-time.Minute), record: true,
		},
		"also when the index had been well for less than ten minutes": {
			clique: training(1, failedBefore(0, 4, -time.Hour), recovered(0, -11*time.Minute+time.Second)), pods: pods(podOf(0, failed, withUID("next"))),
			want: "0×5 next pod-0 failed (exit code 1)", wantTime: at(-time.Minute), record: true,
		},
		"after ten minutes in which it was well, the count starts anew": {
			clique: training(1, failedBefore(0, 4, -time.Hour), recovered(0, -11*time.Minute)), pods: pods(podOf(0, failed, withUID("next"))),
			want: "0×1 next pod-0 failed (exit code 1)", wantTime: at(-time.Minute), record: true,
		},
		"a pod that runs has not failed": {clique: training(1), pods: podsOfAll(1, running)},
		"nor has one that exited with 0": {clique: training(1), pods: podsOfAll(1, succeeded), record: true},
		"a trainer that exits with 0 when told to stop has failed": {
			clique: training(1), pods: pods(podOf(0, succeeded, terminating)),
			want: "0×1 uid-0 pod-0 exited with 0 only after its deletion was requested", wantTime: at(-time.Minute), record: true,
		},
		"a failed pod of a finished index is not recorded": {
			clique: training(2, completed("0")), pods: pods(podOf(0, failed, withUID("again")), podOf(1, running)),
		},
		"a failed pod in Inference": {
			clique: inference(1), pods: podsOfAll(1, failed),
			want: "0×1 uid-0 pod-0 failed (exit code 1)", wantTime: at(-time.Minute), record: true,
		},
		"exit 0 in Inference": {
			clique: inference(1), pods: podsOfAll(1, succeeded), want: "0×1 uid-0 pod-0 ended", wantTime: at(-time.Minute), record: true,
		},
		"in Inference a pod that ends because it is deleted has not failed": {
			clique: inference(1), pods: podsOfAll(1, failed, terminating),
		},
		"in Training it has: nobody else made up for it": {
			clique: training(1), pods: podsOfAll(1, failed, terminating),
			want: "0×1 uid-0 pod-0 failed (exit code 1)", wantTime: at(-time.Minute), record: true,
		},
		"a lost pod": {
			clique: training(2), pods: pods(podOf(0, running)), lost: []int32{1},
			want: "1×1  the pod of index 1 of set-0-worker is gone", wantTime: at(0), record: true,
		},
		"a missing pod is lost only after a live read": {clique: training(2), pods: pods(podOf(0, running))},
		"a lost pod that is there":                     {clique: training(1), pods: podsOfAll(1, running), lost: []int32{0}},
		"a lost pod that is on its way out":            {clique: training(1), pods: podsOfAll(1, running, terminating), lost: []int32{0}},
		"a lost pod that had finished":                 {clique: training(2, completed("0")), pods: pods(podOf(1, running)), lost: []int32{0}},
		"a lost pod that had failed": {
			clique: training(1, failedBefore(0, 1, -time.Hour)), lost: []int32{0}, want: "0×1 uid-0 before", wantTime: at(-time.Hour),
		},
		"Inference loses nothing: a pod that is gone is made again": {clique: inference(1), lost: []int32{0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			snapshot := snapshotOf(tc.clique, tc.pods)
			snapshot.Lost = tc.lost
			got := DecideClique(snapshot, now)
			expect(t, "failures", tc.want, failuresOf(got.Status))
			expect(t, "record", tc.record, got.Record)
			if len(got.Status.FailedIndexes) > 0 {
				expect(t, "time", tc.wantTime, got.Status.FailedIndexes[0].LastTime)
			}
		})
	}
}

// A node whose clock is ahead by less than the back-off makes nobody wait longer.
func TestANodeWhoseClockIsAheadHoldsNoReplacementBack(t *testing.T) {
	got := DecideClique(snapshotOf(inference(1), pods(podOf(0, failed, finished(10*time.Minute)))), now).Status
	clique := inference(1)
	clique.Status = got
	next := DecideClique(snapshotOf(clique, nil), now.Add(firstBackoff))
	expect(t, "pods made again", []int32{0}, next.Create)
}

// A node whose clock is behind tells of a failure before the one that is on record.
func TestTheTimeOfAFailureDoesNotGoBack(t *testing.T) {
	clique := training(1, failedBefore(0, 1, -time.Second))
	late := podOf(0, failed, func(pod *Pod) { pod.UID, pod.FinishedAt = "next", now.Add(-time.Minute) })
	got := DecideClique(snapshotOf(clique, pods(late)), now).Status.FailedIndexes
	expect(t, "count", int32(2), got[0].Count)
	expect(t, "time", at(-time.Second), got[0].LastTime)
}

func TestCreatedReplicas(t *testing.T) {
	type record struct {
		Attempt  *int32
		Replicas int32
		Record   bool
	}
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		want   record
	}{
		"some pods are missing": {training(3, notCreated), podsOfAll(2), record{nil, 0, false}},
		"all pods exist":        {training(3, notCreated), podsOfAll(3), record{ptr.To[int32](0), 3, true}},
		"it is recorded once":   {training(3), podsOfAll(3), record{ptr.To[int32](0), 3, false}},
		"of an attempt": {
			training(2, inAttempt(4), func(c *grovev1alpha1.PodClique) {
				c.Status.CreatedAttempt, c.Status.CreatedReplicas = ptr.To[int32](3), 2
			}),
			podsOfAll(2, ofAttempt(4)), record{ptr.To[int32](4), 2, true},
		},
		"a terminating pod exists": {training(2, notCreated), pods(podOf(0), podOf(1, terminating)), record{ptr.To[int32](0), 2, true}},
		"an old pod does not": {
			training(1, inAttempt(1), notCreated), pods(podOf(0)), record{nil, 0, false},
		},
		"a finished index that is cleaned up was there": {
			training(2, notCreated, completed("0")), pods(podOf(1)), record{ptr.To[int32](0), 2, true},
		},
		"a pod that goes away later is no news": {training(2), pods(podOf(0)), record{ptr.To[int32](0), 2, false}},
		"scale-in lowers it":                    {inference(2, created(5)), podsOfAll(2), record{ptr.To[int32](0), 2, true}},
		"scale-in lowers it before the pods go": {inference(2, created(5)), podsOfAll(5), record{ptr.To[int32](0), 2, true}},
		"scale-in lowers it though a pod is missing": {
			inference(2, created(5)), pods(podOf(0)), record{ptr.To[int32](0), 2, true},
		},
		"scale-out raises it when the new pods are there": {
			inference(4, created(2)), podsOfAll(4), record{ptr.To[int32](0), 4, true},
		},
		"not before": {inference(4, created(2)), podsOfAll(3), record{ptr.To[int32](0), 2, false}},
		"a clique that is scaled to nothing has all of it": {
			inference(0, notCreated), nil, record{ptr.To[int32](0), 0, true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := DecideClique(snapshotOf(tc.clique, tc.pods), now)
			expect(t, "created", tc.want, record{got.Status.CreatedAttempt, got.Status.CreatedReplicas, got.Record})
		})
	}
}

func TestMissingIndexes(t *testing.T) {
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		want   []int32
	}{
		"none":                          {training(3), podsOfAll(3), nil},
		"a pod that was there":          {training(3), pods(podOf(0), podOf(2)), []int32{1}},
		"all of them":                   {training(2), nil, []int32{0, 1}},
		"a terminating pod is there":    {training(1), pods(podOf(0, terminating)), nil},
		"not before all have been made": {training(3, notCreated), pods(podOf(0)), nil},
		"not before all of the attempt": {
			training(2, inAttempt(1), func(c *grovev1alpha1.PodClique) { c.Status.CreatedAttempt = ptr.To[int32](0) }), nil, nil,
		},
		"not before the attempt is on record":       {training(2, attempt(1)), nil, nil},
		"not when the record is of a later attempt": {training(2, func(c *grovev1alpha1.PodClique) { c.Status.ObservedAttempt = 1 }), nil, nil},
		"a pod of an old attempt does not stand for it": {
			training(1, inAttempt(1)), pods(podOf(0)), []int32{0},
		},
		"one that has finished":        {training(2, completed("0")), pods(podOf(1)), nil},
		"one that has failed":          {training(2, failedBefore(0, 1, 0)), pods(podOf(1)), nil},
		"one that was never made":      {training(4, created(2)), pods(podOf(0)), []int32{1}},
		"one above the size":           {training(1, created(3)), pods(podOf(0)), nil},
		"Inference makes them anew":    {inference(2), nil, nil},
		"a surplus pod is not in want": {training(1), pods(podOf(5)), []int32{0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "missing", tc.want, MissingIndexes(tc.clique, tc.pods)) })
	}
}

func TestSuccessOfAClique(t *testing.T) {
	success := isTrue(grovev1alpha1.ReasonAllPodsSucceeded)
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		want   summary
		record bool
	}{
		"all pods exited with 0":                       {training(2), podsOfAll(2, succeeded), success, true},
		"the minimum is not enough":                    {training(2, minAvailable(1)), pods(podOf(0, succeeded), podOf(1, running)), summary{}, false},
		"some of them are gone already":                {training(2, completed("0")), pods(podOf(1, succeeded)), success, true},
		"Inference never succeeds":                     {inference(1, failedBefore(0, 1, 0)), podsOfAll(1, succeeded), summary{}, false},
		"whoever wrote that its indexes have finished": {inference(1, completed("0")), podsOfAll(1, running), summary{}, false},
		"nothing does not succeed":                     {training(0), nil, summary{}, false},
		"indexes above the size":                       {training(2, completed("0,5-9")), pods(podOf(1, running)), summary{}, false},
		"it stays when the pods are gone": {
			training(1, completed("0"), condition(grovev1alpha1.ConditionTypeSucceeded, metav1.ConditionTrue, grovev1alpha1.ReasonAllPodsSucceeded, -time.Hour)),
			nil, success, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := DecideClique(snapshotOf(tc.clique, tc.pods), now)
			expect(t, "Succeeded", tc.want, conditionOf(got.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded))
			expect(t, "record", tc.record, got.Record)
			if tc.record {
				for _, c := range got.Status.Conditions {
					if c.Type == grovev1alpha1.ConditionTypeSucceeded {
						expect(t, "condition", metav1.Condition{
							Type: c.Type, Status: c.Status, Reason: c.Reason, Message: "all 2 pods exited with 0", ObservedGeneration: 3, LastTransitionTime: at(0),
						}, c)
					}
				}
			}
		})
	}
}

// What ends below a parent that fails, is finished or goes ends because of it: pods that
// are told to stop are no failures of their own.
func TestPodsThatEndBecauseOfTheirSetAreNoFailures(t *testing.T) {
	for parent, want := range map[Parent]string{ParentActive: "0", ParentFailing: "", ParentFinished: "", ParentDeleting: ""} {
		t.Run(string(parent), func(t *testing.T) {
			snapshot := snapshotOf(training(2), pods(podOf(0, failed), podOf(1, running)))
			snapshot.Parent = parent
			indexes := ""
			for _, failed := range DecideClique(snapshot, now).Status.FailedIndexes {
				indexes += fmt.Sprint(failed.Index)
			}
			expect(t, "failed indexes", want, indexes)
		})
	}
}

// The status of a clique fits into etcd, however many of its pods fail at once.
func TestTheFailuresOfManyPodsFitIntoAnObject(t *testing.T) {
	const all = 20000
	clique := training(all, minAvailable(1))
	decision := DecideClique(snapshotOf(clique, podsOfAll(all, failed)), now)
	recorded := decision.Status.FailedIndexes
	expect(t, "failures on record", grovev1alpha1.MaxFailedIndexes, len(recorded))
	for i := range recorded {
		if hasMessage := recorded[i].Message != ""; recorded[i].Index != int32(i) || hasMessage != (i < maxFailureMessages) {
			t.Fatalf("entry %d: %+v", i, recorded[i])
		}
		recorded[i].PodUID, recorded[i].RecoveredTime = "01234567-89ab-cdef-0123-456789abcdef", ptr.To(at(0))
	}
	encoded, err := json.Marshal(decision.Status)
	if err != nil {
		t.Fatal(err)
	}
	if most := 5 << 18; len(encoded) > most {
		t.Errorf("the status has %d bytes, want at most %d", len(encoded), most)
	}
}

func TestAnIndexThatIsWellMakesRoomForAFailure(t *testing.T) {
	full := func(recoveredAt map[int32]time.Duration) *grovev1alpha1.PodClique {
		clique := training(grovev1alpha1.MaxFailedIndexes+1, minAvailable(1))
		for index := range int32(grovev1alpha1.MaxFailedIndexes) {
			entry := grovev1alpha1.FailedIndex{Index: index, Count: 1, LastTime: at(-time.Hour)}
			if since, ok := recoveredAt[index]; ok {
				entry.RecoveredTime = ptr.To(at(since))
			}
			clique.Status.FailedIndexes = append(clique.Status.FailedIndexes, entry)
		}
		return clique
	}
	last := int32(grovev1alpha1.MaxFailedIndexes)
	tests := map[string]struct {
		clique   *grovev1alpha1.PodClique
		gone     int32
		recorded bool
	}{
		"none is well": {full(nil), -1, false},
		"the one that has been so for longest goes": {full(map[int32]time.Duration{7: -time.Minute, 9: -3 * time.Minute, 11: -2 * time.Minute}), 9, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := DecideClique(snapshotOf(tc.clique, pods(podOf(last, failed))), now)
			expect(t, "on record", grovev1alpha1.MaxFailedIndexes, len(got.Status.FailedIndexes))
			expect(t, "the failure is on record", tc.recorded, failureOf(&got.Status, last) != nil)
			if tc.gone >= 0 {
				expect(t, "the one that made room is on record", false, failureOf(&got.Status, tc.gone) != nil)
			}
			// What is not on record is not acted on: the pod stays.
			expect(t, "deleted", 0, len(got.Delete))
		})
	}
}
