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
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/internal/conditions"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// ValidatePodCliqueSetStatusUpdate returns what is wrong with moving the status of old
// to that of pcs.
func ValidatePodCliqueSetStatusUpdate(pcs, old *grove.PodCliqueSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&pcs.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("status")
	status, before := &pcs.Status, &old.Status
	errs = append(errs, validatePhaseChange(pcs, old, path.Child("phase"))...)
	errs = append(errs, validateFailureChange(status, before, path.Child("conditions"))...)
	errs = append(errs, validateSuccessChange(pcs, old, path)...)
	errs = append(errs, validateReplicaAttempts(pcs, old, path.Child("replicaStatuses"))...)
	errs = append(errs, validateRestarts(pcs, old, path.Child("restartCount"))...)
	errs = append(errs, validateOpenStages(pcs, old, path.Child("replicaStatuses"))...)
	errs = append(errs, validateWrittenOnce(status.StartTime, before.StartTime, path.Child("startTime"))...)
	errs = append(errs, validateWrittenOnce(status.CompletionTime, before.CompletionTime, path.Child("completionTime"))...)
	errs = append(errs, conditions.ValidateUpdate(status.Conditions, before.Conditions, path.Child("conditions"))...)
	errs = append(errs, validateCounts(path, map[string]int32{
		"replicas": status.Replicas, "updatedReplicas": status.UpdatedReplicas, "availableReplicas": status.AvailableReplicas,
		"succeededReplicas": status.SucceededReplicas, "pods": status.Pods, "availablePods": status.AvailablePods,
	})...)
	return append(errs, ratchet(pcs, old,
		phaseIsKnown, phaseMatchesSucceeded, phaseMatchesFailed, failedHasReasonOfFailureTarget, successExcludesFailure,
		onlyTrainingEnds, endHasTime, timeHasEnd, runningHasStartTime, completionFollowsStart, startupIsInOneState, partsOfSet)...)
}

func isTerminal(phase grove.PodCliqueSetPhase) bool {
	return phase == grove.PodCliqueSetSucceeded || phase == grove.PodCliqueSetFailed
}

func isFailing(status *grove.PodCliqueSetStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
}

// validatePhaseChange keeps terminal phases final, and a phase that has been told.
func validatePhaseChange(pcs, old *grove.PodCliqueSet, path *field.Path) field.ErrorList {
	phase, before := pcs.Status.Phase, old.Status.Phase
	switch {
	case isTerminal(before) && phase != before:
		return field.ErrorList{field.Invalid(path, phase, fmt.Sprintf("%s is final", before))}
	case before != "" && phase == "":
		return field.ErrorList{field.Required(path, fmt.Sprintf("is %s and never emptied again: Pending is the phase in which no pod runs", before))}
	}
	return nil
}

// validateFailureChange keeps the decision to fail, which is recorded by a write before
// the one that says Failed (D4).
func validateFailureChange(status, before *grove.PodCliqueSetStatus, path *field.Path) field.ErrorList {
	const failureTarget, failed = grovev1alpha1.ConditionTypeFailureTarget, grovev1alpha1.ConditionTypeFailed
	if !isFailing(before) {
		if meta.IsStatusConditionTrue(status.Conditions, failed) && !meta.IsStatusConditionTrue(before.Conditions, failed) {
			return field.ErrorList{field.Invalid(path, failed, "needs condition FailureTarget, recorded by an earlier write")}
		}
		return nil
	}
	was, is := meta.FindStatusCondition(before.Conditions, failureTarget), meta.FindStatusCondition(status.Conditions, failureTarget)
	switch {
	case !isFailing(status):
		return field.ErrorList{field.Invalid(path, failureTarget, "is final, it must stay True")}
	case is.Reason != was.Reason:
		return field.ErrorList{field.Invalid(path, failureTarget, fmt.Sprintf("keeps its reason, %s, and does not change it to %s", was.Reason, is.Reason))}
	}
	return nil
}

// validateSuccessChange checks the move to Succeeded. The counters of a set that has
// ended follow its cliques, which may go.
func validateSuccessChange(pcs, old *grove.PodCliqueSet, path *field.Path) field.ErrorList {
	status := &pcs.Status
	if status.Phase != grove.PodCliqueSetSucceeded || old.Status.Phase == status.Phase || pcs.Spec.WorkloadType != grove.WorkloadTypeTraining {
		return nil
	}
	if status.SucceededReplicas != pcs.Spec.Replicas {
		return field.ErrorList{field.Invalid(path.Child("succeededReplicas"), status.SucceededReplicas, fmt.Sprintf("must be spec.replicas, %d, when the phase becomes Succeeded", pcs.Spec.Replicas))}
	}
	return nil
}

func attemptsOf(status *grove.PodCliqueSetStatus) map[int32]int32 {
	attempts := map[int32]int32{}
	for _, replica := range status.ReplicaStatuses {
		attempts[replica.Index] = replica.Attempt
	}
	return attempts
}

