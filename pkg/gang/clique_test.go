package gang

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestParentOf(t *testing.T) {
	failureTarget := []metav1.Condition{{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue}}
	tests := map[string]struct {
		set  grovev1alpha1.PodCliqueSet
		want Parent
	}{
		"new": {want: ParentActive},
		"running": {
			set:  grovev1alpha1.PodCliqueSet{Status: grovev1alpha1.PodCliqueSetStatus{Phase: grovev1alpha1.PodCliqueSetRunning}},
			want: ParentActive,
		},
		"failing, with the phase of before": {
			set:  grovev1alpha1.PodCliqueSet{Status: grovev1alpha1.PodCliqueSetStatus{Phase: grovev1alpha1.PodCliqueSetRunning, Conditions: failureTarget}},
			want: ParentFailing,
		},
		"failed, so that a pod that slips through is ended": {
			set:  grovev1alpha1.PodCliqueSet{Status: grovev1alpha1.PodCliqueSetStatus{Phase: grovev1alpha1.PodCliqueSetFailed, Conditions: failureTarget}},
			want: ParentFailing,
		},
		"a condition that is False says nothing": {
			set: grovev1alpha1.PodCliqueSet{Status: grovev1alpha1.PodCliqueSetStatus{
				Conditions: []metav1.Condition{{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionFalse}},
			}},
			want: ParentActive,
		},
		"succeeded": {
			set:  grovev1alpha1.PodCliqueSet{Status: grovev1alpha1.PodCliqueSetStatus{Phase: grovev1alpha1.PodCliqueSetSucceeded}},
			want: ParentFinished,
		},
		"deleted, whatever else it is": {
			set: grovev1alpha1.PodCliqueSet{
				ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(at(0))},
				Status:     grovev1alpha1.PodCliqueSetStatus{Phase: grovev1alpha1.PodCliqueSetSucceeded, Conditions: failureTarget},
			},
			want: ParentDeleting,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "parent", tc.want, ParentOf(&tc.set)) })
	}
}

