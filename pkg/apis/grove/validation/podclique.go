package validation

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// ValidatePodClique returns what is wrong with a PodClique by itself.
func ValidatePodClique(clique *grove.PodClique) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&clique.ObjectMeta, true, nameIsDNSLabel, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, validateWithinMaximum(&clique.Spec, path.Child("replicas"))...)
	return append(errs, validatePodCliqueSpec(clique, path)...)
}

func validatePodCliqueSpec(clique *grove.PodClique, path *field.Path) field.ErrorList {
	spec := &clique.Spec
	if items := itemsOf(spec); items > MaxListItems {
		return field.ErrorList{tooManyItems(items, path)}
	}
	errs := fields.NotNegative(spec.Replicas, path.Child("replicas"))
	if spec.Replicas > MaxPodsPerSet {
		errs = append(errs, field.Invalid(path.Child("replicas"), spec.Replicas, fmt.Sprintf("a set has at most %d pods", MaxPodsPerSet)).WithOrigin("maximum"))
	}
	// A clique that is scaled to nothing is idle, whatever its minimum.
	if spec.Replicas != 0 {
		errs = append(errs, validateMinAvailable(spec.MinAvailable, spec.Replicas, path.Child("minAvailable"))...)
	}
	errs = append(errs, validateNames(spec.StartsAfter, path.Child("startsAfter"))...)
	errs = append(errs, fields.NotNegative(spec.Attempt, path.Child("attempt"))...)
	errs = append(errs, fields.Enum(spec.WorkloadType, path.Child("workloadType"), grove.WorkloadTypeInference, grove.WorkloadTypeTraining)...)
	errs = append(errs, validatePodSpec(&spec.PodSpec, path.Child("podSpec"))...)
	switch {
	case spec.WorkloadType == grove.WorkloadTypeTraining:
		errs = append(errs, validateTrainingPod(&spec.PodSpec, path.Child("podSpec"))...)
		if spec.AutoScalingConfig != nil {
			errs = append(errs, field.Forbidden(path.Child("autoScalingConfig"), "a training workload does not change its size"))
		}
	case spec.AutoScalingConfig != nil:
		errs = append(errs, validateAutoScaling(spec.AutoScalingConfig, spec.MinAvailable, 0, path.Child("autoScalingConfig"))...)
	}
	return append(errs, validateCliqueBytes(clique, path)...)
}

// validateWithinMaximum bounds a size that is given. One that was given before the
// maximum was lowered stays until somebody scales.
func validateWithinMaximum(spec *grove.PodCliqueSpec, path *field.Path) field.ErrorList {
	if spec.AutoScalingConfig == nil || spec.Replicas <= spec.AutoScalingConfig.MaxReplicas {
		return nil
	}
	return field.ErrorList{field.Invalid(path, spec.Replicas, fmt.Sprintf("must not be greater than maxReplicas of autoScalingConfig, %d", spec.AutoScalingConfig.MaxReplicas)).WithOrigin("maximum")}
}

// ValidatePodCliqueUpdate returns what is wrong with changing old into clique.
func ValidatePodCliqueUpdate(clique, old *grove.PodClique) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&clique.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("spec")
	spec, before := &clique.Spec, &old.Spec
	errs = append(errs, fields.Immutable(spec.WorkloadType, before.WorkloadType, path.Child("workloadType"))...)
	errs = append(errs, fields.Immutable(spec.RoleName, before.RoleName, path.Child("roleName"))...)
	errs = append(errs, fields.Immutable(spec.MinAvailable, before.MinAvailable, path.Child("minAvailable"))...)
	errs = append(errs, fields.Immutable(spec.StartsAfter, before.StartsAfter, path.Child("startsAfter"))...)
	errs = append(errs, fields.Immutable(spec.PodSpec.SchedulerName, before.PodSpec.SchedulerName, path.Child("podSpec", "schedulerName"))...)
	errs = append(errs, validateNotFalling(spec.Attempt, before.Attempt, path.Child("attempt"))...)
	if before.WorkloadType == grove.WorkloadTypeTraining {
		if spec.Replicas != before.Replicas {
			errs = append(errs, field.Forbidden(path.Child("replicas"), "is immutable in Training"))
		}
		if !apiequality.Semantic.DeepEqual(spec.PodSpec, before.PodSpec) {
			errs = append(errs, field.Forbidden(path.Child("podSpec"), "is immutable in Training"))
		}
	}
	if clique.DeletionTimestamp != nil {
		return errs
	}
	if spec.Replicas != before.Replicas {
		errs = append(errs, validateWithinMaximum(spec, path.Child("replicas"))...)
	}
	return append(errs, fields.Untouched(validatePodCliqueSpec(clique, path), func() field.ErrorList { return validatePodCliqueSpec(old, path) })...)
}
