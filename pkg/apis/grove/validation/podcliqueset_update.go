package validation

import (
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// ValidatePodCliqueSetUpdate returns what is wrong with changing old into pcs.
func ValidatePodCliqueSetUpdate(pcs, old *grove.PodCliqueSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&pcs.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateFabricGroupUpdate(pcs.Annotations, old.Annotations, field.NewPath("metadata", "annotations"))...)
	path := field.NewPath("spec")
	errs = append(errs, fields.Immutable(pcs.Spec.WorkloadType, old.Spec.WorkloadType, path.Child("workloadType"))...)
	errs = append(errs, fields.Immutable(pcs.Spec.StartupPolicy, old.Spec.StartupPolicy, path.Child("startupPolicy"))...)
	errs = append(errs, fields.Immutable(pcs.Spec.GroupSchedulingConfig, old.Spec.GroupSchedulingConfig, path.Child("groupSchedulingConfig"))...)
	errs = append(errs, validateTemplateUpdate(&pcs.Spec.Template, &old.Spec.Template, path.Child("template"))...)
	errs = append(errs, validateCliqueOrder(&pcs.Spec, &old.Spec, path.Child("template", "cliques"))...)
	if old.Spec.WorkloadType == grove.WorkloadTypeTraining {
		errs = append(errs, validateTrainingUpdate(&pcs.Spec, &old.Spec, path)...)
	}
	// A set that is going away needs no valid spec to lose its finalizer.
	if pcs.DeletionTimestamp != nil {
		return errs
	}
	return append(errs, fields.Untouched(validatePodCliqueSetSpec(pcs, path), func() field.ErrorList { return validatePodCliqueSetSpec(old, path) })...)
}

// validateCliqueOrder keeps the order of the cliques where they start in that order: to
// move a clique would change what an immutable field means.
func validateCliqueOrder(spec, old *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	ordered := isStaged(old) ||
		ptr.Deref(old.Template.StartupType, grove.CliqueStartupTypeAnyOrder) == grove.CliqueStartupTypeInOrder
	if !ordered || slices.Equal(commonCliques(&spec.Template, &old.Template), commonCliques(&old.Template, &spec.Template)) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "the order of the cliques is the order in which they start, and is immutable")}
}

// commonCliques names the cliques of template, in order, that other has too.
func commonCliques(template, other *grove.PodCliqueSetTemplateSpec) []string {
	var names []string
	for i := range template.Cliques {
		if name := template.Cliques[i].Name; other.Clique(name) != nil {
			names = append(names, name)
		}
	}
	return names
}

func validateTemplateUpdate(template, old *grove.PodCliqueSetTemplateSpec, path *field.Path) field.ErrorList {
	errs := fields.Immutable(template.StartupType, old.StartupType, path.Child("cliqueStartupType"))
	errs = append(errs, validateTopologyUpdate(template.TopologyConstraint, old.TopologyConstraint, path.Child("topologyConstraint"))...)
	errs = append(errs, fields.Immutable(template.ResourceClaimTemplates, old.ResourceClaimTemplates, path.Child("resourceClaimTemplates"))...)
	errs = append(errs, fields.Immutable(template.ResourceSharing, old.ResourceSharing, path.Child("resourceSharing"))...)

	cliquesPath := path.Child("cliques")
	for i := range template.Cliques {
		clique, cliquePath := &template.Cliques[i], cliquesPath.Index(i)
		before := old.Clique(clique.Name)
		if before == nil {
			errs = append(errs, field.Forbidden(cliquePath.Child("name"), fmt.Sprintf("clique %q cannot be added later", clique.Name)))
			continue
		}
		specPath := cliquePath.Child("spec")
		errs = append(errs, fields.Immutable(clique.Spec.RoleName, before.Spec.RoleName, specPath.Child("roleName"))...)
		errs = append(errs, fields.Immutable(clique.Spec.MinAvailable, before.Spec.MinAvailable, specPath.Child("minAvailable"))...)
		errs = append(errs, fields.Immutable(clique.Spec.StartsAfter, before.Spec.StartsAfter, specPath.Child("startsAfter"))...)
		errs = append(errs, fields.Immutable(clique.Spec.PodSpec.SchedulerName, before.Spec.PodSpec.SchedulerName, specPath.Child("podSpec", "schedulerName"))...)
		errs = append(errs, validateTopologyUpdate(clique.TopologyConstraint, before.TopologyConstraint, cliquePath.Child("topologyConstraint"))...)
		errs = append(errs, validateFabricGroupUpdate(clique.Annotations, before.Annotations, cliquePath.Child("annotations"))...)
		errs = append(errs, fields.Immutable(clique.ResourceSharing, before.ResourceSharing, cliquePath.Child("resourceSharing"))...)
	}
	for i := range old.Cliques {
		if name := old.Cliques[i].Name; template.Clique(name) == nil {
			errs = append(errs, field.Forbidden(cliquesPath, fmt.Sprintf("clique %q cannot be removed", name)))
		}
	}

	groupsPath := path.Child("podCliqueScalingGroups")
	for i := range template.PodCliqueScalingGroups {
		group, groupPath := &template.PodCliqueScalingGroups[i], groupsPath.Index(i)
		before := old.ScalingGroup(group.Name)
		if before == nil {
			errs = append(errs, field.Forbidden(groupPath.Child("name"), fmt.Sprintf("scaling group %q cannot be added later", group.Name)))
			continue
		}
		errs = append(errs, fields.Immutable(group.CliqueNames, before.CliqueNames, groupPath.Child("cliqueNames"))...)
		errs = append(errs, fields.Immutable(group.MinAvailable, before.MinAvailable, groupPath.Child("minAvailable"))...)
		errs = append(errs, validateTopologyUpdate(group.TopologyConstraint, before.TopologyConstraint, groupPath.Child("topologyConstraint"))...)
		errs = append(errs, validateFabricGroupUpdate(group.Annotations, before.Annotations, groupPath.Child("annotations"))...)
		errs = append(errs, fields.Immutable(group.ResourceSharing, before.ResourceSharing, groupPath.Child("resourceSharing"))...)
	}
	for i := range old.PodCliqueScalingGroups {
		if name := old.PodCliqueScalingGroups[i].Name; template.ScalingGroup(name) == nil {
			errs = append(errs, field.Forbidden(groupsPath, fmt.Sprintf("scaling group %q cannot be removed", name)))
		}
	}
	return errs
}
