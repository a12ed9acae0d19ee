package history

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// describe tells a revision in one line: what the invariants look at.
func describe(r *Revision) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch obj := r.Object.(type) {
	case *grovev1alpha1.PodCliqueSet:
		say("phase=%s restartCount=%d", obj.Status.Phase, obj.Status.RestartCount)
		for _, replica := range obj.Status.ReplicaStatuses {
			say("[%d]=attempt %d %s", replica.Index, replica.Attempt, replica.Phase)
		}
		if obj.Status.StartTime != nil {
			say("started %s", obj.Status.StartTime.UTC().Format("15:04:05"))
		}
		parts = append(parts, conditionsOf(obj.Status.Conditions)...)
	case *grovev1alpha1.PodClique:
		status := &obj.Status
		say("attempt=%d/%d replicas=%d/%d ready=%d old=%d wasAvailable=%t", status.ObservedAttempt, obj.Spec.Attempt, status.Replicas, obj.Spec.Replicas, status.ReadyReplicas, status.OldReplicas, status.WasAvailable)
		if status.CompletedIndexes != "" {
			say("completed %s", status.CompletedIndexes)
		}
		for _, failed := range status.FailedIndexes {
			say("failed[%d]=%d×%s", failed.Index, failed.Count, failed.PodUID)
		}
		parts = append(parts, conditionsOf(status.Conditions)...)
	case *grovev1alpha1.PodCliqueScalingGroup:
		say("replicas=%d available=%d", obj.Spec.Replicas, obj.Status.AvailableReplicas)
		for _, attempt := range obj.Status.ReplicaAttempts {
			say("[%d]=attempt %d of %d", attempt.Index, attempt.Attempt, attempt.SetAttempt)
		}
		parts = append(parts, conditionsOf(obj.Status.Conditions)...)
	case *grovev1alpha1.StartGate:
		for _, clique := range obj.Status.Cliques {
			say("%s: attempt %d open=%t expired=%t", clique.Name, clique.Attempt, clique.Open, clique.Expired)
		}
	case *schedulerv1alpha1.PodGang:
		say("attempt=%s %s", obj.Labels[labels.RestartAttempt], obj.Status.Phase)
		parts = append(parts, conditionsOf(obj.Status.Conditions)...)
	case *corev1.Pod:
		say("uid=%s index=%s attempt=%s %s", obj.UID, obj.Labels[labels.PodIndex], obj.Labels[labels.RestartAttempt], obj.Status.Phase)
		if obj.Spec.NodeName != "" {
			say("on %s", obj.Spec.NodeName)
		}
		if isPodReady(obj) {
			say("ready")
		}
	}
	if r.Object.GetDeletionTimestamp() != nil {
		say("terminating")
	}
	if r.Deleted {
		say("GONE")
	}
	if r.Listed {
		say("(found by a list)")
	}
	return fmt.Sprintf("%s %s/%d %s %s: %s", r.Arrived.UTC().Format("15:04:05.000"), r.Kind.server(), r.RV, r.Kind, r.Object.GetName(), strings.Join(parts, " "))
}

func conditionsOf(conditions []metav1.Condition) []string {
	var out []string
	for _, c := range conditions {
		out = append(out, fmt.Sprintf("%s=%s(%s %s)", c.Type, c.Status, c.Reason, c.LastTransitionTime.UTC().Format("15:04:05")))
	}
	return out
}
