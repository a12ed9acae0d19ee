package gang

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// Every event of a pod is a pass over all pods of its clique: what a pass makes for each of
// them is garbage, thousands of times over.
func TestAPassMakesNothingForEachPod(t *testing.T) {
	few, many := allocationsOfPass(8), allocationsOfPass(512)
	if many > few+32 {
		t.Errorf("a pass makes %.0f allocations with 8 pods, and %.0f with 512", few, many)
	}
}

func allocationsOfPass(replicas int32) float64 {
	clique := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "job-0-worker", UID: "uid"}}
	clique.Spec.Replicas, clique.Spec.WorkloadType = replicas, grovev1alpha1.WorkloadTypeTraining
	pods := make([]corev1.Pod, replicas)
	for i := range replicas {
		pods[i] = corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: naming.Pod(clique.Name, clique.UID, i, 0),
				UID:  types.UID(fmt.Sprintf("uid-%d", i)),
				Labels: map[string]string{
					labels.ManagedBy: labels.ManagedByValue, labels.PodClique: clique.Name, labels.PodIndex: labels.Index(i), labels.RestartAttempt: "0",
				},
			},
			Spec: corev1.PodSpec{NodeName: "node"},
			Status: corev1.PodStatus{
				Phase:             corev1.PodRunning,
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
				ContainerStatuses: []corev1.ContainerStatus{{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
			},
		}
	}
	now := time.Now()
	return testing.AllocsPerRun(10, func() {
		s := CliqueSnapshot{Clique: clique, Parent: ParentActive, Pods: NewPods(clique, pods), Membership: Membership{Known: true, Scheduled: true, BaseScheduled: true}, OthersDrained: true}
		MissingIndexes(clique, s.Pods)
		DecideClique(s, now)
	})
}
