package validation

import (
	"fmt"
	"math"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// MaxPodsPerSet bounds the pods of a set, so that no field value asks for more than
// a cluster can hold.
const MaxPodsPerSet = 20000

// ValidatePodCliqueSet returns what is wrong with a PodCliqueSet by itself.
func ValidatePodCliqueSet(pcs *grove.PodCliqueSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&pcs.ObjectMeta, true, nameIsDNSLabel, field.NewPath("metadata"))
	return append(errs, validatePodCliqueSetSpec(pcs.Name, &pcs.Spec, field.NewPath("spec"))...)
}

func validatePodCliqueSetSpec(name string, spec *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	errs := validateNotNegative(spec.Replicas, path.Child("replicas"))
	errs = append(errs, validateEnum(spec.WorkloadType, path.Child("workloadType"), grove.WorkloadTypeInference, grove.WorkloadTypeTraining)...)
	if spec.UpdateStrategy != nil {
		errs = append(errs, validateEnum(spec.UpdateStrategy.Type, path.Child("updateStrategy", "type"), grove.UpdateStrategyRollingRecreate, grove.UpdateStrategyOnDelete)...)
	}
	errs = append(errs, validateStartupPolicy(spec, path.Child("startupPolicy"))...)
	errs = append(errs, validateGroupScheduling(spec, path.Child("groupSchedulingConfig"))...)
	errs = append(errs, validateTemplate(&spec.Template, path.Child("template"))...)
	errs = append(errs, validateTraining(spec, path)...)
	errs = append(errs, validateSize(spec, path)...)
	errs = append(errs, validateNameBudget(name, spec, path.Child("template"))...)
	return append(errs, validateNamesApart(&spec.Template, path.Child("template"))...)
}

func validateTemplate(template *grove.PodCliqueSetTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if template.StartupType != nil {
		errs = append(errs, validateEnum(*template.StartupType, path.Child("cliqueStartupType"),
			grove.CliqueStartupTypeAnyOrder, grove.CliqueStartupTypeInOrder, grove.CliqueStartupTypeExplicit)...)
	}
	if template.PriorityClassName != "" {
		for _, msg := range apivalidation.NameIsDNSSubdomain(template.PriorityClassName, false) {
			errs = append(errs, field.Invalid(path.Child("priorityClassName"), template.PriorityClassName, msg))
		}
	}
	cliquesPath := path.Child("cliques")
	if len(template.Cliques) == 0 {
		errs = append(errs, field.Required(cliquesPath, "a set needs at least one clique"))
	}
	names := sets.New[string]()
	roles := sets.New[string]()
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		cliquePath := cliquesPath.Index(i)
		errs = append(errs, validateUniqueName(clique.Name, names, cliquePath.Child("name"))...)
		if role := clique.Spec.RoleName; role != "" {
			if roles.Has(role) {
				errs = append(errs, field.Duplicate(cliquePath.Child("spec", "roleName"), role))
			}
			roles.Insert(role)
		}
		errs = append(errs, validateCliqueTemplate(clique, cliquePath)...)
	}
	errs = append(errs, validateScalingGroups(template, names, path)...)
	return append(errs, validateTerminationDelays(template, path)...)
}

func validateCliqueTemplate(clique *grove.PodCliqueTemplateSpec, path *field.Path) field.ErrorList {
	errs := unversionedvalidation.ValidateLabels(clique.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(clique.Annotations, path.Child("annotations"))...)
	spec, specPath := &clique.Spec, path.Child("spec")
	if spec.Replicas < 1 {
		errs = append(errs, field.Invalid(specPath.Child("replicas"), spec.Replicas, "must be at least 1").WithOrigin("minimum"))
	}
	errs = append(errs, validateMinAvailable(spec.MinAvailable, spec.Replicas, specPath.Child("minAvailable"))...)
	if spec.Attempt != 0 {
		errs = append(errs, field.Forbidden(specPath.Child("attempt"), "is written by the controller"))
	}
	if spec.WorkloadType != "" {
		errs = append(errs, field.Forbidden(specPath.Child("workloadType"), "is set on the set, at spec.workloadType"))
	}
	if spec.AutoScalingConfig != nil {
		errs = append(errs, validateAutoScaling(spec.AutoScalingConfig, spec.MinAvailable, spec.Replicas, specPath.Child("autoScalingConfig"))...)
	}
	return append(errs, validatePodSpec(&spec.PodSpec, specPath.Child("podSpec"))...)
}