// A decision is durable before it is acted on (D4): each case holds something to record
// and something to do, and the pass does only the first. The pass after it, which has
// read the record back, does the second.
func TestAPassThatRecordsDoesNothingElse(t *testing.T) {
	tests := map[string]struct {
		snapshot CliqueSnapshot
		then     actions
	}{
		"a new attempt": {
			snapshot: snapshotOf(training(2, attempt(1)), podsOfAll(2, running)),
			then:     actions{Delete: []types.UID{"uid-0", "uid-1"}},
		},
		"a new attempt without pods to delete": {
			snapshot: snapshotOf(training(2, attempt(1)), nil),
			then:     actions{Create: []int32{0, 1}},
		},
		"a failure": {
			snapshot: snapshotOf(inference(2), pods(podOf(0, failed))),
			then:     actions{Create: []int32{1}, Delete: []types.UID{"uid-0"}},
		},
		"a failure in training": {
			snapshot: snapshotOf(training(2, minAvailable(1), notCreated), pods(podOf(0, failed))),
			then:     actions{Create: []int32{1}, Delete: []types.UID{"uid-0"}},
		},
		"a lost pod": {
			snapshot: CliqueSnapshot{
				Clique: training(2), Parent: ParentActive, Membership: free, OthersDrained: true, TerminationDelay: new(time.Duration), Pods: pods(podOf(1, running)), Lost: []int32{0},
			},
			then: actions{},
		},
		"that all pods have been made": {
			snapshot: snapshotOf(inference(2, notCreated), append(podsOfAll(2), podOf(2, withUID("surplus")))),
			then:     actions{Delete: []types.UID{"surplus"}},
		},
		"that fewer pods are wanted": {
			snapshot: snapshotOf(inference(1, created(2)), podsOfAll(2)),
			then:     actions{Delete: []types.UID{"uid-1"}},
		},
		"success": {
			snapshot: CliqueSnapshot{
				Clique: training(1, deleted), Parent: ParentActive, Membership: free, OthersDrained: true, TerminationDelay: new(time.Duration), Pods: podsOfAll(1, succeeded),
			},
			then: actions{Delete: []types.UID{"uid-0"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			recording := DecideClique(tc.snapshot, now)
			expect(t, "the pass that records", actions{Record: true}, actionsOf(recording))
			if !recording.Changed || !recording.Urgent {
				t.Errorf("a decision is written at once: changed %v, urgent %v", recording.Changed, recording.Urgent)
			}
			readBack := tc.snapshot
			readBack.Clique = tc.snapshot.Clique.DeepCopy()
			readBack.Clique.Status = recording.Status
			readBack.Lost = nil
			expect(t, "the pass after it", tc.then, actionsOf(DecideClique(readBack, now)))
		})
	}
}

func TestDecideCliqueLeavesTheSnapshotAlone(t *testing.T) {
	clique := inference(2, attempt(1), failedBefore(0, 1, -time.Minute), condition(grovev1alpha1.ConditionTypeSucceeded, metav1.ConditionTrue, "x", 0))
	before := clique.DeepCopy()
	DecideClique(snapshotOf(clique, pods(podOf(0, ofAttempt(1), failed))), now)
	expect(t, "clique", before, clique)
}

func TestANewAttemptStartsItsRecordAnew(t *testing.T) {
	before := training(3, attempt(2), wasAvailable, completed("0-2"), failedBefore(1, 4, -time.Minute),
		condition(grovev1alpha1.ConditionTypeSucceeded, metav1.ConditionTrue, grovev1alpha1.ReasonAllPodsSucceeded, -time.Hour),
		condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionTrue, grovev1alpha1.ReasonInsufficientReadyPods, -time.Hour),
		condition(grovev1alpha1.ConditionTypeNameConflict, metav1.ConditionTrue, grovev1alpha1.ReasonForeignPod, -time.Hour))
	before.Status.CreatedAttempt = ptr.To[int32](1)
	before.Status.ObservedAttempt = 1
	before.Status.HPAPodSelector = ptr.To("selector")
	before.Status.Replicas, before.Status.ReadyReplicas, before.Status.RunningReplicas = 3, 3, 3
	before.Status.ScheduledReplicas, before.Status.UpdatedReplicas, before.Status.ScheduleGatedReplicas = 3, 3, 3

	got := DecideClique(snapshotOf(before, podsOfAll(3, ready, ofAttempt(1))), now).Status

	expect(t, "status", grovev1alpha1.PodCliqueStatus{
		ObservedGeneration: ptr.To[int64](3),
		ObservedAttempt:    2,
		// It never falls, and goes up when the pods of the new attempt have been made.
		CreatedAttempt: ptr.To[int32](1),
		HPAPodSelector: ptr.To("grove.io/podclique=set-0-worker"),
		// The template is the clique's, whatever attempt it is in.
		CurrentPodTemplateHash: ptr.To("hash"), CurrentPodCliqueSetGenerationHash: ptr.To("generation"),
		// Others wait for them to go.
		OldReplicas: 3,
		Conditions: []metav1.Condition{
			{
				Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionFalse, Reason: grovev1alpha1.ReasonNeverAvailable,
				Message: "0 of 3 pods are available, at least 3 are needed", ObservedGeneration: 3, LastTransitionTime: at(0),
			},
			{
				// The foreign pod may still be there.
				Type: grovev1alpha1.ConditionTypeNameConflict, Status: metav1.ConditionTrue, Reason: grovev1alpha1.ReasonForeignPod,
				LastTransitionTime: at(-time.Hour),
			},
			{
				Type: grovev1alpha1.ConditionTypePodCliqueScheduled, Status: metav1.ConditionFalse, Reason: grovev1alpha1.ReasonInsufficientScheduledPods,
				Message: "0 of 3 pods have a node, at least 3 are needed", ObservedGeneration: 3, LastTransitionTime: at(0),
			},
		},
	}, got)
}

// The clock of a breach belongs to the attempt: one that outlives the restart would end
// the new attempt with the age of the old one.
func TestTheClockOfABreachStartsAnewWithTheAttempt(t *testing.T) {
	clique := training(1, attempt(1),
		condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionTrue, grovev1alpha1.ReasonPodsFailed, -time.Hour))
	failing := pods(podOf(0, ofAttempt(1), failed))
	started := DecideClique(snapshotOf(clique, failing), now.Add(-time.Second))
	expect(t, "record", true, started.Record)
	expect(t, "failures in the write that starts the attempt", "", failuresOf(started.Status))
	clique.Status = started.Status
	got := DecideClique(snapshotOf(clique, failing), now).Status
	breach := got.Conditions[slices.IndexFunc(got.Conditions, func(c metav1.Condition) bool { return c.Type == grovev1alpha1.ConditionTypeMinAvailableBreached })]
	expect(t, "breach", isTrue(grovev1alpha1.ReasonPodsFailed), summary{breach.Status, breach.Reason})
	expect(t, "since", at(0), breach.LastTransitionTime)
}