// validateReplicaAttempts lets attempts only rise, one by one, and keeps them when their
// replica goes (D3).
func validateReplicaAttempts(pcs, old *grove.PodCliqueSet, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	before := attemptsOf(&old.Status)
	seen := sets.New[int32]()
	for i, replica := range pcs.Status.ReplicaStatuses {
		errs = append(errs, validateUniqueIndex(replica.Index, seen, path.Index(i).Child("index"))...)
		errs = append(errs, validateAttemptChange(replica.Attempt, before[replica.Index], path.Index(i).Child("attempt"))...)
	}
	for _, index := range slices.Sorted(maps.Keys(before)) {
		if attempt := before[index]; attempt > 0 && !seen.Has(index) {
			errs = append(errs, field.Required(path, fmt.Sprintf("replica %d has attempt %d, which must be kept", index, attempt)))
		}
	}
	return errs
}

// validateRestarts ties restartCount to the attempts and to the budget (D5, D6). The
// budget is checked by the write that raises the count: it may be lowered later.
func validateRestarts(pcs, old *grove.PodCliqueSet, path *field.Path) field.ErrorList {
	count, was := pcs.Status.RestartCount, old.Status.RestartCount
	errs := validateNotFalling(count, was, path)
	before, after := attemptsOf(&old.Status), attemptsOf(&pcs.Status)
	var rise int64
	restarted := count > was
	for index, attempt := range after {
		rise += int64(attempt) - int64(before[index])
		restarted = restarted || attempt > before[index]
	}
	if why := whyNoRestart(&pcs.Status, &old.Status); restarted && why != "" {
		errs = append(errs, field.Forbidden(path, "no replica restarts "+why))
	}
	if pcs.Spec.WorkloadType != grove.WorkloadTypeTraining {
		if count != 0 {
			errs = append(errs, field.Invalid(path, count, "stays 0 in Inference"))
		}
		return errs
	}
	if restarts := int64(count) - int64(was); restarts != rise {
		errs = append(errs, field.Invalid(path, count, fmt.Sprintf("rises by %d while the attempts of the replicas rise by %d", restarts, rise)))
	}
	if budget := maxRestarts(&pcs.Spec); count > was && count > budget {
		errs = append(errs, field.Invalid(path, count, fmt.Sprintf("must not rise above spec.trainingSpec.maxRestarts, %d: condition FailureTarget is due", budget)))
	}
	return errs
}

func whyNoRestart(status, before *grove.PodCliqueSetStatus) string {
	switch {
	case isTerminal(before.Phase):
		return fmt.Sprintf("in phase %s", before.Phase)
	case isFailing(before):
		return "once condition FailureTarget is recorded"
	case isFailing(status):
		return "in the write that records condition FailureTarget"
	case isTerminal(status.Phase):
		return fmt.Sprintf("in the write that says %s", status.Phase)
	}
	return ""
}

func maxRestarts(spec *grove.PodCliqueSetSpec) int32 {
	if spec.TrainingSpec == nil {
		return 0
	}
	return ptr.Deref(spec.TrainingSpec.MaxRestarts, 0)
}

// validateOpenStages keeps what has been opened open for the attempt (D20). A replica
// that the set has no more starts anew when it comes back.
func validateOpenStages(pcs, old *grove.PodCliqueSet, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	after := map[int32]grove.PodCliqueSetReplicaStatus{}
	for _, replica := range pcs.Status.ReplicaStatuses {
		after[replica.Index] = replica
	}
	for _, before := range old.Status.ReplicaStatuses {
		replica := after[before.Index]
		if replica.Attempt > before.Attempt || before.Index >= pcs.Spec.Replicas {
			continue
		}
		if closed := sets.New(before.OpenStages...).Delete(replica.OpenStages...); len(closed) > 0 {
			errs = append(errs, field.Invalid(path.Key(fmt.Sprint(before.Index)).Child("openStages"), replica.OpenStages,
				fmt.Sprintf("must hold %v: a stage stays open within attempt %d", sets.List(closed), before.Attempt)))
		}
	}
	return errs
}

func phaseIsKnown(pcs *grove.PodCliqueSet) field.ErrorList {
	if pcs.Status.Phase == "" {
		return nil
	}
	return fields.Enum(pcs.Status.Phase, field.NewPath("status", "phase"),
		grove.PodCliqueSetPending, grove.PodCliqueSetRunning, grove.PodCliqueSetSucceeded, grove.PodCliqueSetFailed)
}

func phaseMatchesSucceeded(pcs *grove.PodCliqueSet) field.ErrorList {
	return phaseMatches(&pcs.Status, grove.PodCliqueSetSucceeded, grovev1alpha1.ConditionTypeSucceeded)
}