func validateScalingGroups(template *grove.PodCliqueSetTemplateSpec, cliques sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	groupOf := map[string]string{}
	for i := range template.PodCliqueScalingGroups {
		group, groupPath := &template.PodCliqueScalingGroups[i], path.Child("podCliqueScalingGroups").Index(i)
		errs = append(errs, validateUniqueName(group.Name, names, groupPath.Child("name"))...)
		errs = append(errs, apivalidation.ValidateAnnotations(group.Annotations, groupPath.Child("annotations"))...)
		replicas := ptr.Deref(group.Replicas, 1)
		if replicas < 1 {
			errs = append(errs, field.Invalid(groupPath.Child("replicas"), replicas, "must be at least 1").WithOrigin("minimum"))
		}
		errs = append(errs, validateMinAvailable(group.MinAvailable, replicas, groupPath.Child("minAvailable"))...)
		if group.ScaleConfig != nil {
			errs = append(errs, validateAutoScaling(group.ScaleConfig, group.MinAvailable, replicas, groupPath.Child("scaleConfig"))...)
		}
		namesPath := groupPath.Child("cliqueNames")
		if len(group.CliqueNames) == 0 {
			errs = append(errs, field.Required(namesPath, "a scaling group needs at least one clique"))
		}
		for j, name := range group.CliqueNames {
			other, taken := groupOf[name]
			switch {
			case !cliques.Has(name):
				errs = append(errs, field.NotFound(namesPath.Index(j), name))
			case taken && other == group.Name:
				errs = append(errs, field.Duplicate(namesPath.Index(j), name))
			case taken:
				errs = append(errs, field.Invalid(namesPath.Index(j), name, fmt.Sprintf("is in scaling group %q already; a clique is in one group at most", other)))
			default:
				groupOf[name] = group.Name
			}
		}
	}
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		if owner, member := groupOf[clique.Name]; member && clique.Spec.AutoScalingConfig != nil {
			errs = append(errs, field.Forbidden(path.Child("cliques").Index(i).Child("spec", "autoScalingConfig"),
				fmt.Sprintf("the clique scales with group %q: use the group's scaleConfig", owner)))
		}
	}
	return errs
}

func validateTerminationDelays(template *grove.PodCliqueSetTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	delayPath := path.Child("terminationDelay")
	if delay := template.TerminationDelay; delay != nil && delay.Duration < 0 {
		errs = append(errs, field.Invalid(delayPath, delay.Duration.String(), "must not be negative").WithOrigin("minimum"))
	}
	for i := range template.PodCliqueScalingGroups {
		delay := template.PodCliqueScalingGroups[i].TerminationDelay
		if delay == nil {
			continue
		}
		overridePath := path.Child("podCliqueScalingGroups").Index(i).Child("terminationDelay")
		if template.TerminationDelay == nil {
			errs = append(errs, field.Forbidden(overridePath, "overrides "+delayPath.String()+", which is not set"))
		}
		if delay.Duration < 0 {
			errs = append(errs, field.Invalid(overridePath, delay.Duration.String(), "must not be negative").WithOrigin("minimum"))
		}
	}
	return errs
}

// validateSize bounds the pods of the whole set. It computes in 64 bits: the largest
// product of three int32 does not fit, so each factor is bounded first.
func validateSize(spec *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	copies := map[string]int64{}
	for _, group := range spec.Template.PodCliqueScalingGroups {
		for _, name := range group.CliqueNames {
			if group.Replicas != nil {
				copies[name] = int64(*group.Replicas)
			}
		}
	}
	var perReplica int64
	for i := range spec.Template.Cliques {
		clique := &spec.Template.Cliques[i]
		n := int64(clique.Spec.Replicas)
		if c, ok := copies[clique.Name]; ok {
			n = saturatingProduct(n, c)
		}
		perReplica = saturatingSum(perReplica, n)
	}
	if total := saturatingProduct(perReplica, int64(spec.Replicas)); total > MaxPodsPerSet {
		return field.ErrorList{field.Invalid(path, total, fmt.Sprintf("the set has more than %d pods: lower the replicas of the set, its scaling groups or its cliques", MaxPodsPerSet)).WithOrigin("maximum")}
	}
	return nil
}

