package validation

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// ValidatePodCliqueScalingGroup returns what is wrong with a PodCliqueScalingGroup by itself.
func ValidatePodCliqueScalingGroup(group *grove.PodCliqueScalingGroup) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&group.ObjectMeta, true, nameIsDNSLabel, field.NewPath("metadata"))
	return append(errs, validatePodCliqueScalingGroupSpec(&group.Spec, field.NewPath("spec"))...)
}

func validatePodCliqueScalingGroupSpec(spec *grove.PodCliqueScalingGroupSpec, path *field.Path) field.ErrorList {
	errs := fields.NotNegative(spec.Replicas, path.Child("replicas"))
	if spec.Replicas > MaxPodsPerSet {
		errs = append(errs, field.Invalid(path.Child("replicas"), spec.Replicas, fmt.Sprintf("a set has at most %d pods", MaxPodsPerSet)).WithOrigin("maximum"))
	}
	if spec.Replicas != 0 {
		errs = append(errs, validateMinAvailable(spec.MinAvailable, spec.Replicas, path.Child("minAvailable"))...)
	}
	errs = append(errs, fields.Enum(spec.WorkloadType, path.Child("workloadType"), grove.WorkloadTypeInference, grove.WorkloadTypeTraining)...)
	namesPath := path.Child("cliqueNames")
	if n := len(spec.CliqueNames); n > MaxCliques {
		return append(errs, field.TooMany(namesPath, n, MaxCliques))
	}
	if len(spec.CliqueNames) == 0 {
		errs = append(errs, field.Required(namesPath, "a scaling group needs at least one clique"))
	}
	return append(errs, validateNames(spec.CliqueNames, namesPath)...)
}

// ValidatePodCliqueScalingGroupUpdate returns what is wrong with changing old into group.
func ValidatePodCliqueScalingGroupUpdate(group, old *grove.PodCliqueScalingGroup) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&group.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, fields.Immutable(group.Spec.WorkloadType, old.Spec.WorkloadType, path.Child("workloadType"))...)
	errs = append(errs, fields.Immutable(group.Spec.CliqueNames, old.Spec.CliqueNames, path.Child("cliqueNames"))...)
	errs = append(errs, fields.Immutable(group.Spec.MinAvailable, old.Spec.MinAvailable, path.Child("minAvailable"))...)
	if old.Spec.WorkloadType == grove.WorkloadTypeTraining && group.Spec.Replicas != old.Spec.Replicas {
		errs = append(errs, field.Forbidden(path.Child("replicas"), "is immutable in Training"))
	}
	if group.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(group.Spec, old.Spec) {
		return errs
	}
	return append(errs, fields.Untouched(validatePodCliqueScalingGroupSpec(&group.Spec, path), func() field.ErrorList { return validatePodCliqueScalingGroupSpec(&old.Spec, path) })...)
}
