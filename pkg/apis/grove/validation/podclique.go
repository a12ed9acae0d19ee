package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// ValidatePodClique returns what is wrong with a PodClique by itself.
func ValidatePodClique(clique *grove.PodClique) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&clique.ObjectMeta, true, nameIsDNSLabel, field.NewPath("metadata"))
	return append(errs, validatePodCliqueSpec(&clique.Spec, field.NewPath("spec"))...)
}

func validatePodCliqueSpec(spec *grove.PodCliqueSpec, path *field.Path) field.ErrorList {
	errs := validateNotNegative(spec.Replicas, path.Child("replicas"))
	if spec.Replicas > MaxPodsPerSet {
		errs = append(errs, field.Invalid(path.Child("replicas"), spec.Replicas, "a set has at most 20000 pods").WithOrigin("maximum"))
	}
	// A clique that is scaled to nothing is idle, whatever its minimum.
	if spec.Replicas != 0 {
		errs = append(errs, validateMinAvailable(spec.MinAvailable, spec.Replicas, path.Child("minAvailable"))...)
	}
	errs = append(errs, validateNotNegative(spec.Attempt, path.Child("attempt"))...)
	errs = append(errs, validateEnum(spec.WorkloadType, path.Child("workloadType"), grove.WorkloadTypeInference, grove.WorkloadTypeTraining)...)
	return append(errs, validatePodSpec(&spec.PodSpec, path.Child("podSpec"))...)
}

// ValidatePodCliqueUpdate returns what is wrong with changing old into clique.
func ValidatePodCliqueUpdate(clique, old *grove.PodClique) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&clique.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("spec")
	spec, before := &clique.Spec, &old.Spec
	errs = append(errs, validateImmutable(spec.WorkloadType, before.WorkloadType, path.Child("workloadType"))...)
	errs = append(errs, validateImmutable(spec.RoleName, before.RoleName, path.Child("roleName"))...)
	errs = append(errs, validateImmutable(spec.MinAvailable, before.MinAvailable, path.Child("minAvailable"))...)
	errs = append(errs, validateImmutable(spec.StartsAfter, before.StartsAfter, path.Child("startsAfter"))...)
	errs = append(errs, validateNotFalling(spec.Attempt, before.Attempt, path.Child("attempt"))...)
	if before.WorkloadType == grove.WorkloadTypeTraining {
		if spec.Replicas != before.Replicas {
			errs = append(errs, field.Forbidden(path.Child("replicas"), "is immutable in Training"))
		}
		if !apiequality.Semantic.DeepEqual(spec.PodSpec, before.PodSpec) {
			errs = append(errs, field.Forbidden(path.Child("podSpec"), "is immutable in Training"))
		}
	}
	if clique.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(clique.Spec, old.Spec) {
		return errs
	}
	return append(errs, validatePodCliqueSpec(spec, path)...)
}
