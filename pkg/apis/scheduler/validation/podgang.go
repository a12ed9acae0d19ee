package validation

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/internal/conditions"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// MaxPodsPerGang bounds the pods of a gang: a set has no more.
const MaxPodsPerGang = 20000

// ValidatePodGang returns what is wrong with a PodGang by itself.
func ValidatePodGang(gang *scheduler.PodGang) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&gang.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validatePodGangSpec(gang, field.NewPath("spec"))...)
}

func validatePodGangSpec(gang *scheduler.PodGang, path *field.Path) field.ErrorList {
	spec, groupsPath := &gang.Spec, path.Child("podgroups")
	if items := itemsOf(spec); items > maxListItems {
		return field.ErrorList{field.Invalid(path, items, fmt.Sprintf("has more than %d groups, pods and names in all", maxListItems)).WithOrigin("maximum")}
	}
	var errs field.ErrorList
	if len(spec.PodGroups) == 0 {
		errs = append(errs, field.Required(groupsPath, "a gang needs at least one group of pods"))
	}
	names := sets.New[string]()
	var pods int64
	for i := range spec.PodGroups {
		group, groupPath := &spec.PodGroups[i], groupsPath.Index(i)
		errs = append(errs, validateEntryName(group.Name, names, groupPath.Child("name"))...)
		errs = append(errs, fields.NotNegative(group.MinReplicas, groupPath.Child("minReplicas"))...)
		errs = append(errs, validateConstraint(group.TopologyConstraint, groupPath.Child("topologyConstraint"))...)
		errs = append(errs, validatePodReferences(group.PodReferences, gang.Namespace, groupPath.Child("podReferences"))...)
		pods += int64(max(group.MinReplicas, 0))
	}
	if pods > MaxPodsPerGang {
		errs = append(errs, field.Invalid(groupsPath, pods, fmt.Sprintf("need more than %d pods: lower their minReplicas", MaxPodsPerGang)).WithOrigin("maximum"))
	}
	errs = append(errs, validateConstraint(spec.TopologyConstraint, path.Child("topologyConstraint"))...)
	configs := sets.New[string]()
	for i := range spec.TopologyConstraintGroupConfigs {
		config, configPath := &spec.TopologyConstraintGroupConfigs[i], path.Child("topologyConstraintGroupConfigs").Index(i)
		errs = append(errs, validateEntryName(config.Name, configs, configPath.Child("name"))...)
		errs = append(errs, validateConstraint(config.TopologyConstraint, configPath.Child("topologyConstraint"))...)
		if len(config.PodGroupNames) == 0 {
			errs = append(errs, field.Required(configPath.Child("podGroupNames"), "the groups that are placed together"))
		}
		seen := sets.New[string]()
		for j, name := range config.PodGroupNames {
			switch {
			case !names.Has(name):
				errs = append(errs, field.NotFound(configPath.Child("podGroupNames").Index(j), name))
			case seen.Has(name):
				errs = append(errs, field.Duplicate(configPath.Child("podGroupNames").Index(j), name))
			}
			seen.Insert(name)
		}
	}
	errs = append(errs, fields.Subdomain(spec.PriorityClassName, path.Child("priorityClassName"))...)
	if ref := spec.ReuseReservationRef; ref != nil {
		errs = append(errs, validateReference(ref, gang.Namespace, path.Child("reuseReservationRef"))...)
	}
	return errs
}

// maxListItems bounds what the lists of a gang or group hold in all: as many pods as a
// gang may have, and the groups that they are in.
const maxListItems = 2 * MaxPodsPerGang

func itemsOf(spec *scheduler.PodGangSpec) int {
	items := len(spec.PodGroups) + len(spec.TopologyConstraintGroupConfigs)
	for i := range spec.PodGroups {
		items += len(spec.PodGroups[i].PodReferences)
	}
	for i := range spec.TopologyConstraintGroupConfigs {
		items += len(spec.TopologyConstraintGroupConfigs[i].PodGroupNames)
	}
	return items
}

// validateEntryName checks the name of an entry of a list, which is that of an object.
func validateEntryName(name string, seen sets.Set[string], path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a name that no other entry has")}
	}
	if seen.Has(name) {
		return field.ErrorList{field.Duplicate(path, name)}
	}
	seen.Insert(name)
	return fields.Subdomain(name, path)
}

func validatePodReferences(refs []scheduler.NamespacedName, namespace string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(sets.Set[string], len(refs))
	for i := range refs {
		errs = append(errs, validateReference(&refs[i], namespace, path.Index(i))...)
		if refs[i].Name != "" && seen.Has(refs[i].Name) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), refs[i].Name))
		}
		seen.Insert(refs[i].Name)
	}
	return errs
}

// validateReference checks that an object is named, and that it is where the gang is: what
// reads it may see more than the gang's author.
func validateReference(ref *scheduler.NamespacedName, namespace string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "the name of an object"))
	}
	errs = append(errs, fields.Subdomain(ref.Name, path.Child("name"))...)
	if ref.Namespace != "" && ref.Namespace != namespace {
		errs = append(errs, field.Invalid(path.Child("namespace"), ref.Namespace, "must be the gang's own"))
	}
	return errs
}

// validateConstraint checks the keys of node labels.
func validateConstraint(constraint *scheduler.TopologyConstraint, path *field.Path) field.ErrorList {
	if constraint == nil || constraint.PackConstraint == nil {
		return nil
	}
	pack, packPath := constraint.PackConstraint, path.Child("packConstraint")
	if pack.Required == nil && pack.Preferred == nil {
		return field.ErrorList{field.Required(packPath, "needs required or preferred, the key of a node label")}
	}
	var errs field.ErrorList
	if pack.Required != nil {
		errs = append(errs, fields.LabelKey(*pack.Required, packPath.Child("required"))...)
	}
	if pack.Preferred != nil {
		errs = append(errs, fields.LabelKey(*pack.Preferred, packPath.Child("preferred"))...)
	}
	return errs
}

// ValidatePodGangUpdate returns what is wrong with changing old into gang.
func ValidatePodGangUpdate(gang, old *scheduler.PodGang) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&gang.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if gang.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(gang.Spec, old.Spec) {
		return errs
	}
	path := field.NewPath("spec")
	return append(errs, fields.Untouched(validatePodGangSpec(gang, path), func() field.ErrorList { return validatePodGangSpec(old, path) })...)
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
