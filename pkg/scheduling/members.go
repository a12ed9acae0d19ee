package scheduling

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// Members reads the pods that a gang refers to, of those that exist. They name the gang's
// attempt, so none of an earlier one is among them.
func Members(ctx context.Context, reader client.Reader, gang *schedulerv1alpha1.PodGang) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	for _, group := range gang.Spec.PodGroups {
		for _, ref := range group.PodReferences {
			pod := &corev1.Pod{}
			err := reader.Get(ctx, types.NamespacedName{Namespace: gang.Namespace, Name: ref.Name}, pod)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read pod %s: %w", ref.Name, err)
			}
			out = append(out, pod)
		}
	}
	return out, nil
}

// Gated counts the pods that are held by scheduling gates.
func Gated(pods []*corev1.Pod) int32 {
	var n int32
	for _, pod := range pods {
		if len(pod.Spec.SchedulingGates) > 0 {
			n++
		}
	}
	return n
}

// Unplaced says why a scheduler that places pods one by one has not placed some: in its
// words about the first of them, rather one of which it says what is missing. It is empty
// while it has said nothing.
func Unplaced(pods []*corev1.Pod) []schedulerv1alpha1.UnschedulableExplanation {
	if missing := Missing(pods); missing != "" {
		return []schedulerv1alpha1.UnschedulableExplanation{{Reason: schedulerv1alpha1.ReasonNotEnoughResources, Message: missing}}
	}
	for _, pod := range pods {
		c := refusalOf(pod)
		if c == nil {
			continue
		}
		reason := schedulerv1alpha1.ReasonSchedulerError
		if c.Reason == corev1.PodReasonUnschedulable {
			reason = schedulerv1alpha1.ReasonNotEnoughResources
		}
		return []schedulerv1alpha1.UnschedulableExplanation{{Reason: reason, Message: wordsAbout(pod, c)}}
	}
	return nil
}

// Missing is what the nodes do not have, in the scheduler's words about the first pod of which
// it says so. Of the others of a gang it says only that the gang does not fit.
func Missing(pods []*corev1.Pod) string {
	for _, pod := range pods {
		if c := refusalOf(pod); c != nil && c.Reason == corev1.PodReasonUnschedulable && strings.Contains(c.Message, "nodes are available: ") {
			return wordsAbout(pod, c)
		}
	}
	return ""
}

func wordsAbout(pod *corev1.Pod, c *corev1.PodCondition) string {
	return fmt.Sprintf("pod %s: %s", pod.Name, c.Message)
}

// refusalOf is what a scheduler says of a pod that it has not placed. The API server's word for
// a gate is none: it stays when the gate is gone, until a scheduler has one.
func refusalOf(pod *corev1.Pod) *corev1.PodCondition {
	if pod.Spec.NodeName != "" {
		return nil
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulingGated {
			return c
		}
	}
	return nil
}
