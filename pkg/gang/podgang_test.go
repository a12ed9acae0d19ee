package gang

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// newGang is a gang of attempt 0 with 2 pods of clique a and 1 pod of clique b.
func newGang(change func(*schedulerv1alpha1.PodGang)) *schedulerv1alpha1.PodGang {
	podGang := &schedulerv1alpha1.PodGang{
		ObjectMeta: metav1.ObjectMeta{Name: "set-0", Generation: 2, Labels: map[string]string{labels.RestartAttempt: "0"}},
		Spec: schedulerv1alpha1.PodGangSpec{PodGroups: []schedulerv1alpha1.PodGangPodGroup{
			{Name: "a", MinReplicas: 2}, {Name: "b", MinReplicas: 1},
		}},
	}
	if change != nil {
		change(podGang)
	}
	return podGang
}

func gangCondition(podGang *schedulerv1alpha1.PodGang, conditionType string, status metav1.ConditionStatus) {
	meta.SetStatusCondition(&podGang.Status.Conditions, metav1.Condition{Type: conditionType, Status: status, Reason: "Before", LastTransitionTime: at(-time.Hour)})
}

// member is a clique of a gang by its counters.
func member(size, minimum, exist, placed, readyPods int32, options ...cliqueOption) *grovev1alpha1.PodClique {
	clique := inference(size, minAvailable(minimum))
	clique.Status.Replicas, clique.Status.ScheduledReplicas, clique.Status.ReadyReplicas = exist, placed, readyPods
	for _, option := range options {
		option(clique)
	}
	return clique
}

