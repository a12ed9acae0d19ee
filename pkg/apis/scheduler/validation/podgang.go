package validation

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/internal/conditions"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// ValidatePodGang returns what is wrong with a PodGang by itself.
func ValidatePodGang(gang *scheduler.PodGang) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&gang.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	groupsPath := field.NewPath("spec", "podgroups")
	if len(gang.Spec.PodGroups) == 0 {
		errs = append(errs, field.Required(groupsPath, "a gang needs at least one group of pods"))
	}
	names := sets.New[string]()
	for i, group := range gang.Spec.PodGroups {
		path := groupsPath.Index(i)
		if group.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		} else if names.Has(group.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), group.Name))
		}
		names.Insert(group.Name)
		if group.MinReplicas < 0 {
			errs = append(errs, field.Invalid(path.Child("minReplicas"), group.MinReplicas, "must be 0 or more").WithOrigin("minimum"))
		}
		for j, ref := range group.PodReferences {
			refPath := path.Child("podReferences").Index(j)
			if ref.Name == "" {
				errs = append(errs, field.Required(refPath.Child("name"), ""))
			}
			if ref.Namespace != "" && ref.Namespace != gang.Namespace {
				errs = append(errs, field.Invalid(refPath.Child("namespace"), ref.Namespace, "must be the gang's own"))
			}
		}
	}
	configs := sets.New[string]()
	for i, config := range gang.Spec.TopologyConstraintGroupConfigs {
		path := field.NewPath("spec", "topologyConstraintGroupConfigs").Index(i)
		if config.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		} else if configs.Has(config.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), config.Name))
		}
		configs.Insert(config.Name)
		for j, name := range config.PodGroupNames {
			if !names.Has(name) {
				errs = append(errs, field.NotFound(path.Child("podGroupNames").Index(j), name))
			}
		}
	}
	return errs
}

// ValidatePodGangUpdate returns what is wrong with changing old into gang.
func ValidatePodGangUpdate(gang, old *scheduler.PodGang) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&gang.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if gang.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(gang.Spec, old.Spec) {
		return errs
	}
	return append(errs, ValidatePodGang(gang)...)
}

// ValidatePodGangStatusUpdate returns what is wrong with moving the status of old to that
// of gang. A gang that was scheduled stays so within its attempt, as the scheduler's own
// condition does (D23).
func ValidatePodGangStatusUpdate(gang, old *scheduler.PodGang) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&gang.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("status")
	status, before := &gang.Status, &old.Status
	if status.ObservedAttempt < before.ObservedAttempt {
		errs = append(errs, field.Invalid(path.Child("observedAttempt"), status.ObservedAttempt, fmt.Sprintf("must not fall, it is %d", before.ObservedAttempt)))
	}
	const scheduled = schedulerv1alpha1.PodGangConditionScheduled
	if status.ObservedAttempt == before.ObservedAttempt && meta.IsStatusConditionTrue(before.Conditions, scheduled) && !meta.IsStatusConditionTrue(status.Conditions, scheduled) {
		errs = append(errs, field.Invalid(path.Child("conditions"), scheduled, "stays True within an attempt"))
	}
	return append(errs, conditions.ValidateUpdate(status.Conditions, before.Conditions, path.Child("conditions"))...)
}
