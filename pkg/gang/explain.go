package gang

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// explain says why pods of a gang are not scheduled, in the vocabulary that is the same for
// all schedulers (design section 6). It is empty when none waits, and never while the gang
// has not been scheduled.
func explain(s GangSnapshot, counts memberCounts, scheduled bool) []schedulerv1alpha1.UnschedulableExplanation {
	if scheduled {
		if counts.waiting == 0 {
			return nil
		}
		return withRequests(s, s.Why)
	}
	waiting := func(format string, args ...any) []schedulerv1alpha1.UnschedulableExplanation {
		return []schedulerv1alpha1.UnschedulableExplanation{{
			Reason: schedulerv1alpha1.ReasonWaitingForPods, Message: fmt.Sprintf(format, args...),
			Details: &schedulerv1alpha1.UnschedulableExplanationDetails{PodDetails: &schedulerv1alpha1.PodDetails{Have: counts.have, Need: counts.need, Gated: s.Gated}},
		}}
	}
	switch {
	// No scheduler says anything before the last pod exists, and is free of gates.
	case counts.have < counts.need:
		return waiting("%d of %d pods exist", counts.have, counts.need)
	case s.Gated > 0:
		return waiting("%d of %d pods are held by scheduling gates", s.Gated, counts.need)
	case len(s.Why) > 0:
		return withRequests(s, s.Why)
	case s.Untold && !s.AllOrNothing:
		return []schedulerv1alpha1.UnschedulableExplanation{{
			Reason: schedulerv1alpha1.ReasonGangsUnsupported, Message: fmt.Sprintf("the scheduler places pods one by one: %d of %d have a node", counts.placed, counts.need),
		}}
	}
	return waiting("all %d pods exist and wait for the scheduler", counts.need)
}

// withRequests adds to what does not fit what it asks for.
func withRequests(s GangSnapshot, why []schedulerv1alpha1.UnschedulableExplanation) []schedulerv1alpha1.UnschedulableExplanation {
	out := make([]schedulerv1alpha1.UnschedulableExplanation, 0, len(why))
	for _, reason := range why {
		if reason.Reason == schedulerv1alpha1.ReasonNotEnoughResources && reason.Details == nil {
			if requested := requestsOf(s); len(requested) > 0 {
				reason.Details = &schedulerv1alpha1.UnschedulableExplanationDetails{ResourceDetails: &schedulerv1alpha1.ResourceDetails{Requested: requested}}
			}
		}
		out = append(out, reason)
	}
	return out
}

// requestsOf is what the pods of a gang that have no node ask for together.
func requestsOf(s GangSnapshot) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, group := range s.PodGang.Spec.PodGroups {
		clique := s.Cliques[group.Name]
		if !isCurrent(clique, GangAttempt(s.PodGang)) {
			continue
		}
		pending := int64(group.MinReplicas - min(clique.Status.ScheduledReplicas, group.MinReplicas))
		if WasScheduled(s.PodGang) {
			pending = int64(waitingOf(clique))
		}
		for name, quantity := range resource.PodRequests(withDefaultRequests(&clique.Spec.PodSpec), resource.PodResourcesOptions{}) {
			quantity.Mul(pending)
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	for name, quantity := range sum {
		if quantity.IsZero() {
			delete(sum, name)
		}
	}
	return sum
}

// withDefaultRequests is a pod that requests what it is limited to where it does not say, as
// the API server makes it.
func withDefaultRequests(spec *corev1.PodSpec) *corev1.Pod {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			requests := corev1.ResourceList{}
			maps.Copy(requests, resources.Limits)
			maps.Copy(requests, resources.Requests)
			resources.Requests = requests
		}
	}
	return pod
}

// SchedulingConditions tell the reasons why pods of a gang or of a group wait, in a node pool
// if it has one. They are not written anew while they say the same; the counter is KAI's way
// to tell one condition from the next.
func SchedulingConditions(before []schedulerv1alpha1.SchedulingCondition, nodePool string, why []schedulerv1alpha1.UnschedulableExplanation, now time.Time) []schedulerv1alpha1.SchedulingCondition {
	if len(why) == 0 {
		return nil
	}
	transition := 0
	if len(before) == 1 {
		if before[0].NodePool == nodePool && apiequality.Semantic.DeepEqual(before[0].Reasons, why) {
			return before
		}
		transition, _ = strconv.Atoi(before[0].TransitionID)
	}
	return []schedulerv1alpha1.SchedulingCondition{{
		Type: schedulerv1alpha1.UnschedulableOnNodePool, NodePool: nodePool, Status: corev1.ConditionTrue, TransitionID: strconv.Itoa(transition + 1),
		LastTransitionTime: metav1.NewTime(now), Reasons: why,
	}}
}
