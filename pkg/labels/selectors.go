package labels

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The selectors below are for autoscalers and people, who find pods by label. They
// depend on names alone, so that /scale has them from an object's first moment on.

// PodsOfSet selects the pods of the PodCliqueSet with a name.
func PodsOfSet(name string) string {
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: map[string]string{PartOf: name, ManagedBy: ManagedByValue}})
}

// PodsOfClique selects the pods of the PodClique with a name.
func PodsOfClique(name string) string {
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: map[string]string{PodClique: name}})
}

// FirstPodsOfScalingGroup selects one pod of each copy of the PodCliqueScalingGroup with a name.
// A HorizontalPodAutoscaler multiplies by how many pods it sees, and what it scales are copies.
func FirstPodsOfScalingGroup(name string) string {
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: map[string]string{ScalingGroup: name, ScalingGroupFirstPod: "true"}})
}
