package gang

import (
	"fmt"
	"strings"
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
func observeAvailability(s CliqueSnapshot, current podsByIndex, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus, now time.Time) {
	need := effectiveMinAvailable(&s.Clique.Spec)
	have := available(s.Clique, status)
	switch {
	case need == 0:
		// What is idle starts as a new clique does when it is wanted again.
		status.WasAvailable = false
	case have >= need && !isUpdating(status):
		status.WasAvailable = true
	}
	if !awaitsPhase(s, current, status, have, need) {
		observeBreach(s, current, completed, status, now)
	}

	scheduled, scheduledReason := metav1.ConditionFalse, grovev1alpha1.ReasonInsufficientScheduledPods
	// A finished pod that is cleaned up had a node.
	withNode := status.ScheduledReplicas
	for index := range s.Clique.Spec.Replicas {
		if pod := current.at(index); completed.Has(index) && (pod == nil || pod.Terminating()) {
			withNode++
		}
	}
	if withNode >= need {
		scheduled, scheduledReason = metav1.ConditionTrue, grovev1alpha1.ReasonSufficientScheduledPods
	}
	setCondition(&status.Conditions, s.Clique.Generation, now, grovev1alpha1.ConditionTypePodCliqueScheduled, scheduled, scheduledReason,
		fmt.Sprintf("%d of %d pods have a node, at least %d are needed", withNode, s.Clique.Spec.Replicas, need))
}

// awaitsPhase says that the minimum is missed only by pods that are about to be Failed. The
// failure breaks their indexes in a moment, and says with what code (D8); a breach before
// that could only say that they are not Ready, and would end the attempt by it.
func awaitsPhase(s CliqueSnapshot, current podsByIndex, status *grovev1alpha1.PodCliqueStatus, have, need int32) bool {
	before := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
	if !isTraining(s.Clique) || have >= need || before == nil || before.Status == metav1.ConditionTrue {
		return false
	}
	for pod := range current.all() {
		if pod.Failing && !pod.Terminating() {
			have++
		}
	}
	return have >= need
}

// observeBreach evaluates MinAvailableBreached.
func observeBreach(s CliqueSnapshot, current podsByIndex, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus, now time.Time) {
	have, need := available(s.Clique, status), effectiveMinAvailable(&s.Clique.Spec)
	breached, reason := evaluateBreach(s, completed, status, have, need)
	message := fmt.Sprintf("%d of %d pods are available, at least %d are needed", have, s.Clique.Spec.Replicas, need)
	if breached == metav1.ConditionTrue {
		message += causesOf(s, current, completed, status)
	}
	setCondition(&status.Conditions, s.Clique.Generation, now, grovev1alpha1.ConditionTypeMinAvailableBreached, breached, reason, message)
}

// evaluateBreach follows the order of seed 001, section "PodClique Level Detection".
func evaluateBreach(s CliqueSnapshot, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus, have, need int32) (metav1.ConditionStatus, string) {
	switch {
	case have >= need:
		return metav1.ConditionFalse, grovev1alpha1.ReasonSufficientReadyPods
	case !status.WasAvailable && !cannotBecomeAvailable(s.Clique, completed, status):
		return metav1.ConditionFalse, grovev1alpha1.ReasonNeverAvailable
	case isUpdating(status):
		return metav1.ConditionUnknown, grovev1alpha1.ReasonUpdateInProgress
	case !status.WasAvailable:
		return metav1.ConditionTrue, grovev1alpha1.ReasonPodsFailed
	}
	return metav1.ConditionTrue, grovev1alpha1.ReasonInsufficientReadyPods
}

// cannotBecomeAvailable says that so many indexes are broken that the minimum is out of
// reach: a job that crashes at its first start must not hang (D8). In Inference pods are
// replaced for as long as it takes.
func cannotBecomeAvailable(clique *grovev1alpha1.PodClique, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus) bool {
	return isTraining(clique) && clique.Spec.Replicas-countBroken(clique, completed, status) < effectiveMinAvailable(&clique.Spec)
}

func countBroken(clique *grovev1alpha1.PodClique, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus) int32 {
	var n int32
	for i := range status.FailedIndexes {
		if failed := &status.FailedIndexes[i]; failed.RecoveredTime == nil && failed.Index < clique.Spec.Replicas && !completed.Has(failed.Index) {
			n++
		}
	}
	return n
}

// maxCauses bounds how many pods a message names.
const maxCauses = 3

// causesOf says which pods are not available, and why, for people.
func causesOf(s CliqueSnapshot, current podsByIndex, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus) string {
	var causes []string
	for index := range s.Clique.Spec.Replicas {
		pod := current.at(index)
		switch failed := brokenIndex(status, index); {
		case completed.Has(index):
		case failed != nil:
			causes = append(causes, tellFailure(failed))
		case pod == nil:
			causes = append(causes, fmt.Sprintf("index %d has no pod", index))
		case pod.Terminating():
			causes = append(causes, pod.Name+" is being deleted"+onNode(pod))
		case pod.Finishing:
		case pod.Failing:
			causes = append(causes, pod.Name+" "+pod.Failure)
		case !pod.Ready || pod.Ended():
			causes = append(causes, pod.Name+" is not Ready"+onNode(pod))
		}
	}
	return ": " + firstOf(causes)
}

func onNode(pod *Pod) string {
	if pod.Node == "" {
		return ""
	}
	return " on node " + pod.Node
}

// firstOf joins the first of several texts and counts the rest.
func firstOf(texts []string) string {
	const separator = "; "
	if len(texts) <= maxCauses {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:maxCauses], separator), separator, len(texts)-maxCauses)
}