// A controller whose clock was ahead may have recorded the transition before: times do not
// go back, and the API server would refuse it.
func TestTheTimeOfATransitionDoesNotGoBack(t *testing.T) {
	clique := inference(1, wasAvailable, breached(-time.Minute, "x"))
	got := DecideClique(snapshotOf(clique, podsOfAll(1, ready)), now).Status
	expect(t, "breach", isFalse(grovev1alpha1.ReasonSufficientReadyPods), conditionOf(got.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached))
	expect(t, "since", at(time.Minute), meta.FindStatusCondition(got.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached).LastTransitionTime)
}

func TestNothingElseResetsAnAttempt(t *testing.T) {
	clique := training(3, inAttempt(1), wasAvailable, completed("2"), failedBefore(0, 2, -time.Minute))
	got := DecideClique(snapshotOf(clique, pods(podOf(1, running, ofAttempt(1)))), now)
	expect(t, "record", false, got.Record)
	expect(t, "was available", true, got.Status.WasAvailable)
	expect(t, "completed", "2", got.Status.CompletedIndexes)
	expect(t, "failures", "0×2 uid-0 before", failuresOf(got.Status))
	expect(t, "created replicas", int32(3), got.Status.CreatedReplicas)
}

func TestOldPodsOnlyEverGo(t *testing.T) {
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		want   actions
	}{
		"they are deleted, and nothing is made beside them": {
			clique: training(2, inAttempt(1), notCreated), pods: podsOfAll(2, ready),
			want: actions{Delete: []types.UID{"uid-0", "uid-1"}},
		},
		"also those that have ended": {
			clique: training(3, inAttempt(1), notCreated), pods: pods(podOf(0, succeeded), podOf(1, failed)),
			want: actions{Delete: []types.UID{"uid-0", "uid-1"}},
		},
		"nothing is made while the last of them terminates": {
			clique: training(2, inAttempt(1), notCreated), pods: pods(podOf(0, running, terminating)),
		},
		"when they are gone, the new attempt begins": {
			clique: training(2, inAttempt(1), notCreated),
			want:   actions{Create: []int32{0, 1}},
		},
		"a late failure of the old attempt costs nothing": {
			clique: training(2, inAttempt(1), notCreated), pods: pods(podOf(0, failed), podOf(0, withUID("new"), ofAttempt(1), running)),
			want: actions{Delete: []types.UID{"uid-0"}},
		},
		"they do not stand for a missing index": {
			clique: inference(1, inAttempt(1), notCreated), pods: pods(podOf(0, ready)),
			want: actions{Delete: []types.UID{"uid-0"}},
		},
		"an old pod of a higher index is no different": {
			clique: inference(1, inAttempt(1), notCreated), pods: pods(podOf(7, ready)),
			want: actions{Delete: []types.UID{"uid-7"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := DecideClique(snapshotOf(tc.clique, tc.pods), now)
			expect(t, "actions", tc.want, actionsOf(got))
			expect(t, "completed", "", got.Status.CompletedIndexes)
			expect(t, "failures", "", failuresOf(got.Status))
			expect(t, "ready", int32(0), got.Status.ReadyReplicas)
		})
	}
}

// A snapshot with a pod of a later attempt was read from a clique that is out of date:
// its pods are not old, and its status would go backwards.
func TestAStaleSnapshotDecidesNothing(t *testing.T) {
	clique := training(2, inAttempt(1))
	got := DecideClique(snapshotOf(clique, pods(podOf(0, ofAttempt(2), running), podOf(1, ofAttempt(1), failed), podOf(1, withUID("old")))), now)
	expect(t, "decision", CliqueDecision{Status: clique.Status}, got)
}

