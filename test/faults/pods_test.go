package faults

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/copse-dev/copse/pkg/labels"
)

// ofSet are the pods of a set, by name.
func ofSet(pods []corev1.Pod, name string) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return pod.Labels[labels.PartOf] != name })
}

// ofClique are the pods of a clique.
func ofClique(pods []corev1.Pod, name string) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return pod.Labels[labels.PodClique] != name })
}

// pick is the first pod of a clique.
func pick(t *testing.T, pods []corev1.Pod, clique string) corev1.Pod {
	t.Helper()
	of := ofClique(pods, clique)
	if len(of) == 0 {
		t.Fatalf("there is no pod of %s", clique)
	}
	return of[0]
}

func uids(pods []corev1.Pod) []string {
	var out []string
	for _, pod := range pods {
		out = append(out, string(pod.UID))
	}
	slices.Sort(out)
	return out
}

// patchOf annotates a pod of just this UID.
func patchOf(uid types.UID, annotations map[string]string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, "annotations": annotations}})
}
