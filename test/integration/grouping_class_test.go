package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// nativeGroup makes the scheduler's own group, or finds it made.
func (g *grouping) nativeGroup(name, class string, minCount int32) {
	g.t.Helper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	group.Spec.PriorityClassName = class
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount}
	if _, err := cluster.Kube.SchedulingV1beta1().PodGroups(g.Name).Create(g.t.Context(), group, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		g.t.Fatal(err)
	}
}

// The pods of a group have the class of the group, and the priority that follows from it: of
// their owner first, and of the group itself once there is one.
func TestPodsHaveTheClassOfTheirGroup(t *testing.T) {
	g := groupedNamespace(t)
	high, low := priorityClass(t, 1000), priorityClass(t, 10)
	g.Apply(fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: job, labels: {priorityClassName: %s}}\n"+
		"spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: i}]}}}\n", high))
	job, err := cluster.Kube.BatchV1().Jobs(g.Name).Get(t.Context(), "job", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var pod *corev1.Pod
	g.Eventually(time.Minute, func(context.Context) error {
		template := ownedBy("pod", job, "batch/v1", "Job")
		template.Spec.PriorityClassName = low
		created, warnings := g.try(template)
		pod = created
		if created.Spec.PriorityClassName != high {
			return fmt.Errorf("the class is %q, warnings %q", created.Spec.PriorityClassName, warnings)
		}
		return nil
	})
	if ptr.Deref(pod.Spec.Priority, 0) != 1000 {
		t.Errorf("priority %d", ptr.Deref(pod.Spec.Priority, 0))
	}

	g.nativeGroup(groupOf(pod), low, 1)
	g.Eventually(time.Minute, func(context.Context) error {
		created, warnings := g.try(ownedBy("pod", job, "batch/v1", "Job"))
		if created.Spec.PriorityClassName != low || ptr.Deref(created.Spec.Priority, 0) != 10 {
			return fmt.Errorf("the class is %q", created.Spec.PriorityClassName)
		}
		contains(t, strings.Join(warnings, "\n"), fmt.Sprintf("PriorityOfGroup: group %s has PriorityClass %q", groupOf(pod), low))
		return nil
	})
}

func TestAPodJoinsThePodGroupThatItNames(t *testing.T) {
	g := groupedNamespace(t)
	class := priorityClass(t, 1000)
	named := newPod("member")
	named.Annotations[podgrouper.PodGroupAnnotation] = "mine"
	_, err := g.create(named)
	if !apierrors.IsForbidden(err) {
		t.Fatalf("got %v", err)
	}
	contains(t, err.Error(), `PodGroup mine, which annotation pod-group-name names, does not exist in namespace `+g.Name+`: create it first, or leave the annotation out`)

	group, err := cluster.Copse.SchedulerV1alpha1().PodGroups(g.Name).Create(t.Context(), &schedulerv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](2), PriorityClassName: class},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// At once: it need not be in anybody's cache.
	pod, _ := g.try(named)
	if got, want := groupOf(pod), podgrouper.NativeName("mine", group.UID); got != want || pod.Spec.PriorityClassName != class || ptr.Deref(pod.Spec.Priority, 0) != 1000 {
		t.Errorf("group %q, class %q, priority %d; want group %q", got, pod.Spec.PriorityClassName, ptr.Deref(pod.Spec.Priority, 0), want)
	}
	if pod.Annotations[podgrouper.GroupedByAnnotation] != "" {
		t.Error("the pod grouper says that it chose the group")
	}
	// A scheduler that knows no groups does not see the pod before the group is complete.
	named.Spec.SchedulerName = "other"
	pod, _ = g.try(named)
	if gates := pod.Spec.SchedulingGates; len(gates) != 1 || gates[0].Name != naming.PendingGate || pod.Spec.SchedulingGroup != nil {
		t.Errorf("gates %v, group %q", gates, groupOf(pod))
	}
}

// What the webhook writes is what the scheduler needs: it places all pods or none. Each pod
// wants a node for itself, and there is one node too few; then it is one that is not needed.
func TestTheSchedulerPlacesAllPodsOfAGroupOrNone(t *testing.T) {
	g := groupedNamespace(t)
	nodes, err := cluster.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fit := len(nodes.Items)
	g.Apply(fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: job, annotations: {scheduler.grove.io/min-member: "%[1]d"}}
spec:
  parallelism: %[1]d
  completions: %[1]d
  template:
    metadata: {labels: {of: job}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: example.com/main}]
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {of: job}}}]
`, fit+1))
	pods := g.WaitForPods(fit+1, time.Minute, func(pod *corev1.Pod) bool { return groupOf(pod) != "" })
	group := groupOf(&pods[0])
	g.nativeGroup(group, pods[0].Spec.PriorityClassName, int32(fit+1))
	g.Eventually(time.Minute, func(ctx context.Context) error {
		return g.tried(ctx, group)
	})
	g.WaitForPods(0, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })

	g.Kubectl("annotate", "--overwrite", "job", "job", fmt.Sprintf("%s=%d", podgrouper.MinMemberAnnotation, fit))
	patch := fmt.Sprintf(`{"spec":{"schedulingPolicy":{"gang":{"minCount":%d}}}}`, fit)
	if _, err := cluster.Kube.SchedulingV1beta1().PodGroups(g.Name).Patch(t.Context(), group, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	g.WaitForPods(fit, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
}

// tried says whether the scheduler has tried to place a group in vain.
func (g *grouping) tried(ctx context.Context, name string) error {
	group, err := cluster.Kube.SchedulingV1beta1().PodGroups(g.Name).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range group.Status.Conditions {
		if condition.Type == "PodGroupInitiallyScheduled" && condition.Status == metav1.ConditionFalse && condition.Reason == "Unschedulable" {
			return nil
		}
	}
	return fmt.Errorf("the conditions of the group are %v", group.Status.Conditions)
}
