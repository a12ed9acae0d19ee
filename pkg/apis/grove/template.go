package grove

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// SamePodTemplate says whether two cliques make the same pods: labels, annotations,
// pod spec and the sets' priority class. Replicas and scale configurations are not part of it (D16).
func SamePodTemplate(a *PodCliqueTemplateSpec, aPriorityClass string, b *PodCliqueTemplateSpec, bPriorityClass string) bool {
	return aPriorityClass == bPriorityClass &&
		apiequality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		apiequality.Semantic.DeepEqual(a.Annotations, b.Annotations) &&
		samePodSpec(&a.Spec.PodSpec, &b.Spec.PodSpec)
}

// samePodSpec compares the binary forms first, which are mostly equal: that takes a tenth
// of the time of looking at each field.
func samePodSpec(a, b *corev1.PodSpec) bool {
	if of, err := a.Marshal(); err == nil {
		if other, err := b.Marshal(); err == nil && bytes.Equal(of, other) {
			return true
		}
	}
	return apiequality.Semantic.DeepEqual(a, b)
}

// Clique returns the clique with a name, or nil.
func (t *PodCliqueSetTemplateSpec) Clique(name string) *PodCliqueTemplateSpec {
	for i := range t.Cliques {
		if t.Cliques[i].Name == name {
			return &t.Cliques[i]
		}
	}
	return nil
}

// ScalingGroup returns the scaling group with a name, or nil.
func (t *PodCliqueSetTemplateSpec) ScalingGroup(name string) *PodCliqueScalingGroupConfig {
	for i := range t.PodCliqueScalingGroups {
		if t.PodCliqueScalingGroups[i].Name == name {
			return &t.PodCliqueScalingGroups[i]
		}
	}
	return nil
}
