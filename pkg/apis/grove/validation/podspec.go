package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePodSpec checks the structure of a pod template as far as it can be known
// without the cluster. Everything else about a pod is for the API server that makes it.
func validatePodSpec(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), "a pod needs at least one container"))
	}
	names := sets.New[string]()
	for i := range spec.InitContainers {
		errs = append(errs, validateUniqueName(spec.InitContainers[i].Name, names, path.Child("initContainers").Index(i).Child("name"))...)
	}
	for i := range spec.Containers {
		errs = append(errs, validateUniqueName(spec.Containers[i].Name, names, path.Child("containers").Index(i).Child("name"))...)
	}
	if spec.RestartPolicy != "" {
		errs = append(errs, validateEnum(spec.RestartPolicy, path.Child("restartPolicy"), corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	}
	if spec.NodeName != "" {
		errs = append(errs, field.Forbidden(path.Child("nodeName"), "the scheduler places the pods of a gang"))
	}
	if spec.SchedulingGroup != nil {
		errs = append(errs, field.Forbidden(path.Child("schedulingGroup"), "is set by the controller"))
	}
	return errs
}
