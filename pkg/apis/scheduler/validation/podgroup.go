package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/internal/conditions"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
	"github.com/copse-dev/copse/pkg/apis/scheduler"
)

// MaxSubGroups bounds the subgroups of a PodGroup.
const MaxSubGroups = 10000

// ValidatePodGroup returns what is wrong with a PodGroup by itself.
func ValidatePodGroup(group *scheduler.PodGroup) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&group.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validatePodGroupSpec(&group.Spec, field.NewPath("spec"))...)
}

func validatePodGroupSpec(spec *scheduler.PodGroupSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateMinimums(spec.MinMember, spec.MinSubGroup, "a group", path)...)
	errs = append(errs, fields.Subdomain(spec.Queue, path.Child("queue"))...)
	errs = append(errs, fields.Subdomain(spec.PriorityClassName, path.Child("priorityClassName"))...)
	if spec.Preemptibility != "" {
		errs = append(errs, fields.Enum(spec.Preemptibility, path.Child("preemptibility"), scheduler.Preemptible, scheduler.NonPreemptible)...)
	}
	if backoff := spec.SchedulingBackoff; backoff != nil && *backoff != 1 && *backoff != -1 {
		errs = append(errs, field.NotSupported(path.Child("schedulingBackoff"), *backoff, []string{"1", "-1"}))
	}
	errs = append(errs, validateGroupTopology(spec.TopologyConstraint, path.Child("topologyConstraint"))...)
	return append(errs, validateSubGroups(spec.SubGroups, path.Child("subGroups"))...)
}

// validateSubGroups checks that the subgroups are a forest.
func validateSubGroups(groups []scheduler.SubGroup, path *field.Path) field.ErrorList {
	if len(groups) > MaxSubGroups {
		return field.ErrorList{field.TooMany(path, len(groups), MaxSubGroups)}
	}
	var errs field.ErrorList
	names, parents := sets.New[string](), map[string]string{}
	for i := range groups {
		group, groupPath := &groups[i], path.Index(i)
		errs = append(errs, fields.UniqueName(group.Name, names, groupPath.Child("name"))...)
		parents[group.Name] = ptr.Deref(group.Parent, "")
		errs = append(errs, validateMinimums(group.MinMember, group.MinSubGroup, "a subgroup", groupPath)...)
		errs = append(errs, validateGroupTopology(group.TopologyConstraint, groupPath.Child("topologyConstraint"))...)
	}
	ends := map[string]bool{}
	for i := range groups {
		parent, parentPath := parents[groups[i].Name], path.Index(i).Child("parent")
		if parent != "" && !names.Has(parent) {
			errs = append(errs, field.NotFound(parentPath, parent))
		} else if !hasEnd(groups[i].Name, parents, ends) {
			errs = append(errs, field.Invalid(parentPath, parent, "the subgroups form a cycle: a subgroup is in no part of itself"))
		}
	}
	return errs
}

// hasEnd says whether the way up from a subgroup does. It remembers in ends whose has, so
// that a long chain is walked once.
func hasEnd(name string, parents map[string]string, ends map[string]bool) bool {
	var way []string
	seen := sets.New[string]()
	at := name
	for ; at != "" && !seen.Has(at); at = parents[at] {
		if _, known := ends[at]; known {
			break
		}
		way = append(way, at)
		seen.Insert(at)
	}
	end := at == "" || ends[at]
	for _, passed := range way {
		ends[passed] = end
	}
	return end
}

// validateMinimums checks the two ways to count, of which there is one.
func validateMinimums(minMember, minSubGroup *int32, what string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if minMember != nil && minSubGroup != nil {
		errs = append(errs, field.Forbidden(path.Child("minSubGroup"), "excludes minMember: "+what+" counts either pods or subgroups"))
	}
	errs = append(errs, fields.NotNegative(ptr.Deref(minMember, 0), path.Child("minMember"))...)
	return append(errs, fields.NotNegative(ptr.Deref(minSubGroup, 0), path.Child("minSubGroup"))...)
}

func validateGroupTopology(constraint *scheduler.PodGroupTopologyConstraint, path *field.Path) field.ErrorList {
	if constraint == nil {
		return nil
	}
	errs := fields.Subdomain(constraint.Topology, path.Child("topology"))
	if constraint.RequiredTopologyLevel != "" {
		errs = append(errs, fields.LabelKey(constraint.RequiredTopologyLevel, path.Child("requiredTopologyLevel"))...)
	}
	if constraint.PreferredTopologyLevel != "" {
		errs = append(errs, fields.LabelKey(constraint.PreferredTopologyLevel, path.Child("preferredTopologyLevel"))...)
	}
	if constraint.Topology == "" && (constraint.RequiredTopologyLevel != "" || constraint.PreferredTopologyLevel != "") {
		errs = append(errs, field.Required(path.Child("topology"), "the topology that has the levels"))
	}
	return errs
}

// ValidatePodGroupUpdate returns what is wrong with changing old into group.
func ValidatePodGroupUpdate(group, old *scheduler.PodGroup) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&group.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if group.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(group.Spec, old.Spec) {
		return errs
	}
	path := field.NewPath("spec")
	return append(errs, fields.Untouched(validatePodGroupSpec(&group.Spec, path), func() field.ErrorList { return validatePodGroupSpec(&old.Spec, path) })...)
}

// ValidatePodGroupStatusUpdate returns what is wrong with moving the status of old to that of group.
func ValidatePodGroupStatusUpdate(group, old *scheduler.PodGroup) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&group.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, conditions.ValidateUpdate(group.Status.Conditions, old.Status.Conditions, field.NewPath("status", "conditions"))...)
}