func TestCounters(t *testing.T) {
	type counters struct{ Replicas, Ready, Running, Scheduled, Gated, Updated int32 }
	tests := map[string]struct {
		pods []Pod
		want counters
	}{
		"no pod":    {},
		"pending":   {podsOfAll(2), counters{Replicas: 2, Updated: 2}},
		"gated":     {podsOfAll(2, gated), counters{Replicas: 2, Updated: 2, Gated: 2}},
		"scheduled": {podsOfAll(2, scheduled), counters{Replicas: 2, Updated: 2, Scheduled: 2}},
		"init containers run": {
			podsOfAll(2, scheduled, func(p *Pod) { p.Started = true }), counters{Replicas: 2, Updated: 2, Scheduled: 2, Running: 2},
		},
		"running": {podsOfAll(2, running), counters{Replicas: 2, Updated: 2, Scheduled: 2, Running: 2}},
		"ready":   {podsOfAll(2, ready), counters{Replicas: 2, Updated: 2, Scheduled: 2, Running: 2, Ready: 2}},
		"ended, though the conditions still say Ready": {
			pods(podOf(0, ready, succeeded), podOf(1, ready, failed)), counters{Replicas: 2, Updated: 2, Scheduled: 2},
		},
		"terminating pods never count": {podsOfAll(3, ready, gated, terminating), counters{}},
		"from another template":        {podsOfAll(2, fromTemplate("other")), counters{Replicas: 2}},
		"above the size":               {pods(podOf(0, ready), podOf(4, ready)), counters{Replicas: 1, Updated: 1, Scheduled: 1, Running: 1, Ready: 1}},
		"one per index":                {pods(podOf(0, ready), podOf(0, ready, withUID("twin"))), counters{Replicas: 1, Updated: 1, Scheduled: 1, Running: 1, Ready: 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clique := inference(4)
			// What the status says from before does not add up with what is counted.
			clique.Status.Replicas, clique.Status.ReadyReplicas, clique.Status.RunningReplicas = 9, 9, 9
			clique.Status.ScheduledReplicas, clique.Status.ScheduleGatedReplicas, clique.Status.UpdatedReplicas = 9, 9, 9
			got := DecideClique(snapshotOf(clique, tc.pods), now).Status
			expect(t, "counters", tc.want, counters{
				got.Replicas, got.ReadyReplicas, got.RunningReplicas, got.ScheduledReplicas, got.ScheduleGatedReplicas, got.UpdatedReplicas,
			})
		})
	}
}

// Two pods of one index: one of them stays, and which one does not depend on the order
// in which a cache lists them, else two passes could delete one each.
func TestOneOfTwoPodsOfAnIndexStays(t *testing.T) {
	tests := map[string]struct {
		pods []Pod
		want []types.UID
	}{
		"two that are alike":            {pods(podOf(0, running, withUID("a")), podOf(0, running, withUID("b"))), []types.UID{"b"}},
		"the one that terminates, goes": {pods(podOf(0, running, withUID("a"), terminating), podOf(0, running, withUID("b"))), nil},
		"three":                         {pods(podOf(0, running, withUID("a")), podOf(0, running, withUID("b")), podOf(0, running, withUID("c"))), []types.UID{"b", "c"}},
		"two that stay to choose from":  {pods(podOf(0, running, withUID("a"), terminating), podOf(0, running, withUID("b")), podOf(0, running, withUID("c"))), []types.UID{"c"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for range tc.pods {
				got := DecideClique(snapshotOf(inference(1), tc.pods), now)
				expect(t, "actions", actions{Delete: tc.want}, actionsOf(got))
				expect(t, "replicas", int32(1), got.Status.Replicas)
				tc.pods = append(tc.pods[1:], tc.pods[0])
			}
			slices.Reverse(tc.pods)
			expect(t, "actions in reverse", actions{Delete: tc.want}, actionsOf(DecideClique(snapshotOf(inference(1), tc.pods), now)))
		})
	}
}

