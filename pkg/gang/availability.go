package gang

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// Available is how many pods of a clique are available: Ready, and in Training also
// those that have succeeded (D2).
func Available(clique *grovev1alpha1.PodClique) int32 {
	return available(clique, &clique.Status)
}

func available(clique *grovev1alpha1.PodClique, status *grovev1alpha1.PodCliqueStatus) int32 {
	n := status.ReadyReplicas
	if isTraining(clique) {
		n += int32(completedOf(status).CountBelow(clique.Spec.Replicas))
	}
	return n
}

// IsAvailable says that a clique, as its status tells of the current attempt, has its minimum.
func IsAvailable(clique *grovev1alpha1.PodClique) bool {
	return clique.Status.ObservedAttempt == clique.Spec.Attempt && Available(clique) >= effectiveMinAvailable(&clique.Spec)
}

// IsScheduled says that enough pods of a clique's current attempt have a node.
func IsScheduled(clique *grovev1alpha1.PodClique) bool {
	return clique.Status.ObservedAttempt == clique.Spec.Attempt && meta.IsStatusConditionTrue(clique.Status.Conditions, grovev1alpha1.ConditionTypePodCliqueScheduled)
}

// observeAvailability evaluates wasAvailable, MinAvailableBreached in the order of
// seed 001, and PodCliqueScheduled. It runs after the counters are set.
func observeAvailability(s CliqueSnapshot, current map[int32]Pod, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus, now time.Time) {
	need := effectiveMinAvailable(&s.Clique.Spec)
	have := available(s.Clique, status)
	if have >= need {
		status.WasAvailable = true
	}
	breached, reason := evaluateBreach(s, current, completed, status, have, need)
	setCondition(&status.Conditions, s.Clique.Generation, now, grovev1alpha1.ConditionTypeMinAvailableBreached, breached, reason,
		fmt.Sprintf("%d of %d pods are available, at least %d are needed", have, s.Clique.Spec.Replicas, need))

	scheduled, scheduledReason := metav1.ConditionFalse, grovev1alpha1.ReasonInsufficientScheduledPods
	// A finished pod that is cleaned up had a node.
	withNode := status.ScheduledReplicas
	for index := range s.Clique.Spec.Replicas {
		if pod, exists := current[index]; completed.Has(index) && (!exists || pod.Terminating()) {
			withNode++
		}
	}
	if withNode >= need {
		scheduled, scheduledReason = metav1.ConditionTrue, grovev1alpha1.ReasonSufficientScheduledPods
	}
	setCondition(&status.Conditions, s.Clique.Generation, now, grovev1alpha1.ConditionTypePodCliqueScheduled, scheduled, scheduledReason,
		fmt.Sprintf("%d of %d pods have a node, at least %d are needed", withNode, s.Clique.Spec.Replicas, need))
}

func evaluateBreach(s CliqueSnapshot, current map[int32]Pod, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus, have, need int32) (metav1.ConditionStatus, string) {
	if have >= need {
		return metav1.ConditionFalse, grovev1alpha1.ReasonSufficientReadyPods
	}
	// A job that crashes at its first start must not hang: so many broken indexes that
	// the minimum cannot be reached are a breach though it never was (D8).
	if isTraining(s.Clique) && !status.WasAvailable && s.Clique.Spec.Replicas-countBroken(current, completed, status) < need {
		return metav1.ConditionTrue, grovev1alpha1.ReasonPodsFailed
	}
	if !status.WasAvailable {
		return metav1.ConditionFalse, grovev1alpha1.ReasonNeverAvailable
	}
	return metav1.ConditionTrue, grovev1alpha1.ReasonInsufficientReadyPods
}

func countBroken(current map[int32]Pod, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus) int32 {
	var n int32
	for _, failed := range status.FailedIndexes {
		if !completed.Has(failed.Index) && isBroken(status, current, failed.Index) {
			n++
		}
	}
	return n
}
