package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/conditions"
)

// ValidateClusterTopologyBinding returns what is wrong with a ClusterTopologyBinding by itself.
func ValidateClusterTopologyBinding(binding *grove.ClusterTopologyBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&binding.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	levelsPath := field.NewPath("spec", "levels")
	if len(binding.Spec.Levels) == 0 {
		errs = append(errs, field.Required(levelsPath, "a topology needs at least one level"))
	}
	domains, keys := sets.New[string](), sets.New[string]()
	for i, level := range binding.Spec.Levels {
		path := levelsPath.Index(i)
		errs = append(errs, validateUniqueName(level.Domain, domains, path.Child("domain"))...)
		if level.Key == "" {
			errs = append(errs, field.Required(path.Child("key"), "the key of a node label"))
			continue
		}
		for _, msg := range utilvalidation.IsQualifiedName(level.Key) {
			errs = append(errs, field.Invalid(path.Child("key"), level.Key, msg))
		}
		if keys.Has(level.Key) {
			errs = append(errs, field.Duplicate(path.Child("key"), level.Key))
		}
		keys.Insert(level.Key)
	}
	schedulers := sets.New[string]()
	for i, ref := range binding.Spec.SchedulerTopologyBindings {
		path := field.NewPath("spec", "schedulerTopologyBindings").Index(i)
		if ref.SchedulerName == "" {
			errs = append(errs, field.Required(path.Child("schedulerName"), ""))
		} else if schedulers.Has(ref.SchedulerName) {
			errs = append(errs, field.Duplicate(path.Child("schedulerName"), ref.SchedulerName))
		}
		schedulers.Insert(ref.SchedulerName)
		if ref.TopologyReference == "" {
			errs = append(errs, field.Required(path.Child("topologyReference"), ""))
		}
	}
	return errs
}

// ValidateClusterTopologyBindingUpdate returns what is wrong with changing old into binding.
func ValidateClusterTopologyBindingUpdate(binding, old *grove.ClusterTopologyBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&binding.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if binding.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(binding.Spec, old.Spec) {
		return errs
	}
	return append(errs, ValidateClusterTopologyBinding(binding)...)
}

// ValidateClusterTopologyBindingStatusUpdate returns what is wrong with moving the
// status of old to that of binding.
func ValidateClusterTopologyBindingStatusUpdate(binding, old *grove.ClusterTopologyBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&binding.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, conditions.ValidateUpdate(binding.Status.Conditions, old.Status.Conditions, field.NewPath("status", "conditions"))...)
}