func TestDecideGang(t *testing.T) {
	type outcome struct {
		Phase                         schedulerv1alpha1.PodGangPhase
		Initialized, Scheduled, Ready summary
		Message                       string
	}
	created, notCreated := isTrue("PodGangPodsCreated"), isFalse("PodGangPodsCreationPending")
	readyYes, readyNo := isTrue("PodsReady"), isFalse("PodsNotReady")
	pending := func(initialized summary, reason, message string) outcome {
		return outcome{schedulerv1alpha1.PodGangPending, initialized, isFalse(reason), readyNo, message}
	}
	why := func(reason, message string) []schedulerv1alpha1.UnschedulableExplanation {
		return []schedulerv1alpha1.UnschedulableExplanation{{Reason: reason, Message: message}}
	}
	type cliques = map[string]*grovev1alpha1.PodClique
	tests := map[string]struct {
		snapshot GangSnapshot
		want     outcome
	}{
		"no clique yet": {
			GangSnapshot{PodGang: newGang(nil)},
			pending(notCreated, schedulerv1alpha1.ReasonWaitingForPods, "0 of 3 pods exist"),
		},
		"a pod is missing: the scheduler's own words would mislead": {
			GangSnapshot{
				PodGang: newGang(nil), Why: why(schedulerv1alpha1.ReasonNotEnoughResources, "0/4 nodes"),
				Cliques: cliques{"a": member(2, 2, 1, 0, 0), "b": member(1, 1, 1, 0, 0)},
			},
			pending(notCreated, schedulerv1alpha1.ReasonWaitingForPods, "2 of 3 pods exist"),
		},
		"surplus pods of one clique do not stand for another's": {
			GangSnapshot{
				PodGang: newGang(nil),
				Cliques: cliques{"a": member(5, 2, 5, 5, 0), "b": member(1, 1, 0, 0, 0)},
			},
			pending(notCreated, schedulerv1alpha1.ReasonWaitingForPods, "2 of 3 pods exist"),
		},
		"pods of the attempt before are none": {
			GangSnapshot{
				PodGang: newGang(nil),
				Cliques: cliques{"a": member(2, 2, 2, 2, 2, attempt(1)), "b": member(1, 1, 1, 1, 1)},
			},
			pending(notCreated, schedulerv1alpha1.ReasonWaitingForPods, "1 of 3 pods exist"),
		},
		"nor are those of a clique that has not followed the gang into its attempt": {
			GangSnapshot{
				PodGang: newGang(func(g *schedulerv1alpha1.PodGang) { g.Labels[labels.RestartAttempt] = "1" }),
				Untold:  true,
				Cliques: cliques{"a": member(2, 2, 2, 2, 2), "b": member(1, 1, 1, 1, 1)},
			},
			pending(notCreated, schedulerv1alpha1.ReasonWaitingForPods, "0 of 3 pods exist"),
		},
		"all exist, and the scheduler has said nothing": {
			GangSnapshot{
				PodGang: newGang(nil),
				Cliques: cliques{"a": member(2, 2, 2, 0, 0), "b": member(1, 1, 1, 0, 0)},
			},
			pending(created, schedulerv1alpha1.ReasonWaitingForPods, "all 3 pods exist and wait for the scheduler"),
		},
		"all exist, and the scheduler says why not": {
			GangSnapshot{
				PodGang: newGang(nil), Why: why(schedulerv1alpha1.ReasonNotEnoughResources, "0/4 nodes"),
				Cliques: cliques{"a": member(2, 2, 2, 0, 0), "b": member(1, 1, 1, 0, 0)},
			},
			pending(created, schedulerv1alpha1.ReasonNotEnoughResources, "0/4 nodes"),
		},
		"nodes alone do not make it scheduled where gangs are": {
			GangSnapshot{
				PodGang: newGang(nil),
				Cliques: cliques{"a": member(2, 2, 2, 2, 0), "b": member(1, 1, 1, 1, 0)},
			},
			pending(created, schedulerv1alpha1.ReasonWaitingForPods, "all 3 pods exist and wait for the scheduler"),
		},
		"scheduled": {
			GangSnapshot{
				PodGang: newGang(nil), Scheduled: true,
				Cliques: cliques{"a": member(2, 2, 2, 2, 1), "b": member(1, 1, 1, 1, 1)},
			},
			outcome{schedulerv1alpha1.PodGangStarting, created, isTrue(schedulerv1alpha1.ReasonPodGangScheduled), readyNo, "all 3 pods have been placed"},
		},
		"ready": {
			GangSnapshot{
				PodGang: newGang(nil), Scheduled: true,
				Cliques: cliques{"a": member(2, 2, 2, 2, 2), "b": member(1, 1, 1, 1, 1)},
			},
			outcome{schedulerv1alpha1.PodGangRunning, created, isTrue(schedulerv1alpha1.ReasonPodGangScheduled), readyYes, "all 3 pods have been placed"},
		},
		"one clique is missing: not ready": {
			GangSnapshot{
				PodGang: newGang(nil), Scheduled: true,
				Cliques: cliques{"a": member(2, 2, 2, 2, 2)},
			},
			outcome{schedulerv1alpha1.PodGangStarting, notCreated, isTrue(schedulerv1alpha1.ReasonPodGangScheduled), readyNo, "all 3 pods have been placed"},
		},
		"what was scheduled once stays so": {
			GangSnapshot{
				PodGang: newGang(func(g *schedulerv1alpha1.PodGang) {
					gangCondition(g, schedulerv1alpha1.PodGangConditionScheduled, metav1.ConditionTrue)
					gangCondition(g, schedulerv1alpha1.PodGangConditionInitialized, metav1.ConditionTrue)
				}), Why: why(schedulerv1alpha1.ReasonPodGroupMissing, ""),
				Cliques: cliques{"a": member(2, 2, 1, 1, 1), "b": member(1, 1, 1, 1, 1)},
			},
			outcome{schedulerv1alpha1.PodGangStarting, created, isTrue("Before"), readyNo, ""},
		},
		"but not into another attempt": {
			GangSnapshot{
				PodGang: newGang(func(g *schedulerv1alpha1.PodGang) {
					g.Labels[labels.RestartAttempt] = "1"
					gangCondition(g, schedulerv1alpha1.PodGangConditionScheduled, metav1.ConditionTrue)
					gangCondition(g, schedulerv1alpha1.PodGangConditionInitialized, metav1.ConditionTrue)
				}),
				Cliques: cliques{"a": member(2, 2, 0, 0, 0, inAttempt(1)), "b": member(1, 1, 1, 0, 0, inAttempt(1))},
			},
			pending(notCreated, schedulerv1alpha1.ReasonWaitingForPods, "1 of 3 pods exist"),
		},
		"members of a recycled copy are of the base gang's attempt too": {
			GangSnapshot{
				PodGang: newGang(nil),
				Cliques: cliques{"a": member(2, 2, 2, 0, 0, inAttempt(3)), "b": member(1, 1, 1, 0, 0)},
			},
			pending(created, schedulerv1alpha1.ReasonWaitingForPods, "all 3 pods exist and wait for the scheduler"),
		},
		"without gang scheduling it waits until all have a node": {
			GangSnapshot{
				PodGang: newGang(nil), Untold: true,
				Cliques: cliques{"a": member(4, 2, 4, 4, 0), "b": member(1, 1, 1, 0, 0)},
			},
			pending(created, schedulerv1alpha1.ReasonGangsUnsupported, "the scheduler places pods one by one: 2 of 3 have a node"),
		},
		"a scheduler that does not tell, and places gangs as a whole, is waited for": {
			GangSnapshot{
				PodGang: newGang(nil), Untold: true, AllOrNothing: true,
				Cliques: cliques{"a": member(4, 2, 4, 4, 0), "b": member(1, 1, 1, 0, 0)},
			},
			pending(created, schedulerv1alpha1.ReasonWaitingForPods, "all 3 pods exist and wait for the scheduler"),
		},
		"and then counts as scheduled": {
			GangSnapshot{
				PodGang: newGang(nil), Untold: true,
				Cliques: cliques{"a": member(2, 2, 2, 2, 0), "b": member(1, 1, 1, 1, 0)},
			},
			outcome{schedulerv1alpha1.PodGangStarting, created, isTrue(schedulerv1alpha1.ReasonPodGangScheduled), readyNo, "all 3 pods have been placed"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.snapshot.PodGang.DeepCopy()
			status, changed := DecideGang(tc.snapshot, now)
			expect(t, "the gang that was read", before, tc.snapshot.PodGang)
			got := outcome{
				Phase:       status.Phase,
				Initialized: conditionOf(status.Conditions, schedulerv1alpha1.PodGangConditionInitialized),
				Scheduled:   conditionOf(status.Conditions, schedulerv1alpha1.PodGangConditionScheduled),
				Ready:       conditionOf(status.Conditions, schedulerv1alpha1.PodGangConditionReady),
			}
			if c := meta.FindStatusCondition(status.Conditions, schedulerv1alpha1.PodGangConditionScheduled); c != nil {
				got.Message = c.Message
			}
			// The one reason that the table does not spell.
			if got.Initialized == isTrue("Before") {
				got.Initialized = created
			}
			expect(t, "outcome", tc.want, got)
			expect(t, "observed generation", ptr.To[int64](2), status.ObservedGeneration)
			expect(t, "observed attempt", GangAttempt(tc.snapshot.PodGang), status.ObservedAttempt)
			expect(t, "changed", true, changed)

			tc.snapshot.PodGang = tc.snapshot.PodGang.DeepCopy()
			tc.snapshot.PodGang.Status = status
			again, changed := DecideGang(tc.snapshot, now.Add(time.Hour))
			expect(t, "changed again", false, changed)
			expect(t, "status again", status, again)
		})
	}
}

