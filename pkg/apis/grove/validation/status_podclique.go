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
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	"github.com/copse-dev/copse/pkg/apis/grove/recovery"
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
	errs = append(errs, validateNotFalling(status.ObservedAttempt, before.ObservedAttempt, path.Child("observedAttempt"))...)
	errs = append(errs, validateCreatedAttempt(status.CreatedAttempt, before.CreatedAttempt, path.Child("createdAttempt"))...)
	errs = append(errs, validateCompletedIndexes(clique, old, path.Child("completedIndexes"))...)
	errs = append(errs, validateFailedIndexKeys(status.FailedIndexes, path.Child("failedIndexes"))...)
	errs = append(errs, validateRecoveredIndexes(status, path.Child("recoveredIndexes"))...)
	switch {
	case status.ObservedAttempt > before.ObservedAttempt:
		errs = append(errs, validateFreshAttempt(clique, path)...)
	case status.ObservedAttempt == before.ObservedAttempt:
		errs = append(errs, validateSameAttempt(status, before, path)...)
		errs = append(errs, validateFailedIndexes(clique, old, path.Child("failedIndexes"))...)
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

func validateFailedIndexKeys(indexes []grove.FailedIndex, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[int32]()
	for i, failed := range indexes {
		errs = append(errs, validateUniqueIndex(failed.Index, seen, path.Index(i).Child("index"))...)
		if i > 0 && failed.Index < indexes[i-1].Index {
			errs = append(errs, field.Invalid(path.Index(i).Child("index"), failed.Index, "must be in ascending order"))
		}
		errs = append(errs, fields.NotNegative(failed.Count, path.Index(i).Child("count"))...)
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

func validateSameAttempt(status, before *grove.PodCliqueStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if before.WasAvailable && !status.WasAvailable {
		errs = append(errs, field.Invalid(path.Child("wasAvailable"), false, "stays true within an attempt"))
	}
	if hasSucceeded(before) && !hasSucceeded(status) {
		errs = append(errs, field.Invalid(path.Child("conditions"), grovev1alpha1.ConditionTypeSucceeded, "stays True within an attempt"))
	}
	return errs
}

// validateRecoveredIndexes checks that each can be read, and that none is on record twice.
func validateRecoveredIndexes(status *grove.PodCliqueStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[int32]()
	for i := range status.FailedIndexes {
		seen.Insert(status.FailedIndexes[i].Index)
	}
	last := int32(-1)
	for i, text := range status.RecoveredIndexes {
		record, err := recovery.Parse(text)
		if err != nil {
			errs = append(errs, field.Invalid(path.Index(i), text, err.Error()))
			continue
		}
		errs = append(errs, validateUniqueIndex(record.Index, seen, path.Index(i))...)
		if record.Index < last {
			errs = append(errs, field.Invalid(path.Index(i), text, "must be in ascending order of the indexes"))
		}
		last = record.Index
	}
	return errs
}

// failuresOf are the failures of each index, those that are kept in short as well: such an
// index failed for the last time before it was well.
func failuresOf(status *grove.PodCliqueStatus) map[int32]*grove.FailedIndex {
	failures := map[int32]*grove.FailedIndex{}
	for i := range status.FailedIndexes {
		failures[status.FailedIndexes[i].Index] = &status.FailedIndexes[i]
	}
	for _, text := range status.RecoveredIndexes {
		if record, err := recovery.Parse(text); err == nil {
			since := metav1.NewTime(record.Since)
			failures[record.Index] = &grove.FailedIndex{Index: record.Index, Count: record.Count, LastTime: since, RecoveredTime: &since}
		}
	}
	return failures
}

// validateFailedIndexes keeps what has failed within an attempt (D8). The count of an
// index falls only with a failure that starts it anew.
func validateFailedIndexes(clique, old *grove.PodClique, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	before, after := failuresOf(&old.Status), failuresOf(&clique.Status)
	for i := range clique.Status.FailedIndexes {
		failed, indexPath := &clique.Status.FailedIndexes[i], path.Index(i).Child
		was := before[failed.Index]
		if was == nil {
			was = &grove.FailedIndex{}
		}
		if isBefore(&failed.LastTime, &was.LastTime) {
			errs = append(errs, field.Invalid(indexPath("lastTime"), timeText(&failed.LastTime), "must not go back, it is "+timeText(&was.LastTime)))
		}
		if countFalls(failed, was) {
			errs = append(errs, field.Invalid(indexPath("count"), failed.Count, fmt.Sprintf("must not fall, it is %d, unless a later failure starts it anew at 1", was.Count)))
		}
		if recoversBeforeFailure(failed) && !recoversBeforeFailure(was) {
			errs = append(errs, field.Invalid(indexPath("recoveredTime"), timeText(failed.RecoveredTime), "must not be before lastTime, "+timeText(&failed.LastTime)))
		}
	}
	isFull := len(old.Status.FailedIndexes)+len(old.Status.RecoveredIndexes) >= grovev1alpha1.MaxFailedIndexes
	for _, index := range slices.Sorted(maps.Keys(before)) {
		was, is := before[index], after[index]
		// A scale-in takes an index with all that is known of it, and one that has recovered
		// makes room for others.
		if is == nil && index < clique.Spec.Replicas && (was.RecoveredTime == nil || !isFull) {
			errs = append(errs, field.Required(path, fmt.Sprintf("index %d has failed in this attempt, which must be kept", index)))
		}
	}
	return append(errs, validateShortened(clique.Status.RecoveredIndexes, before, field.NewPath("status", "recoveredIndexes"))...)
}

// validateShortened checks that what is kept in short was told in full before, or as it is.
func validateShortened(records []string, before map[int32]*grove.FailedIndex, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, text := range records {
		record, err := recovery.Parse(text)
		if err != nil {
			continue
		}
		was := before[record.Index]
		if was == nil || was.RecoveredTime == nil || was.Count != record.Count || !was.RecoveredTime.Time.Equal(record.Since) {
			errs = append(errs, field.Invalid(path.Index(i), text, "must have been on record with this count and recoveredTime"))
		}
	}
	return errs
}

func countFalls(failed, was *grove.FailedIndex) bool {
	return failed.Count < was.Count && (failed.Count != 1 || !isBefore(&was.LastTime, &failed.LastTime))
}

func recoversBeforeFailure(failed *grove.FailedIndex) bool {
	return failed.RecoveredTime != nil && isBefore(failed.RecoveredTime, &failed.LastTime)
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
