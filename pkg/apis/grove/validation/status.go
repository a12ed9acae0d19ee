package validation

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// The status of an object is a state machine (design section 4): the rules below hold
// against everyone, Copse's own controllers included, so that a controller with a stale
// cache, or two of them, cannot undo a decision.

func validateNotFalling(value, old int32, path *field.Path) field.ErrorList {
	if value < old {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must not fall, it is %d", old))}
	}
	return nil
}

// validateUniqueIndex checks the key of a list entry. Two entries of one index would let
// an attempt fall: only one of them is compared with the next status.
func validateUniqueIndex(index int32, seen sets.Set[int32], path *field.Path) field.ErrorList {
	errs := validateNotNegative(index, path)
	if seen.Has(index) {
		errs = append(errs, field.Duplicate(path, index))
	}
	seen.Insert(index)
	return errs
}

func validateCounts(path *field.Path, counts map[string]int32) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		errs = append(errs, validateNotNegative(counts[name], path.Child(name))...)
	}
	return errs
}

// ValidatePodCliqueSetStatusUpdate returns what is wrong with moving the status of old
// to that of pcs.
func ValidatePodCliqueSetStatusUpdate(pcs, old *grove.PodCliqueSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&pcs.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("status")
	status, before := &pcs.Status, &old.Status
	errs = append(errs, validatePhase(pcs, old, path)...)
	errs = append(errs, validateAttempts(pcs, old, path)...)
	errs = append(errs, validateWrittenOnce(status.StartTime, before.StartTime, path.Child("startTime"))...)
	errs = append(errs, validateWrittenOnce(status.CompletionTime, before.CompletionTime, path.Child("completionTime"))...)
	errs = append(errs, validateCounts(path, map[string]int32{
		"replicas": status.Replicas, "updatedReplicas": status.UpdatedReplicas, "availableReplicas": status.AvailableReplicas,
		"succeededReplicas": status.SucceededReplicas, "pods": status.Pods, "availablePods": status.AvailablePods,
	})...)
	if status.AvailableReplicas > status.Replicas {
		errs = append(errs, field.Invalid(path.Child("availableReplicas"), status.AvailableReplicas, fmt.Sprintf("must not be greater than replicas, %d", status.Replicas)))
	}
	return errs
}

// validatePhase keeps terminal phases final, and tied to their conditions.
func validatePhase(pcs, old *grove.PodCliqueSet, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	status, before := &pcs.Status, &old.Status
	phasePath := path.Child("phase")
	if status.Phase != "" {
		errs = append(errs, validateEnum(status.Phase, phasePath, grove.PodCliqueSetPending, grove.PodCliqueSetRunning, grove.PodCliqueSetSucceeded, grove.PodCliqueSetFailed)...)
	}
	if isTerminal(before.Phase) && status.Phase != before.Phase {
		errs = append(errs, field.Invalid(phasePath, status.Phase, fmt.Sprintf("%s is final", before.Phase)))
	}
	conditionsPath := path.Child("conditions")
	succeeded := meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeSucceeded)
	failed := meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeFailed)
	failing := meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
	if (status.Phase == grove.PodCliqueSetSucceeded) != succeeded {
		errs = append(errs, field.Invalid(phasePath, status.Phase, "phase Succeeded and condition Succeeded go together"))
	}
	if (status.Phase == grove.PodCliqueSetFailed) != failed {
		errs = append(errs, field.Invalid(phasePath, status.Phase, "phase Failed and condition Failed go together"))
	}
	if failed && !failing {
		errs = append(errs, field.Invalid(conditionsPath, grovev1alpha1.ConditionTypeFailed, "needs condition FailureTarget"))
	}
	if succeeded && failing {
		errs = append(errs, field.Invalid(conditionsPath, grovev1alpha1.ConditionTypeSucceeded, "contradicts condition FailureTarget"))
	}
	if meta.IsStatusConditionTrue(before.Conditions, grovev1alpha1.ConditionTypeFailureTarget) && !failing {
		errs = append(errs, field.Invalid(conditionsPath, grovev1alpha1.ConditionTypeFailureTarget, "is final"))
	}
	if isTerminal(status.Phase) || failing {
		if pcs.Spec.WorkloadType != grove.WorkloadTypeTraining {
			errs = append(errs, field.Invalid(phasePath, status.Phase, "an inference workload neither succeeds nor fails"))
		}
	}
	if isTerminal(status.Phase) && status.CompletionTime == nil {
		errs = append(errs, field.Required(path.Child("completionTime"), fmt.Sprintf("phase %s needs it", status.Phase)))
	}
	return errs
}

func isTerminal(phase grove.PodCliqueSetPhase) bool {
	return phase == grove.PodCliqueSetSucceeded || phase == grove.PodCliqueSetFailed
}

