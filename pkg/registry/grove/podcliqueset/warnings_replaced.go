package podcliqueset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/podspec"
)

// replacedFields tells of fields of a valid set that do not do what they seem to say,
// because another field decides or the controller sets them itself.
func replacedFields(pcs *grove.PodCliqueSet) []string {
	var out []string
	warn := func(path *field.Path, text string) { out = append(out, fmt.Sprintf("%s: %s", path, text)) }
	spec, path := &pcs.Spec, field.NewPath("spec")
	template := &spec.Template
	if policy := spec.StartupPolicy; policy != nil && policy.StartupPolicyOrder == grove.StartupPolicyAnyOrder && len(policy.Rules) > 0 {
		warn(path.Child("startupPolicy", "rules"), "is ignored: startupPolicyOrder is AnyOrder")
	}
	if pods := validation.Pods(spec, true); pods > validation.MaxPodsPerSet {
		warn(path, fmt.Sprintf("the autoscalers may ask for %d pods, of which a set has at most %d", pods, validation.MaxPodsPerSet))
	}
	for i := range template.Cliques {
		clique, cliquePath := &template.Cliques[i], path.Child("template", "cliques").Index(i)
		if len(clique.Spec.StartsAfter) > 0 && ptr.Deref(template.StartupType, "") != grove.CliqueStartupTypeExplicit {
			warn(cliquePath.Child("spec", "startsAfter"), "is ignored: cliqueStartupType is not "+string(grove.CliqueStartupTypeExplicit))
		}
		for _, key := range []string{labels.AppName, labels.ManagedBy, labels.PartOf, labels.Component} {
			if _, given := clique.Labels[key]; given {
				warn(cliquePath.Child("labels").Key(key), "is replaced by the controller")
			}
		}
		pod, podPath := &clique.Spec.PodSpec, cliquePath.Child("spec", "podSpec")
		if pod.Hostname != "" {
			warn(podPath.Child("hostname"), "is replaced by the name of the PodClique and the index of the pod")
		}
		if pod.Subdomain != "" {
			warn(podPath.Child("subdomain"), "is replaced by the name of the replica's headless Service")
		}
		if class := template.PriorityClassName; class != "" && pod.PriorityClassName != "" && pod.PriorityClassName != class {
			warn(podPath.Child("priorityClassName"), fmt.Sprintf("is replaced by spec.template.priorityClassName, %q", class))
		}
		for _, path := range replacedVariables(pod, podPath) {
			warn(path, "is replaced by the controller's variable of that name")
		}
		if spec.WorkloadType == grove.WorkloadTypeTraining && pod.RestartPolicy == corev1.RestartPolicyOnFailure && ptr.Deref(template.TerminationDelay, metav1.Duration{}).Duration == 0 {
			warn(podPath.Child("restartPolicy"), "a container restart makes its pod unavailable, which with terminationDelay 0s ends the attempt at once")
		}
	}
	return out
}

// replacedVariables finds environment variables that the controller gives to every
// container itself.
func replacedVariables(pod *corev1.PodSpec, path *field.Path) []*field.Path {
	var found []*field.Path
	of := func(containers []corev1.Container, path *field.Path) {
		for i := range containers {
			for j := range containers[i].Env {
				if podspec.IsOwnVariable(containers[i].Env[j].Name) {
					found = append(found, path.Index(i).Child("env").Index(j))
				}
			}
		}
	}
	of(pod.InitContainers, path.Child("initContainers"))
	of(pod.Containers, path.Child("containers"))
	return found
}