func phaseMatchesFailed(pcs *grove.PodCliqueSet) field.ErrorList {
	return phaseMatches(&pcs.Status, grove.PodCliqueSetFailed, grovev1alpha1.ConditionTypeFailed)
}

func phaseMatches(status *grove.PodCliqueSetStatus, phase grove.PodCliqueSetPhase, conditionType string) field.ErrorList {
	if (status.Phase == phase) == meta.IsStatusConditionTrue(status.Conditions, conditionType) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("status", "phase"), status.Phase, fmt.Sprintf("phase %s and condition %s go together", phase, conditionType))}
}

// failedHasReasonOfFailureTarget: Failed ends what FailureTarget began, for the same
// reason, whatever reasons there are.
func failedHasReasonOfFailureTarget(pcs *grove.PodCliqueSet) field.ErrorList {
	failed := meta.FindStatusCondition(pcs.Status.Conditions, grovev1alpha1.ConditionTypeFailed)
	failing := meta.FindStatusCondition(pcs.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
	if failed == nil || failed.Status != metav1.ConditionTrue || failing == nil || failed.Reason == failing.Reason {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("status", "conditions"), grovev1alpha1.ConditionTypeFailed,
		fmt.Sprintf("has reason %s and must have that of condition FailureTarget, %s", failed.Reason, failing.Reason))}
}

func successExcludesFailure(pcs *grove.PodCliqueSet) field.ErrorList {
	if isFailing(&pcs.Status) && meta.IsStatusConditionTrue(pcs.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded) {
		return field.ErrorList{field.Invalid(field.NewPath("status", "conditions"), grovev1alpha1.ConditionTypeSucceeded, "contradicts condition FailureTarget")}
	}
	return nil
}

func onlyTrainingEnds(pcs *grove.PodCliqueSet) field.ErrorList {
	if pcs.Spec.WorkloadType != grove.WorkloadTypeTraining && (isTerminal(pcs.Status.Phase) || isFailing(&pcs.Status)) {
		return field.ErrorList{field.Invalid(field.NewPath("status", "phase"), pcs.Status.Phase, "an inference workload neither succeeds nor fails")}
	}
	return nil
}

func endHasTime(pcs *grove.PodCliqueSet) field.ErrorList {
	if isTerminal(pcs.Status.Phase) && pcs.Status.CompletionTime == nil {
		return field.ErrorList{field.Required(field.NewPath("status", "completionTime"), fmt.Sprintf("phase %s needs it", pcs.Status.Phase))}
	}
	return nil
}

func timeHasEnd(pcs *grove.PodCliqueSet) field.ErrorList {
	if !isTerminal(pcs.Status.Phase) && pcs.Status.CompletionTime != nil {
		return field.ErrorList{field.Invalid(field.NewPath("status", "completionTime"), timeText(pcs.Status.CompletionTime), "needs phase Succeeded or Failed")}
	}
	return nil
}

func runningHasStartTime(pcs *grove.PodCliqueSet) field.ErrorList {
	if pcs.Status.Phase == grove.PodCliqueSetRunning && pcs.Status.StartTime == nil {
		return field.ErrorList{field.Required(field.NewPath("status", "startTime"), "phase Running needs it")}
	}
	return nil
}

func completionFollowsStart(pcs *grove.PodCliqueSet) field.ErrorList {
	start, completion := pcs.Status.StartTime, pcs.Status.CompletionTime
	if start != nil && completion != nil && isBefore(completion, start) {
		return field.ErrorList{field.Invalid(field.NewPath("status", "completionTime"), timeText(completion), "must not be before startTime, "+timeText(start))}
	}
	return nil
}

func startupIsInOneState(pcs *grove.PodCliqueSet) field.ErrorList {
	const inProgress, completed = grovev1alpha1.ConditionTypeStartupPolicyInProgress, grovev1alpha1.ConditionTypeStartupPolicyCompleted
	if meta.IsStatusConditionTrue(pcs.Status.Conditions, inProgress) && meta.IsStatusConditionTrue(pcs.Status.Conditions, completed) {
		return field.ErrorList{field.Invalid(field.NewPath("status", "conditions"), completed, "contradicts condition "+inProgress)}
	}
	return nil
}

// partsOfSet compares counters. In Inference the pods that are available may for a
// moment be more than those that are wanted: a clique's status lags its scale-in.
func partsOfSet(pcs *grove.PodCliqueSet) field.ErrorList {
	path, status := field.NewPath("status"), &pcs.Status
	errs := validateParts(path, "replicas", status.Replicas, map[string]int32{
		"updatedReplicas": status.UpdatedReplicas, "availableReplicas": status.AvailableReplicas, "succeededReplicas": status.SucceededReplicas,
	})
	if pcs.Spec.WorkloadType == grove.WorkloadTypeTraining {
		errs = append(errs, validateParts(path, "pods", status.Pods, map[string]int32{"availablePods": status.AvailablePods})...)
	}
	return errs
}
