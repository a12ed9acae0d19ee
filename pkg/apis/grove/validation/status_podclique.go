package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/internal/conditions"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// ValidatePodCliqueStatusUpdate returns what is wrong with moving the status of old to
// that of clique.
func ValidatePodCliqueStatusUpdate(clique, old *grove.PodClique) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&clique.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("status")
	status, before := &clique.Status, &old.Status
	recovered, recoveredBefore := readRecoveries(status), readRecoveries(before)
	errs = append(errs, validateNotFalling(status.ObservedAttempt, before.ObservedAttempt, path.Child("observedAttempt"))...)
	errs = append(errs, validateCreatedAttempt(status.CreatedAttempt, before.CreatedAttempt, path.Child("createdAttempt"))...)
	errs = append(errs, validateCompletedIndexes(clique, old, path.Child("completedIndexes"))...)
	errs = append(errs, validateFailedIndexKeys(status.FailedIndexes, path.Child("failedIndexes"))...)
	errs = append(errs, validateRecoveredIndexes(status, recovered, path.Child("recoveredIndexes"))...)
	switch {
	case status.ObservedAttempt > before.ObservedAttempt:
		errs = append(errs, validateFreshAttempt(clique, path)...)
	case status.ObservedAttempt == before.ObservedAttempt:
		errs = append(errs, validateSameAttempt(status, old, path)...)
		earlier := failuresOf(before, recoveredBefore)
		errs = append(errs, validateFailedIndexes(clique, old, earlier, failuresOf(status, recovered), path.Child("failedIndexes"))...)
		errs = append(errs, validateShortened(status, recovered, earlier, path.Child("recoveredIndexes"))...)
	}
	errs = append(errs, validateFailureIsFinal(status, before, path.Child("conditions"))...)
	errs = append(errs, conditions.ValidateUpdate(status.Conditions, before.Conditions, path.Child("conditions"))...)
	errs = append(errs, validateCounts(path, map[string]int32{
		"replicas": status.Replicas, "oldReplicas": status.OldReplicas, "createdReplicas": status.CreatedReplicas,
		"readyReplicas": status.ReadyReplicas, "runningReplicas": status.RunningReplicas, "updatedReplicas": status.UpdatedReplicas,
		"scheduledReplicas": status.ScheduledReplicas, "scheduleGatedReplicas": status.ScheduleGatedReplicas, "startedReplicas": status.StartedReplicas,
	})...)
	return append(errs, ratchet(clique, old, observedFollowsSpec, createdFollowsObserved, succeededIsComplete, breachFollowsAvailability, partsOfClique)...)
}

func hasSucceeded(status *grove.PodCliqueStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeSucceeded)
}

// validateFailureIsFinal: a set that fails does so for good, and its end relies on cliques
// that say that they make no more pods.
func validateFailureIsFinal(status, before *grove.PodCliqueStatus, path *field.Path) field.ErrorList {
	const failing = grovev1alpha1.ConditionTypeFailureTarget
	if meta.IsStatusConditionTrue(before.Conditions, failing) && !meta.IsStatusConditionTrue(status.Conditions, failing) {
		return field.ErrorList{field.Invalid(path, failing, "stays True: the set fails for good")}
	}
	return nil
}

func validateCreatedAttempt(value, old *int32, path *field.Path) field.ErrorList {
	if value == nil {
		if old != nil {
			return field.ErrorList{field.Required(path, fmt.Sprintf("does not go back, it is %d", *old))}
		}
		return nil
	}
	errs := fields.NotNegative(*value, path)
	if old != nil {
		errs = append(errs, validateNotFalling(*value, *old, path)...)
	}
	return errs
}

