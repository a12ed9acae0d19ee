package kai

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
)

// oneWord is a reason that programs can look for. KAI has texts as reasons as well.
var oneWord = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// Explain says why a group is not scheduled, in KAI's words: the conditions have one entry for
// each node pool that was tried, the newest last. It is empty when KAI has said nothing.
func Explain(conditions []schedulerv1alpha1.SchedulingCondition) []schedulerv1alpha1.UnschedulableExplanation {
	var out []schedulerv1alpha1.UnschedulableExplanation
	for i := len(conditions) - 1; i >= 0; i-- {
		condition := &conditions[i]
		if condition.Type != schedulerv1alpha1.UnschedulableOnNodePool || condition.Status != corev1.ConditionTrue {
			continue
		}
		reasons := condition.Reasons
		reason, message := condition.Reason, condition.Message //nolint:staticcheck // versions of KAI that have no list of reasons tell nothing else
		if len(reasons) == 0 && reason+message != "" {
			reasons = []schedulerv1alpha1.UnschedulableExplanation{{Reason: reason, Message: message}}
		}
		for j := range reasons {
			explained := explain(&reasons[j])
			if len(conditions) > 1 && condition.NodePool != "" && !strings.Contains(explained.Message, "'"+condition.NodePool+"'") {
				explained.Message = fmt.Sprintf("node pool '%s': %s", condition.NodePool, explained.Message)
			}
			out = append(out, explained)
		}
	}
	return out
}

// explain keeps a reason that is a word, with its details, and finds one for what is a text,
// or a word for all that pods cannot be placed for.
func explain(reason *schedulerv1alpha1.UnschedulableExplanation) schedulerv1alpha1.UnschedulableExplanation {
	out := *reason.DeepCopy()
	general := reason.Reason == "Unschedulable" || reason.Reason == "PodSchedulingErrors"
	if oneWord.MatchString(reason.Reason) && !general {
		return out
	}
	out.Reason = schedulerv1alpha1.ReasonNotEnoughResources
	// "topology t, requirement rack couldn't be satisfied for job …", "Matching topology t does
	// not exist", "node-group r1 can allocate only 1 of 2 required pods".
	if text := strings.ToLower(reason.Reason + " " + reason.Message); strings.Contains(text, "topology") || strings.Contains(text, "node-group") {
		out.Reason = schedulerv1alpha1.ReasonTopologyUnsatisfied
	}
	switch {
	case general:
		out.Message = cmp.Or(reason.Message, reason.Reason)
	case reason.Reason != "" && reason.Message != "":
		out.Message = reason.Reason + ": " + reason.Message
	default:
		out.Message = reason.Reason + reason.Message
	}
	return out
}

// since are the conditions that speak of a gang as it is. Versions before v0.16 leave those
// that have been overtaken: what KAI said before it placed the gang is not why a replacement
// waits.
func since(conditions []schedulerv1alpha1.SchedulingCondition, podGang *schedulerv1alpha1.PodGang) []schedulerv1alpha1.SchedulingCondition {
	if !gang.WasScheduled(podGang) {
		return conditions
	}
	scheduled := meta.FindStatusCondition(podGang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled)
	var out []schedulerv1alpha1.SchedulingCondition
	for i := range conditions {
		if conditions[i].LastTransitionTime.After(scheduled.LastTransitionTime.Time) {
			out = append(out, conditions[i])
		}
	}
	return out
}
