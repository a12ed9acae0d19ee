package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/conditions"
)

// ValidatePodCliqueScalingGroupStatusUpdate returns what is wrong with moving the status
// of old to that of group.
func ValidatePodCliqueScalingGroupStatusUpdate(group, old *grove.PodCliqueScalingGroup) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&group.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("status")
	status, before := &group.Status, &old.Status
	errs = append(errs, validateNotFalling(status.ObservedAttempt, before.ObservedAttempt, path.Child("observedAttempt"))...)
	errs = append(errs, validateCopyAttempts(group, old, path.Child("replicaAttempts"))...)
	errs = append(errs, conditions.ValidateUpdate(status.Conditions, before.Conditions, path.Child("conditions"))...)
	errs = append(errs, validateCounts(path, map[string]int32{
		"replicas": status.Replicas, "scheduledReplicas": status.ScheduledReplicas,
		"availableReplicas": status.AvailableReplicas, "updatedReplicas": status.UpdatedReplicas,
	})...)
	return append(errs, ratchet(group, old, partsOfGroup)...)
}

// validateCopyAttempts lets the attempts of copies only rise, one by one and in Inference
// alone (D6), and keeps them when their copy goes (D3).
func validateCopyAttempts(group, old *grove.PodCliqueScalingGroup, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	before := map[int32]grove.ScalingGroupReplicaAttempt{}
	for _, replica := range old.Status.ReplicaAttempts {
		before[replica.Index] = replica
	}
	seen := sets.New[int32]()
	for i, replica := range group.Status.ReplicaAttempts {
		was, replicaPath := before[replica.Index], path.Index(i)
		errs = append(errs, validateUniqueIndex(replica.Index, seen, replicaPath.Child("index"))...)
		errs = append(errs, validateAttemptChange(replica.Attempt, was.Attempt, replicaPath.Child("attempt"))...)
		errs = append(errs, validateSetAttempt(replica, was, group.Status.ObservedAttempt, replicaPath.Child("setAttempt"))...)
		if replica.Attempt > was.Attempt && group.Spec.WorkloadType == grove.WorkloadTypeTraining {
			errs = append(errs, field.Forbidden(replicaPath.Child("attempt"), "no copy is recycled in Training: its whole replica restarts"))
		}
	}
	for _, was := range old.Status.ReplicaAttempts {
		if was.Attempt > 0 && !seen.Has(was.Index) {
			errs = append(errs, field.Required(path, fmt.Sprintf("copy %d has attempt %d, which must be kept", was.Index, was.Attempt)))
		}
	}
	return errs
}

// validateSetAttempt checks the attempt of the set's replica at the last recycling.
func validateSetAttempt(replica, was grove.ScalingGroupReplicaAttempt, observed int32, path *field.Path) field.ErrorList {
	switch {
	case replica.SetAttempt <= was.SetAttempt:
		return validateNotFalling(replica.SetAttempt, was.SetAttempt, path)
	case replica.Attempt <= was.Attempt:
		return field.ErrorList{field.Invalid(path, replica.SetAttempt, fmt.Sprintf("rises only with attempt, it is %d", was.SetAttempt))}
	case replica.SetAttempt > observed:
		return field.ErrorList{field.Invalid(path, replica.SetAttempt, fmt.Sprintf("must not rise above observedAttempt, %d", observed))}
	}
	return nil
}

func partsOfGroup(group *grove.PodCliqueScalingGroup) field.ErrorList {
	status := &group.Status
	return validateParts(field.NewPath("status"), "replicas", status.Replicas, map[string]int32{
		"scheduledReplicas": status.ScheduledReplicas, "availableReplicas": status.AvailableReplicas, "updatedReplicas": status.UpdatedReplicas,
	})
}
