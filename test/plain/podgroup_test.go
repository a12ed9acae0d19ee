package plain

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/test/framework"
)

// Without gangs, the pods of a PodGroup that somebody made are held until as many exist as
// it needs, and the PodGroup says that this is all that can be done.
func TestThePodsOfAPodGroupAreHeldUntilItIsComplete(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t, framework.Unrecorded("pods are made by hand"))
	ns.Anywhere().Kubectl("label", "namespace", ns.Name, podgrouper.NamespaceLabel+"="+podgrouper.NamespaceEnabled)
	ns.Apply("apiVersion: scheduler.grove.io/v1alpha1\nkind: PodGroup\nmetadata: {name: mine}\nspec: {minMember: 2}\n")
	create := func(name string) {
		t.Helper()
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{podgrouper.PodGroupAnnotation: "mine"}},
			Spec: corev1.PodSpec{
				Containers:      []corev1.Container{{Name: "main", Image: "example.com/main"}},
				SchedulingGates: []corev1.PodSchedulingGate{{Name: naming.PendingGate}},
			},
		}
		if _, err := cluster.Kube.CoreV1().Pods(ns.Name).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	status := func(check func(reason, phase string, unsupported bool) bool) {
		t.Helper()
		ns.Eventually(time.Minute, func(ctx context.Context) error {
			group, err := cluster.Copse.SchedulerV1alpha1().PodGroups(ns.Name).Get(ctx, "mine", metav1.GetOptions{})
			if err != nil {
				return err
			}
			reason := ""
			if conditions := group.Status.SchedulingConditions; len(conditions) == 1 {
				reason = conditions[0].Reasons[0].Reason
			}
			if !check(reason, string(group.Status.Phase), meta.IsStatusConditionTrue(group.Status.Conditions, "Unsupported")) {
				return fmt.Errorf("status %+v", group.Status)
			}
			return nil
		})
	}
	create("a")
	status(func(reason, phase string, unsupported bool) bool {
		return reason == "WaitingForPods" && phase == "Pending" && unsupported
	})
	ns.WaitForPods(1, time.Minute, func(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) == 1 })
	create("b")
	status(func(reason, phase string, unsupported bool) bool {
		return reason == "" && phase == "Running" && unsupported
	})
	ns.WaitForPods(2, time.Minute, func(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) == 0 && pod.Spec.NodeName != "" })
}
