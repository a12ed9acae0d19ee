package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// validateTraining checks the rules of seed 000 that depend on the workload type, and
// that Inference uses nothing that is meant for Training.
func validateTraining(spec *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	template, templatePath := &spec.Template, path.Child("template")
	if spec.WorkloadType != grove.WorkloadTypeTraining {
		if spec.TrainingSpec != nil {
			errs = append(errs, field.Forbidden(path.Child("trainingSpec"), "needs workloadType Training"))
		}
		if delay := template.TerminationDelay; delay != nil && delay.Duration == 0 {
			errs = append(errs, field.Invalid(templatePath.Child("terminationDelay"), delay.Duration.String(), "must be more than 0s in Inference; leave it out to switch gang termination off"))
		}
		for i := range template.PodCliqueScalingGroups {
			if delay := template.PodCliqueScalingGroups[i].TerminationDelay; delay != nil && delay.Duration == 0 {
				errs = append(errs, field.Invalid(templatePath.Child("podCliqueScalingGroups").Index(i).Child("terminationDelay"), delay.Duration.String(), "must be more than 0s in Inference; leave it out to take the set's"))
			}
		}
		return errs
	}

	if spec.Replicas < 1 {
		errs = append(errs, field.Invalid(path.Child("replicas"), spec.Replicas, "must be at least 1 in Training").WithOrigin("minimum"))
	}
	if training := spec.TrainingSpec; training != nil {
		trainingPath := path.Child("trainingSpec")
		if training.MaxRestarts != nil {
			errs = append(errs, fields.NotNegative(*training.MaxRestarts, trainingPath.Child("maxRestarts"))...)
		}
		if training.MaxRuntime != nil && training.MaxRuntime.Duration <= 0 {
			errs = append(errs, field.Invalid(trainingPath.Child("maxRuntime"), training.MaxRuntime.Duration.String(), "must be more than 0s; leave it out for no limit").WithOrigin("minimum"))
		}
	}
	for i := range template.Cliques {
		specPath := templatePath.Child("cliques").Index(i).Child("spec")
		clique := &template.Cliques[i].Spec
		if clique.AutoScalingConfig != nil {
			errs = append(errs, field.Forbidden(specPath.Child("autoScalingConfig"), "a training workload does not change its size"))
		}
		errs = append(errs, validateTrainingPod(&clique.PodSpec, specPath.Child("podSpec"))...)
	}
	for i := range template.PodCliqueScalingGroups {
		if template.PodCliqueScalingGroups[i].ScaleConfig != nil {
			errs = append(errs, field.Forbidden(templatePath.Child("podCliqueScalingGroups").Index(i).Child("scaleConfig"), "a training workload does not change its size"))
		}
	}
	return errs
}

// validateTrainingUpdate checks that a training workload keeps its size and its pods
// (seed 000). Budgets, and labels of the set, may change.
func validateTrainingUpdate(spec, old *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	const immutable = "is immutable in Training"
	var errs field.ErrorList
	if spec.Replicas != old.Replicas {
		errs = append(errs, field.Forbidden(path.Child("replicas"), immutable))
	}
	templatePath := path.Child("template")
	for i := range spec.Template.Cliques {
		clique := &spec.Template.Cliques[i]
		before := old.Template.Clique(clique.Name)
		if before == nil {
			continue
		}
		cliquePath := templatePath.Child("cliques").Index(i)
		if clique.Spec.Replicas != before.Spec.Replicas {
			errs = append(errs, field.Forbidden(cliquePath.Child("spec", "replicas"), immutable))
		}
		if !grove.SamePodTemplate(clique, spec.Template.PriorityClassName, before, old.Template.PriorityClassName) {
			errs = append(errs, field.Forbidden(cliquePath, "the labels, annotations, podSpec and priorityClassName that pods are made from are immutable in Training"))
		}
	}
	for i := range spec.Template.PodCliqueScalingGroups {
		group := &spec.Template.PodCliqueScalingGroups[i]
		before := old.Template.ScalingGroup(group.Name)
		if before != nil && ptr.Deref(group.Replicas, 1) != ptr.Deref(before.Replicas, 1) {
			errs = append(errs, field.Forbidden(templatePath.Child("podCliqueScalingGroups").Index(i).Child("replicas"), immutable))
		}
	}
	return errs
}
