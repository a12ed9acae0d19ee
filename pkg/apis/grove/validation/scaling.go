package validation

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// validateMinAvailable checks that a minimum lies within 1 and replicas.
func validateMinAvailable(minAvailable *int32, replicas int32, path *field.Path) field.ErrorList {
	switch {
	case minAvailable == nil:
		return nil
	case *minAvailable < 1:
		return field.ErrorList{field.Invalid(path, *minAvailable, "must be at least 1").WithOrigin("minimum")}
	case *minAvailable > replicas:
		return field.ErrorList{field.Invalid(path, *minAvailable, fmt.Sprintf("must not be greater than replicas, %d", replicas))}
	}
	return nil
}

// validateAutoScaling checks that 1 ≤ minAvailable ≤ minReplicas ≤ maxReplicas, and that
// the given size is not above that.
func validateAutoScaling(config *grove.AutoScalingConfig, minAvailable *int32, replicas int32, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	lower := ptr.Deref(config.MinReplicas, replicas)
	if least := ptr.Deref(minAvailable, 1); config.MinReplicas != nil && lower < least {
		errs = append(errs, field.Invalid(path.Child("minReplicas"), lower, fmt.Sprintf("must not be less than minAvailable, %d", least)))
	}
	switch {
	case config.MaxReplicas < max(lower, replicas, 1):
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), config.MaxReplicas, fmt.Sprintf("must not be less than minReplicas and replicas, %d", max(lower, replicas, 1))))
	case config.MaxReplicas > MaxPodsPerSet:
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), config.MaxReplicas, fmt.Sprintf("must not be greater than %d, the pods of a whole set", MaxPodsPerSet)).WithOrigin("maximum"))
	}
	for i := range config.Metrics {
		errs = append(errs, validateMetric(&config.Metrics[i], path.Child("metrics").Index(i))...)
	}
	return append(errs, validateBehavior(config.Behavior, path.Child("behavior"))...)
}

// validateMetric checks that a metric says what it is: an autoscaler is made only later,
// and nobody would be told that it cannot be. The rest is for the API server that makes it.
func validateMetric(metric *autoscalingv2.MetricSpec, path *field.Path) field.ErrorList {
	sources := map[autoscalingv2.MetricSourceType]struct {
		name  string
		given bool
	}{
		autoscalingv2.ObjectMetricSourceType:            {"object", metric.Object != nil},
		autoscalingv2.PodsMetricSourceType:              {"pods", metric.Pods != nil},
		autoscalingv2.ResourceMetricSourceType:          {"resource", metric.Resource != nil},
		autoscalingv2.ContainerResourceMetricSourceType: {"containerResource", metric.ContainerResource != nil},
		autoscalingv2.ExternalMetricSourceType:          {"external", metric.External != nil},
	}
	source, known := sources[metric.Type]
	if !known {
		return fields.Enum(metric.Type, path.Child("type"), autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType,
			autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType)
	}
	if !source.given {
		return field.ErrorList{field.Required(path.Child(source.name), fmt.Sprintf("type %s needs it", metric.Type))}
	}
	return nil
}

func validateScalingGroups(template *grove.PodCliqueSetTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names, cliques := sets.New[string](), cliqueNames(template)
	groupOf := map[string]string{}
	for i := range template.PodCliqueScalingGroups {
		group, groupPath := &template.PodCliqueScalingGroups[i], path.Child("podCliqueScalingGroups").Index(i)
		errs = append(errs, fields.UniqueName(group.Name, names, groupPath.Child("name"))...)
		errs = append(errs, apivalidation.ValidateAnnotations(group.Annotations, groupPath.Child("annotations"))...)
		errs = append(errs, validateFabricGroup(group.Annotations, groupPath.Child("annotations"))...)
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
	return append(errs, validateScalers(template, groupOf, path)...)
}

// validateScalers checks that each HorizontalPodAutoscaler has one target, and a name of its own.
func validateScalers(template *grove.PodCliqueSetTemplateSpec, groupOf map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		if clique.Spec.AutoScalingConfig == nil {
			continue
		}
		configPath := path.Child("cliques").Index(i).Child("spec", "autoScalingConfig")
		if owner, member := groupOf[clique.Name]; member {
			errs = append(errs, field.Forbidden(configPath, fmt.Sprintf("the clique scales with group %q: use the group's scaleConfig", owner)))
		} else if group := template.ScalingGroup(clique.Name); group != nil && group.ScaleConfig != nil {
			errs = append(errs, field.Invalid(configPath, clique.Name, "a scaling group of the same name has a scaleConfig, and an autoscaler is named after what it scales: rename one of them"))
		}
	}
	return errs
}