func saturatingProduct(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

func saturatingSum(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// ValidatePodCliqueSetUpdate returns what is wrong with changing old into pcs.
func ValidatePodCliqueSetUpdate(pcs, old *grove.PodCliqueSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&pcs.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, validateImmutable(pcs.Spec.WorkloadType, old.Spec.WorkloadType, path.Child("workloadType"))...)
	errs = append(errs, validateImmutable(pcs.Spec.StartupPolicy, old.Spec.StartupPolicy, path.Child("startupPolicy"))...)
	errs = append(errs, validateImmutable(pcs.Spec.GroupSchedulingConfig, old.Spec.GroupSchedulingConfig, path.Child("groupSchedulingConfig"))...)
	errs = append(errs, validateTemplateUpdate(&pcs.Spec.Template, &old.Spec.Template, path.Child("template"))...)
	errs = append(errs, validateCliqueOrder(&pcs.Spec, &old.Spec, path.Child("template", "cliques"))...)
	if old.Spec.WorkloadType == grove.WorkloadTypeTraining {
		errs = append(errs, validateTrainingUpdate(&pcs.Spec, &old.Spec, path)...)
	}
	// A set that is going away needs no valid spec to lose its finalizer, nor does one
	// whose spec does not change: a rule that was tightened must not block it.
	if pcs.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(pcs.Spec, old.Spec) {
		return errs
	}
	return append(errs, validatePodCliqueSetSpec(pcs.Name, &pcs.Spec, path)...)
}

// validateCliqueOrder keeps the order of the cliques where they start in that order: to
// move a clique would change what an immutable field means.
func validateCliqueOrder(spec, old *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	ordered := old.StartupPolicy != nil && old.StartupPolicy.StartupPolicyOrder == grove.StartupPolicyInOrder ||
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
	errs := validateImmutable(template.StartupType, old.StartupType, path.Child("cliqueStartupType"))
	errs = append(errs, validateImmutable(template.TopologyConstraint, old.TopologyConstraint, path.Child("topologyConstraint"))...)
	errs = append(errs, validateImmutable(template.ResourceClaimTemplates, old.ResourceClaimTemplates, path.Child("resourceClaimTemplates"))...)
	errs = append(errs, validateImmutable(template.ResourceSharing, old.ResourceSharing, path.Child("resourceSharing"))...)

	cliquesPath := path.Child("cliques")
	for i := range template.Cliques {
		clique, cliquePath := &template.Cliques[i], cliquesPath.Index(i)
		before := old.Clique(clique.Name)
		if before == nil {
			errs = append(errs, field.Forbidden(cliquePath.Child("name"), fmt.Sprintf("clique %q cannot be added later", clique.Name)))
			continue
		}
		specPath := cliquePath.Child("spec")
		errs = append(errs, validateImmutable(clique.Spec.RoleName, before.Spec.RoleName, specPath.Child("roleName"))...)
		errs = append(errs, validateImmutable(clique.Spec.MinAvailable, before.Spec.MinAvailable, specPath.Child("minAvailable"))...)
		errs = append(errs, validateImmutable(clique.Spec.StartsAfter, before.Spec.StartsAfter, specPath.Child("startsAfter"))...)
		errs = append(errs, validateImmutable(clique.Spec.PodSpec.SchedulerName, before.Spec.PodSpec.SchedulerName, specPath.Child("podSpec", "schedulerName"))...)
		errs = append(errs, validateImmutable(clique.TopologyConstraint, before.TopologyConstraint, cliquePath.Child("topologyConstraint"))...)
		errs = append(errs, validateImmutable(clique.ResourceSharing, before.ResourceSharing, cliquePath.Child("resourceSharing"))...)
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
		errs = append(errs, validateImmutable(group.CliqueNames, before.CliqueNames, groupPath.Child("cliqueNames"))...)
		errs = append(errs, validateImmutable(group.MinAvailable, before.MinAvailable, groupPath.Child("minAvailable"))...)
		errs = append(errs, validateImmutable(group.TopologyConstraint, before.TopologyConstraint, groupPath.Child("topologyConstraint"))...)
		errs = append(errs, validateImmutable(group.ResourceSharing, before.ResourceSharing, groupPath.Child("resourceSharing"))...)
	}
	for i := range old.PodCliqueScalingGroups {
		if name := old.PodCliqueScalingGroups[i].Name; template.ScalingGroup(name) == nil {
			errs = append(errs, field.Forbidden(groupsPath, fmt.Sprintf("scaling group %q cannot be removed", name)))
		}
	}
	return errs
}