func TestWasScheduled(t *testing.T) {
	tests := map[string]struct {
		change func(*schedulerv1alpha1.PodGang)
		want   bool
	}{
		"new": {nil, false},
		"not yet": {func(g *schedulerv1alpha1.PodGang) {
			gangCondition(g, schedulerv1alpha1.PodGangConditionScheduled, metav1.ConditionFalse)
		}, false},
		"yes": {func(g *schedulerv1alpha1.PodGang) {
			gangCondition(g, schedulerv1alpha1.PodGangConditionScheduled, metav1.ConditionTrue)
		}, true},
		"in the attempt before": {func(g *schedulerv1alpha1.PodGang) {
			gangCondition(g, schedulerv1alpha1.PodGangConditionScheduled, metav1.ConditionTrue)
			g.Labels[labels.RestartAttempt] = "1"
		}, false},
		"in this attempt": {func(g *schedulerv1alpha1.PodGang) {
			gangCondition(g, schedulerv1alpha1.PodGangConditionScheduled, metav1.ConditionTrue)
			g.Labels[labels.RestartAttempt], g.Status.ObservedAttempt = "1", 1
		}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "was scheduled", tc.want, WasScheduled(newGang(tc.change))) })
	}
}

// Pods wait until the scheduler has been told of a gang that has changed, unless its group is new.
func TestIsTold(t *testing.T) {
	observed := func(generation int64, attempt int32) func(*schedulerv1alpha1.PodGang) {
		return func(g *schedulerv1alpha1.PodGang) {
			g.Status.ObservedGeneration, g.Status.ObservedAttempt, g.Labels[labels.RestartAttempt] = &generation, attempt, "1"
		}
	}
	for name, tc := range map[string]struct {
		change func(*schedulerv1alpha1.PodGang)
		want   bool
	}{
		"it is new":                    {nil, true},
		"as it is":                     {observed(2, 1), true},
		"as it was before":             {observed(1, 1), false},
		"as it was in another attempt": {observed(1, 0), true},
	} {
		t.Run(name, func(t *testing.T) { expect(t, "told", tc.want, IsTold(newGang(tc.change))) })
	}
}

