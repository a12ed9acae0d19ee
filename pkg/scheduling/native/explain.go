package native

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/scheduling"
)

// IsScheduled says that a group was scheduled once; the scheduler never takes it back.
func IsScheduled(group *schedulingv1beta1.PodGroup) bool {
	return meta.IsStatusConditionTrue(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
}

// Explain says why a group is not scheduled, in the scheduler's words; empty when it is, or
// the scheduler has said nothing. kube-scheduler has two reasons, and says the rest in the
// text (pkg/scheduler/schedule_one_podgroup.go of Kubernetes 1.37): of a group how many pods
// have found no node, and of one of them what the nodes lack.
func Explain(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) []schedulerv1alpha1.UnschedulableExplanation {
	condition := meta.FindStatusCondition(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
	if condition == nil || condition.Status == metav1.ConditionTrue {
		return nil
	}
	why := schedulerv1alpha1.UnschedulableExplanation{Reason: reasonOf(group, condition), Message: condition.Message}
	if missing := scheduling.Missing(pods); missing != "" && why.Reason == schedulerv1alpha1.ReasonNotEnoughResources {
		why.Message += "; " + missing
	}
	return []schedulerv1alpha1.UnschedulableExplanation{why}
}

func reasonOf(group *schedulingv1beta1.PodGroup, condition *metav1.Condition) string {
	says := func(text string) bool { return strings.Contains(condition.Message, text) }
	switch {
	case says("all pods in a single pod group should have the same"):
		return schedulerv1alpha1.ReasonMemberMismatch
	case condition.Reason == schedulingv1beta1.PodGroupReasonSchedulerError:
		return schedulerv1alpha1.ReasonSchedulerError
	case says("found a placement for podgroup, preempting"), says("ongoing preemption on nominated nodes"):
		return schedulerv1alpha1.ReasonPreemptionPending
	// No domain has room, or no node has the label. Groups without a topology have one placement
	// as well, which is anywhere.
	case hasTopology(group) && (says("placements are available") || says("no feasible placements found")):
		return schedulerv1alpha1.ReasonTopologyUnsatisfied
	}
	return schedulerv1alpha1.ReasonNotEnoughResources
}

// WhyRefused says what to do about a group that the API server refuses for its priority, which
// that has derived from the class: its own words name a number that nobody has written.
func WhyRefused(err error, group *schedulingv1beta1.PodGroup) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return err
	}
	ofPriority := func(cause metav1.StatusCause) bool { return cause.Field == "spec.priority" }
	if !slices.ContainsFunc(answer.Status().Details.Causes, ofPriority) {
		return err
	}
	return fmt.Errorf("PriorityClass %q is above %d, the highest priority that Kubernetes' scheduler takes for a group: name another class: %w",
		group.Spec.PriorityClassName, gang.HighestPriority, err)
}

// hasTopology says that all pods of a group have to share the value of a node label.
func hasTopology(group *schedulingv1beta1.PodGroup) bool {
	constraints := group.Spec.SchedulingConstraints
	return constraints != nil && len(constraints.Topology) > 0
}

// inDomain tells what is missing in the domain that a group is in: pods that replace others
// are placed nowhere else.
func inDomain(why []schedulerv1alpha1.UnschedulableExplanation) []schedulerv1alpha1.UnschedulableExplanation {
	for i := range why {
		if why[i].Reason == schedulerv1alpha1.ReasonNotEnoughResources {
			why[i].Reason = schedulerv1alpha1.ReasonTopologyUnsatisfied
		}
	}
	return why
}
