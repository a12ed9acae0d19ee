package scheduling

import (
	"context"
	"fmt"

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
// words about the first of them. It is empty while it has said nothing.
func Unplaced(pods []*corev1.Pod) []schedulerv1alpha1.UnschedulableExplanation {
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			continue
		}
		for i := range pod.Status.Conditions {
			c := &pod.Status.Conditions[i]
			// The API server's word for a gate stays when the gate is gone, until a scheduler has one.
			if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason == corev1.PodReasonSchedulingGated {
				continue
			}
			reason := schedulerv1alpha1.ReasonSchedulerError
			if c.Reason == corev1.PodReasonUnschedulable {
				reason = schedulerv1alpha1.ReasonNotEnoughResources
			}
			return []schedulerv1alpha1.UnschedulableExplanation{{Reason: reason, Message: fmt.Sprintf("pod %s: %s", pod.Name, c.Message)}}
		}
	}
	return nil
}
