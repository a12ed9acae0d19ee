package podtemplate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// inTemplate says where in a clique's template a field of its pod comes from. ok is false
// for what the template does not say: names, host names, and what is added to every pod.
func inTemplate(podField string, clique *grove.PodCliqueTemplateSpec, pod *corev1.Pod) (templateField string, ok bool) {
	switch {
	case podField == "spec.hostname" || podField == "spec.subdomain":
		return "", false
	case strings.HasPrefix(podField, "metadata.labels"), strings.HasPrefix(podField, "metadata.annotations"):
		return strings.TrimPrefix(podField, "metadata."), true
	case strings.HasPrefix(podField, "spec."):
		inSpec, ok := inPodSpec(strings.TrimPrefix(podField, "spec."), &clique.Spec.PodSpec, &pod.Spec)
		return "spec.podSpec." + inSpec, ok
	case podField == "spec":
		return "spec.podSpec", true
	}
	return "", false
}

// inPodSpec corrects indexes into lists that the pod has more of than its template: what
// is added comes last, but for environment variables, where it comes first.
func inPodSpec(podField string, template, rendered *corev1.PodSpec) (string, bool) {
	// A list, an index, possibly the environment and an index of it, and the rest.
	match := regexp.MustCompile(`^(containers|initContainers|volumes)\[(\d+)\](?:\.env\[(\d+)\])?(.*)$`).FindStringSubmatch(podField)
	if match == nil {
		return podField, true
	}
	list, rest := match[1], match[4]
	index, err := strconv.Atoi(match[2])
	if err != nil {
		return "", false
	}
	if list == "volumes" {
		return podField, index < len(template.Volumes)
	}
	of := func(spec *corev1.PodSpec) []corev1.Container {
		if list == "initContainers" {
			return spec.InitContainers
		}
		return spec.Containers
	}
	if index >= len(of(template)) || index >= len(of(rendered)) {
		return "", false
	}
	if match[3] == "" {
		return podField, true
	}
	variable, err := strconv.Atoi(match[3])
	if err != nil || variable >= len(of(rendered)[index].Env) {
		return "", false
	}
	name := of(rendered)[index].Env[variable].Name
	own := slices.IndexFunc(of(template)[index].Env, func(v corev1.EnvVar) bool { return v.Name == name })
	if own < 0 {
		return "", false
	}
	return fmt.Sprintf("%s[%d].env[%d]%s", list, index, own, rest), true
}