// Of those that are placed together, only members that have finished may be missing (D23).
func TestMembersNeeded(t *testing.T) {
	type cliques = map[string]*grovev1alpha1.PodClique
	scheduledOnce := newGang(func(g *schedulerv1alpha1.PodGang) {
		gangCondition(g, schedulerv1alpha1.PodGangConditionScheduled, metav1.ConditionTrue)
	})
	// Of a, with a surplus pod, one waits for a node.
	waiting := func(options ...cliqueOption) *grovev1alpha1.PodClique { return member(3, 2, 3, 2, 2, options...) }
	for name, tc := range map[string]struct {
		podGang *schedulerv1alpha1.PodGang
		cliques cliques
		want    Needed
	}{
		"before it was scheduled":              {newGang(nil), cliques{"a": waiting(completed("0")), "b": member(1, 1, 1, 1, 1)}, Needed{Members: 3, Left: 2}},
		"a pod waits, and none has finished":   {scheduledOnce, cliques{"a": waiting(), "b": member(1, 1, 1, 1, 1)}, Needed{Members: 3, Left: 3, Raise: true}},
		"a pod waits, and one has finished":    {scheduledOnce, cliques{"a": waiting(completed("0")), "b": member(1, 1, 1, 1, 1)}, Needed{Members: 2, Left: 2}},
		"one of the other clique has finished": {scheduledOnce, cliques{"a": waiting(), "b": member(1, 1, 1, 1, 1, completed("0"))}, Needed{Members: 2, Left: 2}},
		"who has finished was no member":       {scheduledOnce, cliques{"a": waiting(completed("2")), "b": member(1, 1, 1, 1, 1)}, Needed{Members: 3, Left: 3, Raise: true}},
		"nobody waits":                         {scheduledOnce, cliques{"a": member(2, 2, 2, 2, 2, completed("0")), "b": member(1, 1, 1, 1, 1)}, Needed{Members: 3, Left: 2}},
		"others will come back":                {scheduledOnce, cliques{"a": member(2, 2, 1, 0, 0), "b": member(1, 1, 0, 0, 0)}, Needed{Members: 3, Left: 3, Raise: true}},
		"all but a surplus pod have finished":  {scheduledOnce, cliques{"a": waiting(completed("0-1")), "b": member(1, 1, 1, 1, 1, completed("0"))}, Needed{Members: 1}},
		"a clique of the attempt before":       {scheduledOnce, cliques{"a": waiting(), "b": member(1, 1, 1, 0, 1, completed("0"), attempt(1))}, Needed{Members: 3, Left: 3, Raise: true}},
		"a clique that is not there":           {scheduledOnce, cliques{"a": waiting(completed("1"))}, Needed{Members: 2, Left: 2}},
		"a clique is scaled to 0": {
			newGang(func(g *schedulerv1alpha1.PodGang) { g.Spec.PodGroups[0].MinReplicas = 0 }), cliques{"b": member(1, 1, 1, 1, 1)}, Needed{Members: 1, Left: 1, Raise: true},
		},
		"the gang of a later attempt has it anew": {
			newGang(func(g *schedulerv1alpha1.PodGang) {
				gangCondition(g, schedulerv1alpha1.PodGangConditionScheduled, metav1.ConditionTrue)
				g.Labels[labels.RestartAttempt] = "1"
			}),
			cliques{"a": waiting(inAttempt(1), completed("0")), "b": member(1, 1, 1, 1, 1, inAttempt(1))}, Needed{Members: 3, Left: 2},
		},
	} {
		t.Run(name, func(t *testing.T) { expect(t, "needed", tc.want, MembersNeeded(tc.podGang, tc.cliques)) })
	}
}