// validateCompletedIndexes lets the indexes only grow within an attempt, and not beyond
// the size. Those of an earlier size may stay.
func validateCompletedIndexes(clique, old *grove.PodClique, path *field.Path) field.ErrorList {
	text, before := clique.Status.CompletedIndexes, old.Status.CompletedIndexes
	completed, err := indexset.Parse(text)
	if err != nil {
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	var errs field.ErrorList
	was, err := indexset.Parse(before)
	if clique.Status.ObservedAttempt == old.Status.ObservedAttempt && err == nil && !completed.Contains(was) {
		errs = append(errs, field.Invalid(path, text, fmt.Sprintf("must hold %q: they only grow within an attempt", before)))
	}
	if allowed := indexset.Union(was, indexset.Below(clique.Spec.Replicas)); !allowed.Contains(completed) {
		errs = append(errs, field.Invalid(path, text, fmt.Sprintf("must hold no index that spec.replicas, %d, does not reach", clique.Spec.Replicas)))
	}
	return errs
}

// validateFreshAttempt checks the write that starts an attempt. No pod of the attempt
// exists before that write is accepted (D4), so whatever the status tells of pods that
// ended, or were available, is of an earlier one (D3).
func validateFreshAttempt(clique *grove.PodClique, path *field.Path) field.ErrorList {
	status := &clique.Status
	starts := fmt.Sprintf("in the write that starts attempt %d", status.ObservedAttempt)
	var errs field.ErrorList
	if status.CompletedIndexes != "" {
		errs = append(errs, field.Invalid(path.Child("completedIndexes"), status.CompletedIndexes, "must be empty "+starts))
	}
	if len(status.FailedIndexes) > 0 {
		errs = append(errs, field.Invalid(path.Child("failedIndexes"), len(status.FailedIndexes), "must be empty "+starts))
	}
	if len(status.RecoveredIndexes) > 0 {
		errs = append(errs, field.Invalid(path.Child("recoveredIndexes"), len(status.RecoveredIndexes), "must be empty "+starts))
	}
	// A clique that is scaled to nothing needs nothing and is available at once.
	if need := neededReplicas(&clique.Spec); status.WasAvailable && status.ReadyReplicas < need {
		errs = append(errs, field.Invalid(path.Child("wasAvailable"), true, fmt.Sprintf("must be false %s: %d pods are ready, %d are needed", starts, status.ReadyReplicas, need)))
	}
	for _, conditionType := range []string{grovev1alpha1.ConditionTypeSucceeded, grovev1alpha1.ConditionTypeMinAvailableBreached} {
		if meta.IsStatusConditionTrue(status.Conditions, conditionType) {
			errs = append(errs, field.Invalid(path.Child("conditions"), conditionType, "must not be True "+starts))
		}
	}
	return errs
}

func neededReplicas(spec *grove.PodCliqueSpec) int32 {
	return min(ptr.Deref(spec.MinAvailable, spec.Replicas), spec.Replicas)
}

// validateSameAttempt keeps what an attempt has come to. Only a clique that is idle, which
// needs no pod, forgets that it was available.
func validateSameAttempt(status *grove.PodCliqueStatus, old *grove.PodClique, path *field.Path) field.ErrorList {
	before := &old.Status
	var errs field.ErrorList
	if before.WasAvailable && !status.WasAvailable && neededReplicas(&old.Spec) > 0 {
		errs = append(errs, field.Invalid(path.Child("wasAvailable"), false, "stays true within an attempt, unless spec.replicas is 0"))
	}
	if hasSucceeded(before) && !hasSucceeded(status) {
		errs = append(errs, field.Invalid(path.Child("conditions"), grovev1alpha1.ConditionTypeSucceeded, "stays True within an attempt"))
	}
	return errs
}

func observedFollowsSpec(clique *grove.PodClique) field.ErrorList {
	return validateParts(field.NewPath("status"), "spec.attempt", clique.Spec.Attempt, map[string]int32{"observedAttempt": clique.Status.ObservedAttempt})
}

func createdFollowsObserved(clique *grove.PodClique) field.ErrorList {
	if clique.Status.CreatedAttempt == nil {
		return nil
	}
	return validateParts(field.NewPath("status"), "observedAttempt", clique.Status.ObservedAttempt, map[string]int32{"createdAttempt": *clique.Status.CreatedAttempt})
}

func succeededIsComplete(clique *grove.PodClique) field.ErrorList {
	if !hasSucceeded(&clique.Status) {
		return nil
	}
	path := field.NewPath("status", "conditions")
	if clique.Spec.WorkloadType != grove.WorkloadTypeTraining {
		return field.ErrorList{field.Invalid(path, grovev1alpha1.ConditionTypeSucceeded, "an inference clique does not succeed")}
	}
	completed, err := indexset.Parse(clique.Status.CompletedIndexes)
	if err != nil || completed.CountBelow(clique.Spec.Replicas) < int(clique.Spec.Replicas) {
		return field.ErrorList{field.Invalid(path, grovev1alpha1.ConditionTypeSucceeded,
			fmt.Sprintf("needs completedIndexes to hold each index below spec.replicas, %d", clique.Spec.Replicas))}
	}
	return nil
}

// breachFollowsAvailability: a clique that was never available is not breached (seed 001),
// but by pods that fail in Training (D8).
func breachFollowsAvailability(clique *grove.PodClique) field.ErrorList {
	breached := meta.FindStatusCondition(clique.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
	if breached == nil || breached.Status != metav1.ConditionTrue || clique.Status.WasAvailable {
		return nil
	}
	if clique.Spec.WorkloadType == grove.WorkloadTypeTraining && breached.Reason == grovev1alpha1.ReasonPodsFailed {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("status", "conditions"), grovev1alpha1.ConditionTypeMinAvailableBreached,
		"must not be True before wasAvailable is, but with reason PodsFailed in Training")}
}

func partsOfClique(clique *grove.PodClique) field.ErrorList {
	status := &clique.Status
	return validateParts(field.NewPath("status"), "replicas", status.Replicas, map[string]int32{
		"readyReplicas": status.ReadyReplicas, "runningReplicas": status.RunningReplicas, "updatedReplicas": status.UpdatedReplicas,
		"scheduledReplicas": status.ScheduledReplicas, "scheduleGatedReplicas": status.ScheduleGatedReplicas, "startedReplicas": status.StartedReplicas,
	})
}
