package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/internal/conditions"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
)

// ValidatePodGroup returns what is wrong with a PodGroup by itself.
func ValidatePodGroup(group *scheduler.PodGroup) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&group.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec, path := &group.Spec, field.NewPath("spec")
	if spec.MinMember != nil && spec.MinSubGroup != nil {
		errs = append(errs, field.Forbidden(path.Child("minSubGroup"), "excludes minMember: a group counts either pods or subgroups"))
	}
	errs = append(errs, validateMinimum(spec.MinMember, path.Child("minMember"))...)
	errs = append(errs, validateMinimum(spec.MinSubGroup, path.Child("minSubGroup"))...)
	switch spec.Preemptibility {
	case "", scheduler.Preemptible, scheduler.NonPreemptible:
	default:
		errs = append(errs, field.NotSupported(path.Child("preemptibility"), spec.Preemptibility,
			[]scheduler.Preemptibility{scheduler.Preemptible, scheduler.NonPreemptible}))
	}
	if backoff := spec.SchedulingBackoff; backoff != nil && *backoff != 1 && *backoff != -1 {
		errs = append(errs, field.NotSupported(path.Child("schedulingBackoff"), *backoff, []string{"1", "-1"}))
	}
	return append(errs, validateSubGroups(spec.SubGroups, path.Child("subGroups"))...)
}

// validateSubGroups checks that the subgroups are a forest.
func validateSubGroups(groups []scheduler.SubGroup, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	parents := map[string]string{}
	for i, group := range groups {
		namePath := path.Index(i).Child("name")
		for _, msg := range utilvalidation.IsDNS1123Label(group.Name) {
			errs = append(errs, field.Invalid(namePath, group.Name, msg))
		}
		if _, known := parents[group.Name]; known {
			errs = append(errs, field.Duplicate(namePath, group.Name))
		}
		parents[group.Name] = ""
		if group.Parent != nil {
			parents[group.Name] = *group.Parent
		}
		errs = append(errs, validateMinimum(group.MinMember, path.Index(i).Child("minMember"))...)
		errs = append(errs, validateMinimum(group.MinSubGroup, path.Index(i).Child("minSubGroup"))...)
		if group.MinMember != nil && group.MinSubGroup != nil {
			errs = append(errs, field.Forbidden(path.Index(i).Child("minSubGroup"), "excludes minMember: a subgroup counts either pods or subgroups"))
		}
	}
	for i, group := range groups {
		parentPath := path.Index(i).Child("parent")
		seen := sets.New(group.Name)
		for parent := parents[group.Name]; parent != ""; parent = parents[parent] {
			if _, known := parents[parent]; !known {
				errs = append(errs, field.NotFound(parentPath, parent))
				break
			}
			if seen.Has(parent) {
				errs = append(errs, field.Invalid(parentPath, parents[group.Name], "the subgroups form a cycle"))
				break
			}
			seen.Insert(parent)
		}
	}
	return errs
}

func validateMinimum(value *int32, path *field.Path) field.ErrorList {
	if value != nil && *value < 0 {
		return field.ErrorList{field.Invalid(path, *value, "must be 0 or more").WithOrigin("minimum")}
	}
	return nil
}

// ValidatePodGroupUpdate returns what is wrong with changing old into group.
func ValidatePodGroupUpdate(group, old *scheduler.PodGroup) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&group.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if group.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(group.Spec, old.Spec) {
		return errs
	}
	return append(errs, ValidatePodGroup(group)...)
}

// ValidatePodGroupStatusUpdate returns what is wrong with moving the status of old to that of group.
func ValidatePodGroupStatusUpdate(group, old *scheduler.PodGroup) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&group.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, conditions.ValidateUpdate(group.Status.Conditions, old.Status.Conditions, field.NewPath("status", "conditions"))...)
}
