package validation

import (
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
	"github.com/copse-dev/copse/pkg/labels"
)

// ValidatePodCliqueSet returns what is wrong with a PodCliqueSet by itself.
func ValidatePodCliqueSet(pcs *grove.PodCliqueSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&pcs.ObjectMeta, true, nameIsServiceName, field.NewPath("metadata"))
	errs = append(errs, validateFabricGroup(pcs.Annotations, field.NewPath("metadata", "annotations"))...)
	return append(errs, validatePodCliqueSetSpec(pcs, field.NewPath("spec"))...)
}

func validatePodCliqueSetSpec(pcs *grove.PodCliqueSet, path *field.Path) field.ErrorList {
	spec := &pcs.Spec
	if errs := validateLists(spec, path); len(errs) > 0 {
		return errs
	}
	errs := fields.NotNegative(spec.Replicas, path.Child("replicas"))
	errs = append(errs, fields.Enum(spec.WorkloadType, path.Child("workloadType"), grove.WorkloadTypeInference, grove.WorkloadTypeTraining)...)
	if spec.UpdateStrategy != nil {
		errs = append(errs, fields.Enum(spec.UpdateStrategy.Type, path.Child("updateStrategy", "type"), grove.UpdateStrategyRollingRecreate, grove.UpdateStrategyOnDelete)...)
		if away := spec.UpdateStrategy.MaxUnavailable; away != nil && *away < 1 {
			errs = append(errs, field.Invalid(path.Child("updateStrategy", "maxUnavailable"), *away, "must be at least 1: pods are replaced in place, and while that goes on one is away"))
		}
	}
	errs = append(errs, validateStartupPolicy(spec, path.Child("startupPolicy"))...)
	errs = append(errs, validateGroupScheduling(spec, path)...)
	errs = append(errs, validateWaiters(spec, path.Child("template", "cliques"))...)
	errs = append(errs, validateTemplate(&spec.Template, path.Child("template"))...)
	errs = append(errs, validateOneGang(spec, path.Child("template"))...)
	errs = append(errs, validateTraining(spec, path)...)
	errs = append(errs, validateSize(spec, path)...)
	errs = append(errs, validateSetBytes(pcs, path)...)
	errs = append(errs, validateNameBudget(pcs.Name, spec, path.Child("template"))...)
	errs = append(errs, validateClaimNames(pcs.Name, &spec.Template, path.Child("template"))...)
	return append(errs, validateNamesApart(&spec.Template, isStaged(spec), path.Child("template"))...)
}

func validateTemplate(template *grove.PodCliqueSetTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if template.StartupType != nil {
		errs = append(errs, fields.Enum(*template.StartupType, path.Child("cliqueStartupType"),
			grove.CliqueStartupTypeAnyOrder, grove.CliqueStartupTypeInOrder, grove.CliqueStartupTypeExplicit)...)
	}
	errs = append(errs, fields.Subdomain(template.PriorityClassName, path.Child("priorityClassName"))...)
	cliquesPath := path.Child("cliques")
	if len(template.Cliques) == 0 {
		errs = append(errs, field.Required(cliquesPath, "a set needs at least one clique"))
	}
	names := sets.New[string]()
	roles := sets.New[string]()
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		cliquePath := cliquesPath.Index(i)
		errs = append(errs, fields.UniqueName(clique.Name, names, cliquePath.Child("name"))...)
		if role := clique.Spec.RoleName; role != "" {
			if roles.Has(role) {
				errs = append(errs, field.Duplicate(cliquePath.Child("spec", "roleName"), role))
			}
			roles.Insert(role)
		}
		errs = append(errs, validateCliqueTemplate(clique, cliquePath)...)
	}
	errs = append(errs, validateStartsAfter(template, path)...)
	errs = append(errs, validateScalingGroups(template, path)...)
	errs = append(errs, validateTopology(template, path)...)
	errs = append(errs, validateResources(template, path)...)
	return append(errs, validateTerminationDelays(template, path)...)
}

func validateCliqueTemplate(clique *grove.PodCliqueTemplateSpec, path *field.Path) field.ErrorList {
	errs := unversionedvalidation.ValidateLabels(clique.Labels, path.Child("labels"))
	errs = append(errs, validateOwnLabels(clique.Labels, path.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(clique.Annotations, path.Child("annotations"))...)
	errs = append(errs, validateFabricGroup(clique.Annotations, path.Child("annotations"))...)
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

// validateOwnLabels keeps the labels that say what a pod is and whose: a pod that carries
// those of another set would be counted, or found, as one of its.
func validateOwnLabels(cliqueLabels map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(cliqueLabels)) {
		if strings.HasPrefix(key, labels.Domain) {
			errs = append(errs, field.Forbidden(path.Key(key), "labels of "+labels.Domain+" are set by the controller: use a domain of your own"))
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
