package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/conditions"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// MaxTopologyLevels bounds the levels of a topology, and the schedulers that it is bound to.
const MaxTopologyLevels = 64

// ValidateClusterTopologyBinding returns what is wrong with a ClusterTopologyBinding by itself.
func ValidateClusterTopologyBinding(binding *grove.ClusterTopologyBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&binding.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateClusterTopologyBindingSpec(&binding.Spec, field.NewPath("spec"))...)
}

func validateClusterTopologyBindingSpec(spec *grove.ClusterTopologyBindingSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	levelsPath, bindingsPath := path.Child("levels"), path.Child("schedulerTopologyBindings")
	if n := len(spec.Levels); n > MaxTopologyLevels {
		errs = append(errs, field.TooMany(levelsPath, n, MaxTopologyLevels))
	}
	if n := len(spec.SchedulerTopologyBindings); n > MaxTopologyLevels {
		errs = append(errs, field.TooMany(bindingsPath, n, MaxTopologyLevels))
	}
	if len(errs) > 0 {
		return errs
	}
	if len(spec.Levels) == 0 {
		errs = append(errs, field.Required(levelsPath, "a topology needs at least one level"))
	}
	domains, keys := sets.New[string](), sets.New[string]()
	for i, level := range spec.Levels {
		path := levelsPath.Index(i)
		errs = append(errs, fields.UniqueName(level.Domain, domains, path.Child("domain"))...)
		if level.Key == "" {
			errs = append(errs, field.Required(path.Child("key"), "the key of a node label"))
			continue
		}
		errs = append(errs, fields.LabelKey(level.Key, path.Child("key"))...)
		if keys.Has(level.Key) {
			errs = append(errs, field.Duplicate(path.Child("key"), level.Key))
		}
		keys.Insert(level.Key)
	}
	schedulers := sets.New[string]()
	for i, ref := range spec.SchedulerTopologyBindings {
		path := bindingsPath.Index(i)
		if ref.SchedulerName == "" {
			errs = append(errs, field.Required(path.Child("schedulerName"), "the scheduler that has the topology"))
		} else if schedulers.Has(ref.SchedulerName) {
			errs = append(errs, field.Duplicate(path.Child("schedulerName"), ref.SchedulerName))
		}
		schedulers.Insert(ref.SchedulerName)
		errs = append(errs, fields.Subdomain(ref.SchedulerName, path.Child("schedulerName"))...)
		errs = append(errs, fields.Subdomain(ref.TopologyReference, path.Child("topologyReference"))...)
		if ref.TopologyReference == "" {
			errs = append(errs, field.Required(path.Child("topologyReference"), "the name of the scheduler's topology object"))
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
	path := field.NewPath("spec")
	return append(errs, fields.Untouched(validateClusterTopologyBindingSpec(&binding.Spec, path), func() field.ErrorList {
		return validateClusterTopologyBindingSpec(&old.Spec, path)
	})...)
}

// ValidateClusterTopologyBindingStatusUpdate returns what is wrong with moving the
// status of old to that of binding.
func ValidateClusterTopologyBindingStatusUpdate(binding, old *grove.ClusterTopologyBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&binding.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, conditions.ValidateUpdate(binding.Status.Conditions, old.Status.Conditions, field.NewPath("status", "conditions"))...)
}