func TestMembersNeededByGroup(t *testing.T) {
	type cliques = map[string]*grovev1alpha1.PodClique
	type needed = map[string]int32
	scheduledOnce := newGang(func(g *schedulerv1alpha1.PodGang) {
		gangCondition(g, schedulerv1alpha1.PodGangConditionScheduled, metav1.ConditionTrue)
	})
	// Of a, two are members and one is a surplus pod.
	a := func(options ...cliqueOption) *grovev1alpha1.PodClique { return member(3, 2, 3, 3, 3, options...) }
	b := func(options ...cliqueOption) *grovev1alpha1.PodClique { return member(1, 1, 1, 1, 1, options...) }
	for name, tc := range map[string]struct {
		podGang *schedulerv1alpha1.PodGang
		cliques cliques
		want    needed
	}{
		"before it was scheduled":            {newGang(nil), cliques{"a": a(completed("0")), "b": b()}, needed{"a": 2, "b": 1}},
		"none has finished":                  {scheduledOnce, cliques{"a": a(), "b": b()}, needed{"a": 2, "b": 1}},
		"one has finished, and nobody waits": {scheduledOnce, cliques{"a": a(completed("1")), "b": b()}, needed{"a": 1, "b": 1}},
		"who has finished was no member":     {scheduledOnce, cliques{"a": a(completed("2")), "b": b()}, needed{"a": 2, "b": 1}},
		"only a surplus pod is left":         {scheduledOnce, cliques{"a": a(completed("0-1")), "b": b()}, needed{"a": 1, "b": 1}},
		"nobody of a clique is left":         {scheduledOnce, cliques{"a": a(completed("0-2")), "b": b()}, needed{"b": 1}},
		"nobody is left":                     {scheduledOnce, cliques{"a": a(completed("0-2")), "b": b(completed("0"))}, needed{}},
		"a clique of the attempt before":     {scheduledOnce, cliques{"a": a(completed("0"), attempt(1)), "b": b()}, needed{"a": 2, "b": 1}},
		"a clique that is not there":         {scheduledOnce, cliques{"b": b(completed("0"))}, needed{"a": 2}},
		"a clique of no pods": {
			newGang(func(g *schedulerv1alpha1.PodGang) { g.Spec.PodGroups[0].MinReplicas = 0 }), cliques{"b": b()}, needed{"b": 1},
		},
	} {
		t.Run(name, func(t *testing.T) { expect(t, "needed", tc.want, MembersNeededByGroup(tc.podGang, tc.cliques)) })
	}
}
