package status

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/scheduling"
	"github.com/copse-dev/copse/pkg/scheduling/native"
)

// explain says why pods of a group are not scheduled, in the vocabulary that is the same
// for all schedulers. It is empty when none waits.
func explain(s Snapshot, c counts) []schedulerv1alpha1.UnschedulableExplanation {
	if c.pending == 0 {
		return nil
	}
	need := c.need
	if s.Native != nil && s.Native.Spec.SchedulingPolicy.Gang != nil {
		// It is lowered when pods of the group have succeeded.
		need = s.Native.Spec.SchedulingPolicy.Gang.MinCount
	}
	waiting := func(format string, args ...any) []schedulerv1alpha1.UnschedulableExplanation {
		return []schedulerv1alpha1.UnschedulableExplanation{{
			Reason: schedulerv1alpha1.ReasonWaitingForPods, Message: fmt.Sprintf(format, args...),
			Details: &schedulerv1alpha1.UnschedulableExplanationDetails{PodDetails: &schedulerv1alpha1.PodDetails{Have: c.have, Need: need, Gated: c.gated}},
		}}
	}
	// No scheduler says anything before the last pod exists, and is free of gates.
	if c.loose == 0 && c.have < need && c.placed < c.need {
		return waiting("%d of %d pods exist", c.have, need)
	}
	// Pods that could not be put into the group are no members to the scheduler. It counts the
	// others anew for each that waits, also once the group was placed.
	inGroup := s.BackEnd == podgrouper.Native && c.waiting > 0
	if inGroup && s.Native != nil && c.loose > 0 && c.attached < need {
		return waiting("%d of %d pods are in the scheduler's group", c.attached, need)
	}
	if c.gated == c.pending {
		return waiting("%d of %d pods are held by scheduling gates", c.gated, max(need, c.have))
	}
	if inGroup && s.Native == nil {
		return s.groupMissing()
	}
	if inGroup {
		if why := native.Explain(s.Native, waitingPods(s)); len(why) > 0 {
			return s.withRequests(why)
		}
	}
	if why := s.withRequests(scheduling.Unplaced(waitingPods(s))); len(why) > 0 {
		return why
	}
	return waiting("all %d pods exist and wait for the scheduler", max(need, c.have))
}

// groupMissing says why pods wait for a group of the scheduler's that is not there.
func (s *Snapshot) groupMissing() []schedulerv1alpha1.UnschedulableExplanation {
	message := "the scheduler's group of these pods does not exist"
	for _, err := range []error{s.Invalid, s.Refused} {
		if err != nil {
			message += ": " + err.Error()
		}
	}
	return []schedulerv1alpha1.UnschedulableExplanation{{Reason: schedulerv1alpha1.ReasonPodGroupMissing, Message: message}}
}

func waitingPods(s Snapshot) []*corev1.Pod {
	var out []*corev1.Pod
	for _, pod := range s.Members {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !pods.HasEnded(pod) {
			out = append(out, pod)
		}
	}
	return out
}

// withRequests adds to what does not fit what the waiting pods ask for.
func (s *Snapshot) withRequests(why []schedulerv1alpha1.UnschedulableExplanation) []schedulerv1alpha1.UnschedulableExplanation {
	for i := range why {
		if why[i].Reason != schedulerv1alpha1.ReasonNotEnoughResources || why[i].Details != nil {
			continue
		}
		requested := corev1.ResourceList{}
		for _, pod := range waitingPods(*s) {
			add(requested, pods.Requests(pod))
		}
		if len(requested) > 0 {
			why[i].Details = &schedulerv1alpha1.UnschedulableExplanationDetails{ResourceDetails: &schedulerv1alpha1.ResourceDetails{Requested: requested}}
		}
	}
	return why
}