// Counts may wait for a second, transitions may not.
func TestUrgentIsWhatChangesMoreThanACount(t *testing.T) {
	// settle is the clique after a pass over some pods.
	settle := func(clique *grovev1alpha1.PodClique, all []Pod) *grovev1alpha1.PodClique {
		clique = clique.DeepCopy()
		clique.Status = DecideClique(snapshotOf(clique, all), now.Add(-time.Hour)).Status
		return clique
	}
	replicas4 := inference(4, minAvailable(2))
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		want   [2]bool // changed, urgent
	}{
		"nothing": {settle(replicas4, podsOfAll(4, ready)), podsOfAll(4, ready), [2]bool{false, false}},
		"one more exists": {
			settle(replicas4, podsOfAll(2)), podsOfAll(3), [2]bool{true, false},
		},
		"one more has a node": {
			settle(replicas4, podsOfAll(4)), pods(podOf(0, scheduled), podOf(1), podOf(2), podOf(3)), [2]bool{true, false},
		},
		"one fewer is held by a gate": {
			settle(replicas4, podsOfAll(4, gated)), pods(podOf(0), podOf(1, gated), podOf(2, gated), podOf(3, gated)), [2]bool{true, false},
		},
		"the first that follows another template": {
			settle(replicas4, podsOfAll(4)), pods(podOf(0, fromTemplate("x")), podOf(1), podOf(2), podOf(3)), [2]bool{true, true},
		},
		"one more that does": {
			settle(replicas4, pods(podOf(0, fromTemplate("x")), podOf(1), podOf(2), podOf(3))),
			pods(podOf(0, fromTemplate("x")), podOf(1, fromTemplate("x")), podOf(2), podOf(3)), [2]bool{true, false},
		},
		"the first runs": {
			settle(replicas4, podsOfAll(4, scheduled)), pods(podOf(0, running), podOf(1, scheduled), podOf(2, scheduled), podOf(3, scheduled)), [2]bool{true, true},
		},
		"the second runs": {
			settle(replicas4, pods(podOf(0, running), podOf(1, scheduled), podOf(2, scheduled), podOf(3, scheduled))),
			pods(podOf(0, running), podOf(1, running), podOf(2, scheduled), podOf(3, scheduled)), [2]bool{true, false},
		},
		"the last one runs no more": {
			settle(replicas4, pods(podOf(0, running))), pods(podOf(0, running, terminating)), [2]bool{true, true},
		},
		"one of the spare pods is not ready": {
			settle(replicas4, podsOfAll(4, ready)), pods(podOf(0, ready), podOf(1, ready), podOf(2, ready), podOf(3, running)), [2]bool{true, false},
		},
		"the minimum has nodes": {
			settle(replicas4, pods(podOf(0, scheduled), podOf(1), podOf(2), podOf(3))),
			pods(podOf(0, scheduled), podOf(1, scheduled), podOf(2), podOf(3)), [2]bool{true, true},
		},
		"the minimum is ready": {
			settle(replicas4, pods(podOf(0, ready), podOf(1, running), podOf(2, running), podOf(3, running))),
			pods(podOf(0, ready), podOf(1, ready), podOf(2, running), podOf(3, running)), [2]bool{true, true},
		},
		"the minimum is broken": {
			settle(replicas4, pods(podOf(0, ready), podOf(1, ready), podOf(2, running), podOf(3, running))),
			pods(podOf(0, ready), podOf(1, running), podOf(2, running), podOf(3, running)), [2]bool{true, true},
		},
		"one more index has finished, which is written once a second": {
			settle(training(4, minAvailable(2)), podsOfAll(4, ready)),
			pods(podOf(0, succeeded), podOf(1, ready), podOf(2, ready), podOf(3, ready)), [2]bool{true, false},
		},
		"the spec has another generation": {
			func() *grovev1alpha1.PodClique {
				clique := settle(replicas4, podsOfAll(4, ready))
				clique.Generation++
				return clique
			}(), podsOfAll(4, ready), [2]bool{true, true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := DecideClique(snapshotOf(tc.clique, tc.pods), now)
			expect(t, "changed, urgent", tc.want, [2]bool{got.Changed, got.Urgent})
			expect(t, "record", false, got.Record)
			expect(t, "observed generation", &tc.clique.Generation, got.Status.ObservedGeneration)
		})
	}
}

// The end of a failing set relies on cliques that have recorded that they make no pods (D11).
func TestACliqueRecordsThatItsSetFails(t *testing.T) {
	for parent, want := range map[Parent]bool{ParentActive: false, ParentFailing: true, ParentFinished: false, ParentDeleting: false} {
		s := snapshotOf(training(2, wasAvailable), pods(podOf(0, ready)))
		s.Parent = parent
		d := DecideClique(s, now)
		expect(t, string(parent), want, KnowsOfFailure(&grovev1alpha1.PodClique{Status: d.Status}))
		if want {
			expect(t, "creates", 0, len(d.Create))
			expect(t, "is written at once", true, d.Changed && d.Urgent)
		}
	}
}