// validateAttempts lets attempts only rise, and restartCount rise by their sum in Training (D5).
func validateAttempts(pcs, old *grove.PodCliqueSet, path *field.Path) field.ErrorList {
	errs := validateNotFalling(pcs.Status.RestartCount, old.Status.RestartCount, path.Child("restartCount"))
	before := map[int32]int32{}
	for _, replica := range old.Status.ReplicaStatuses {
		before[replica.Index] = replica.Attempt
	}
	var rise int64
	seen := sets.New[int32]()
	for i, replica := range pcs.Status.ReplicaStatuses {
		replicaPath := path.Child("replicaStatuses").Index(i)
		errs = append(errs, validateUniqueIndex(replica.Index, seen, replicaPath.Child("index"))...)
		errs = append(errs, validateNotFalling(replica.Attempt, before[replica.Index], replicaPath.Child("attempt"))...)
		rise += int64(replica.Attempt) - int64(before[replica.Index])
		delete(before, replica.Index)
	}
	for _, index := range slices.Sorted(maps.Keys(before)) {
		if attempt := before[index]; attempt > 0 {
			errs = append(errs, field.Required(path.Child("replicaStatuses"), fmt.Sprintf("replica %d has attempt %d, which must be kept", index, attempt)))
		}
	}
	restarts := int64(pcs.Status.RestartCount) - int64(old.Status.RestartCount)
	if pcs.Spec.WorkloadType == grove.WorkloadTypeTraining && restarts != rise {
		errs = append(errs, field.Invalid(path.Child("restartCount"), pcs.Status.RestartCount, fmt.Sprintf("rises by %d while the attempts of the replicas rise by %d", restarts, rise)))
	}
	if pcs.Spec.WorkloadType != grove.WorkloadTypeTraining && pcs.Status.RestartCount != 0 {
		errs = append(errs, field.Invalid(path.Child("restartCount"), pcs.Status.RestartCount, "stays 0 in Inference"))
	}
	return errs
}

func validateWrittenOnce(value, old *metav1.Time, path *field.Path) field.ErrorList {
	if old != nil && !old.Equal(value) {
		return field.ErrorList{field.Invalid(path, value, "is written once")}
	}
	return nil
}

// ValidatePodCliqueStatusUpdate returns what is wrong with moving the status of old to
// that of clique.
func ValidatePodCliqueStatusUpdate(clique, old *grove.PodClique) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&clique.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("status")
	status, before := &clique.Status, &old.Status
	errs = append(errs, validateCounts(path, map[string]int32{
		"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "runningReplicas": status.RunningReplicas,
		"updatedReplicas": status.UpdatedReplicas, "scheduledReplicas": status.ScheduledReplicas,
		"scheduleGatedReplicas": status.ScheduleGatedReplicas, "createdReplicas": status.CreatedReplicas,
	})...)
	completed, err := indexset.Parse(status.CompletedIndexes)
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("completedIndexes"), status.CompletedIndexes, err.Error()))
	}
	errs = append(errs, validateNotFalling(status.ObservedAttempt, before.ObservedAttempt, path.Child("observedAttempt"))...)
	if status.ObservedAttempt > clique.Spec.Attempt {
		errs = append(errs, field.Invalid(path.Child("observedAttempt"), status.ObservedAttempt, fmt.Sprintf("must not be greater than spec.attempt, %d", clique.Spec.Attempt)))
	}
	if status.CreatedAttempt != nil {
		errs = append(errs, validateNotNegative(*status.CreatedAttempt, path.Child("createdAttempt"))...)
	}
	failed := sets.New[int32]()
	for i, index := range status.FailedIndexes {
		indexPath := path.Child("failedIndexes").Index(i)
		errs = append(errs, validateUniqueIndex(index.Index, failed, indexPath.Child("index"))...)
		errs = append(errs, validateNotNegative(index.Count, indexPath.Child("count"))...)
	}
	if before.CreatedAttempt != nil {
		if status.CreatedAttempt == nil {
			errs = append(errs, field.Required(path.Child("createdAttempt"), "does not go back"))
		} else {
			errs = append(errs, validateNotFalling(*status.CreatedAttempt, *before.CreatedAttempt, path.Child("createdAttempt"))...)
		}
	}
	if status.ObservedAttempt != before.ObservedAttempt {
		return errs
	}
	if was, parseErr := indexset.Parse(before.CompletedIndexes); parseErr == nil && err == nil && !completed.Contains(was) {
		errs = append(errs, field.Invalid(path.Child("completedIndexes"), status.CompletedIndexes, fmt.Sprintf("must hold %q: they only grow within an attempt", before.CompletedIndexes)))
	}
	if before.WasAvailable && !status.WasAvailable {
		errs = append(errs, field.Invalid(path.Child("wasAvailable"), false, "stays true within an attempt"))
	}
	if meta.IsStatusConditionTrue(before.Conditions, grovev1alpha1.ConditionTypeSucceeded) && !meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeSucceeded) {
		errs = append(errs, field.Invalid(path.Child("conditions"), grovev1alpha1.ConditionTypeSucceeded, "stays True within an attempt"))
	}
	return errs
}

// ValidatePodCliqueScalingGroupStatusUpdate returns what is wrong with moving the status
// of old to that of group.
func ValidatePodCliqueScalingGroupStatusUpdate(group, old *grove.PodCliqueScalingGroup) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&group.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("status")
	status := &group.Status
	errs = append(errs, validateCounts(path, map[string]int32{
		"replicas": status.Replicas, "scheduledReplicas": status.ScheduledReplicas,
		"availableReplicas": status.AvailableReplicas, "updatedReplicas": status.UpdatedReplicas,
	})...)
	if status.AvailableReplicas > status.Replicas {
		errs = append(errs, field.Invalid(path.Child("availableReplicas"), status.AvailableReplicas, fmt.Sprintf("must not be greater than replicas, %d", status.Replicas)))
	}
	after := map[int32]int32{}
	seen := sets.New[int32]()
	for i, replica := range status.ReplicaAttempts {
		replicaPath := path.Child("replicaAttempts").Index(i)
		errs = append(errs, validateUniqueIndex(replica.Index, seen, replicaPath.Child("index"))...)
		errs = append(errs, validateNotNegative(replica.Attempt, replicaPath.Child("attempt"))...)
		after[replica.Index] = replica.Attempt
	}
	for _, replica := range old.Status.ReplicaAttempts {
		errs = append(errs, validateNotFalling(after[replica.Index], replica.Attempt, path.Child("replicaAttempts").Key(fmt.Sprint(replica.Index)))...)
	}
	return errs
}
