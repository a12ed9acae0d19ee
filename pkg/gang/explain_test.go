package gang

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// asking gives the pods of a clique two containers.
func asking(clique *grovev1alpha1.PodClique) {
	list := func(cpu, gpu string) corev1.ResourceList {
		out := corev1.ResourceList{}
		if cpu != "" {
			out[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if gpu != "" {
			out["example.com/gpu"] = resource.MustParse(gpu)
		}
		return out
	}
	clique.Spec.PodSpec.Containers = []corev1.Container{
		{Name: "main", Resources: corev1.ResourceRequirements{Limits: list("4", "2"), Requests: list("1", "")}},
		{Name: "side", Resources: corev1.ResourceRequirements{Requests: list("500m", "")}},
	}
}

func TestAGangIsExplained(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	type cliques = map[string]*grovev1alpha1.PodClique
	type explanation = schedulerv1alpha1.UnschedulableExplanation
	waiting := func(message string, have, need, gated int32) []explanation {
		return []explanation{{
			Reason: "WaitingForPods", Message: message,
			Details: &schedulerv1alpha1.UnschedulableExplanationDetails{PodDetails: &schedulerv1alpha1.PodDetails{Have: have, Need: need, Gated: gated}},
		}}
	}
	noRoom := []explanation{{Reason: "NotEnoughResources", Message: "0/4 nodes"}}
	noRoomFor := func(cpu, gpu string) []explanation {
		return []explanation{{Reason: "NotEnoughResources", Message: "0/4 nodes", Details: &schedulerv1alpha1.UnschedulableExplanationDetails{
			ResourceDetails: &schedulerv1alpha1.ResourceDetails{Requested: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), "example.com/gpu": resource.MustParse(gpu),
			}},
		}}}
	}
	tests := map[string]struct {
		snapshot GangSnapshot
		want     []explanation
	}{
		"a pod is missing": {
			GangSnapshot{Why: noRoom, Gated: 1, Cliques: cliques{"a": member(2, 2, 1, 0, 0), "b": member(1, 1, 1, 0, 0)}},
			waiting("2 of 3 pods exist", 2, 3, 1),
		},
		"one is held by a gate": {
			GangSnapshot{Why: noRoom, Gated: 1, Cliques: cliques{"a": member(2, 2, 2, 0, 0), "b": member(1, 1, 1, 0, 0)}},
			waiting("1 of 3 pods are held by scheduling gates", 3, 3, 1),
		},
		"the scheduler has not looked": {
			GangSnapshot{Cliques: cliques{"a": member(2, 2, 2, 0, 0), "b": member(1, 1, 1, 0, 0)}},
			waiting("all 3 pods exist and wait for the scheduler", 3, 3, 0),
		},
		// Requests count, limits where there are none, for the pods that have no node.
		"no room": {
			GangSnapshot{Why: noRoom, Cliques: cliques{"a": member(2, 2, 2, 1, 0, asking), "b": member(1, 1, 1, 0, 0, asking)}},
			noRoomFor("3", "4"),
		},
		"no room for pods that ask for nothing": {
			GangSnapshot{Why: noRoom, Cliques: cliques{"a": member(2, 2, 2, 0, 0), "b": member(1, 1, 1, 0, 0)}}, noRoom,
		},
		"other reasons need no requests": {
			GangSnapshot{Why: []explanation{{Reason: "SchedulerError", Message: "boom"}}, Cliques: cliques{"a": member(2, 2, 2, 0, 0, asking), "b": member(1, 1, 1, 0, 0, asking)}},
			[]explanation{{Reason: "SchedulerError", Message: "boom"}},
		},
		"it is placed": {
			GangSnapshot{Scheduled: true, Why: noRoom, Cliques: cliques{"a": member(2, 2, 2, 2, 0), "b": member(1, 1, 1, 1, 0)}}, nil,
		},
		"it is placed, and a pod is missing": {
			GangSnapshot{Scheduled: true, Cliques: cliques{"a": member(2, 2, 1, 1, 0), "b": member(1, 1, 1, 1, 0)}}, nil,
		},
		"it is placed, and a member finds no room while a pod beyond the minimum has some": {
			GangSnapshot{Scheduled: true, Why: noRoom, Cliques: cliques{"a": member(3, 2, 3, 2, 0, asking), "b": member(1, 1, 1, 1, 0, asking)}}, noRoom,
		},
		"it is placed, and a replacement finds no room": {
			GangSnapshot{Scheduled: true, Why: noRoom, Cliques: cliques{"a": member(2, 2, 2, 1, 0, asking), "b": member(1, 1, 1, 1, 0, asking)}},
			noRoomFor("1500m", "2"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.snapshot.PodGang = newGang(nil)
			status, _ := DecideGang(tc.snapshot, now)
			if len(tc.want) == 0 {
				expect(t, "conditions", 0, len(status.SchedulingConditions))
				return
			}
			want := []schedulerv1alpha1.SchedulingCondition{{
				Type: "UnschedulableOnNodePool", Status: "True", TransitionID: "1", LastTransitionTime: metav1.NewTime(now), Reasons: tc.want,
			}}
			if !apiequality.Semantic.DeepEqual(want, status.SchedulingConditions) {
				expect(t, "conditions", want, status.SchedulingConditions)
			}
		})
	}
}

// Who follows the conditions sees each change once, and nothing when nothing has changed.
func TestAnExplanationIsWrittenOncePerChange(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	podGang := newGang(nil)
	snapshot := GangSnapshot{PodGang: podGang, Cliques: map[string]*grovev1alpha1.PodClique{"a": member(2, 2, 1, 0, 0), "b": member(1, 1, 1, 0, 0)}}
	podGang.Status, _ = DecideGang(snapshot, now)
	_, changed := DecideGang(snapshot, now.Add(time.Minute))
	expect(t, "changed though it says the same", false, changed)

	snapshot.Cliques["a"] = member(2, 2, 2, 0, 0)
	podGang.Status, changed = DecideGang(snapshot, now.Add(time.Hour))
	expect(t, "changed", true, changed)
	expect(t, "transition", "2", podGang.Status.SchedulingConditions[0].TransitionID)
	expect(t, "time", metav1.NewTime(now.Add(time.Hour)), podGang.Status.SchedulingConditions[0].LastTransitionTime)

	snapshot.Scheduled = true
	snapshot.Cliques["a"], snapshot.Cliques["b"] = member(2, 2, 2, 2, 0), member(1, 1, 1, 1, 0)
	podGang.Status, _ = DecideGang(snapshot, now.Add(2*time.Hour))
	expect(t, "explanations of a gang that runs", 0, len(podGang.Status.SchedulingConditions))
}
