package validation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
	"github.com/copse-dev/copse/pkg/naming"
)

// validatePodSpec checks the structure of a pod template as far as it can be known
// without the cluster, and keeps what Copse itself sets. Everything else about a pod is
// for the API server that makes it.
func validatePodSpec(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), "a pod needs at least one container"))
	}
	names := sets.New[string]()
	errs = append(errs, validateContainers(spec.InitContainers, names, path.Child("initContainers"))...)
	errs = append(errs, validateContainers(spec.Containers, names, path.Child("containers"))...)
	if len(spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "are for pods that run: use kubectl debug"))
	}
	volumes := sets.New[string]()
	for i := range spec.Volumes {
		namePath := path.Child("volumes").Index(i).Child("name")
		errs = append(errs, fields.UniqueName(spec.Volumes[i].Name, volumes, namePath)...)
		errs = append(errs, validateNotReserved(spec.Volumes[i].Name, namePath, naming.BarrierVolume, naming.TokenVolume)...)
	}
	if spec.RestartPolicy != "" {
		errs = append(errs, fields.Enum(spec.RestartPolicy, path.Child("restartPolicy"), corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	}
	if spec.NodeName != "" {
		errs = append(errs, field.Forbidden(path.Child("nodeName"), "the scheduler places the pods of a gang: use nodeSelector"))
	}
	if len(spec.TopologySpreadConstraints) > 0 {
		errs = append(errs, field.Forbidden(path.Child("topologySpreadConstraints"), "a gang is packed, not spread: use topologyConstraint"))
	}
	if spec.SchedulingGroup != nil {
		errs = append(errs, field.Forbidden(path.Child("schedulingGroup"), "is set by the controller"))
	}
	gates := sets.New[string]()
	for i, gate := range spec.SchedulingGates {
		gatePath := path.Child("schedulingGates").Index(i).Child("name")
		errs = append(errs, validateNotReserved(gate.Name, gatePath, naming.PendingGate)...)
		if gates.Has(gate.Name) {
			errs = append(errs, field.Duplicate(gatePath, gate.Name))
		}
		gates.Insert(gate.Name)
	}
	return errs
}

func validateContainers(containers []corev1.Container, names sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range containers {
		container, containerPath := &containers[i], path.Index(i)
		errs = append(errs, fields.UniqueName(container.Name, names, containerPath.Child("name"))...)
		errs = append(errs, validateNotReserved(container.Name, containerPath.Child("name"), naming.BarrierContainer, naming.OrderContainer)...)
		if len(container.Env) == 0 {
			continue
		}
		variables := make(sets.Set[string], len(container.Env))
		for j := range container.Env {
			name, namePath := container.Env[j].Name, containerPath.Child("env").Index(j).Child("name")
			if name == "" {
				errs = append(errs, field.Required(namePath, "the name of the variable"))
				continue
			}
			for _, msg := range utilvalidation.IsRelaxedEnvVarName(name) {
				errs = append(errs, field.Invalid(namePath, name, msg))
			}
			if variables.Has(name) {
				errs = append(errs, field.Duplicate(namePath, name))
			}
			variables.Insert(name)
		}
	}
	return errs
}

// validateNotReserved keeps names that Copse adds to a pod itself.
func validateNotReserved(name string, path *field.Path, reserved ...string) field.ErrorList {
	if slices.Contains(reserved, name) {
		return field.ErrorList{field.Invalid(path, name, "is a name that the controller itself gives in the pods of a set: choose another")}
	}
	return nil
}

// validateTrainingPod checks that a pod can finish (D13).
func validateTrainingPod(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	const why = "a pod that always restarts never finishes"
	var errs field.ErrorList
	if spec.RestartPolicy == corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("restartPolicy"), spec.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}))
	}
	for i := range spec.Containers {
		if policy := spec.Containers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			errs = append(errs, field.Forbidden(path.Child("containers").Index(i).Child("restartPolicy"), why))
		}
	}
	return errs
}

// validateOneGang checks what the pods of a gang must have in common to be scheduled
// together: the scheduler, and on Kubernetes' own the priority (D23). The set's class is
// that of all its pods, so the cliques' own count only without it.
func validateOneGang(spec *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	cliques, cliquesPath := spec.Template.Cliques, path.Child("cliques")
	inStages := isStaged(spec)
	for i := range cliques {
		pod, first := &cliques[i].Spec.PodSpec, &cliques[0].Spec.PodSpec
		podPath := cliquesPath.Index(i).Child("spec", "podSpec")
		if scheduler := schedulerOf(pod); scheduler != schedulerOf(first) {
			errs = append(errs, field.Invalid(podPath.Child("schedulerName"), pod.SchedulerName,
				fmt.Sprintf("must be %q, as in %s: one scheduler places a set", schedulerOf(first), cliquesPath.Index(0))))
			continue
		}
		// Each stage is a gang of its own (D20).
		if inStages || schedulerOf(pod) != corev1.DefaultSchedulerName {
			continue
		}
		if spec.Template.PriorityClassName == "" && pod.PriorityClassName != first.PriorityClassName {
			errs = append(errs, field.Invalid(podPath.Child("priorityClassName"), pod.PriorityClassName,
				fmt.Sprintf("must be %q, as in %s: a gang has one priority; set spec.template.priorityClassName", first.PriorityClassName, cliquesPath.Index(0))))
		}
		if preemption := preemptionOf(pod); preemption != preemptionOf(first) {
			errs = append(errs, field.Invalid(podPath.Child("preemptionPolicy"), preemption,
				fmt.Sprintf("must be %q, as in %s: a gang has one", preemptionOf(first), cliquesPath.Index(0))))
		}
	}
	return errs
}

func schedulerOf(spec *corev1.PodSpec) string {
	if spec.SchedulerName == "" {
		return corev1.DefaultSchedulerName
	}
	return spec.SchedulerName
}

func preemptionOf(spec *corev1.PodSpec) corev1.PreemptionPolicy {
	if spec.PreemptionPolicy == nil {
		return ""
	}
	return *spec.PreemptionPolicy
}
