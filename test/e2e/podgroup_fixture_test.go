package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/test/framework"
)

// grouped is a namespace whose pods are grouped.
type grouped struct {
	*framework.Namespace
	t *testing.T
}

// groupedNamespace makes one, and the kind Gang if there is none yet.
func groupedNamespace(t *testing.T) grouped {
	t.Helper()
	ns := grouped{cluster.Namespace(t, framework.Unrecorded("pods are made by hand")), t}
	ns.applyFile("testdata/gang-crd.yaml")
	ns.Anywhere().WaitFor("crd/gangs.podgroups.example.com", "condition=Established")
	ns.enable()
	return ns
}

func (n grouped) applyFile(path string) {
	n.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		n.t.Fatal(err)
	}
	// Another test may apply it at the same time.
	n.Eventually(time.Minute, func(context.Context) error {
		_, err := n.Anywhere().TryApply(string(text))
		return err
	})
}

func (n grouped) enable() {
	n.t.Helper()
	n.Anywhere().Kubectl("label", "namespace", n.Name, podgrouper.NamespaceLabel+"="+podgrouper.NamespaceEnabled)
}

func (n grouped) disable() {
	n.t.Helper()
	n.Anywhere().Kubectl("label", "namespace", n.Name, podgrouper.NamespaceLabel+"-")
}

// gang makes a workload, and returns its UID.
func (n grouped) gang(name, metadata, spec string) types.UID {
	n.t.Helper()
	n.Eventually(time.Minute, func(context.Context) error {
		_, err := n.TryApply(fmt.Sprintf("apiVersion: podgroups.example.com/v1\nkind: Gang\nmetadata: {name: %s%s}\nspec: %s\n", name, metadata, spec))
		return err
	})
	return types.UID(n.Kubectl("get", "gangs.podgroups.example.com", name, "-o", "jsonpath={.metadata.uid}"))
}

// nameOf is the name of a group of a workload.
func nameOf(name string, uid types.UID) string {
	return "pg-" + name + "-" + naming.Hash(string(uid), "")
}

// member is a pod of a workload as it is admitted: in its group.
func member(name, gang string, uid types.UID, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := ungrouped(name, gang, uid)
	group := nameOf(gang, uid)
	pod.Annotations = map[string]string{podgrouper.PodGroupAnnotation: group, podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue}
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// ungrouped is a pod of a workload that is in no group.
func ungrouped(name, gang string, uid types.UID, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "podgroups.example.com/v1", Kind: "Gang", Name: gang, UID: uid, Controller: ptr.To(true)},
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// asking has a pod ask for a resource that but one node has.
func asking(name string, units int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		quantity := *resource.NewQuantity(units, resource.DecimalSI)
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(name): quantity}
		pod.Spec.Tolerations = []corev1.Toleration{{Key: name, Operator: corev1.TolerationOpExists}}
	}
}

func inClass(class string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.PriorityClassName = class }
}

// exiting has a pod exit with 0 at once.
func exiting(pod *corev1.Pod) { pod.Annotations["kwok.copse.dev/exit-after"] = "0" }

func (n grouped) create(pods ...*corev1.Pod) {
	n.t.Helper()
	for _, pod := range pods {
		if _, err := cluster.Kube.CoreV1().Pods(n.Name).Create(n.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n grouped) delete(pod string) {
	n.t.Helper()
	if err := cluster.Kube.CoreV1().Pods(n.Name).Delete(n.t.Context(), pod, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		n.t.Fatal(err)
	}
}

// group waits until a PodGroup is as it should be, and returns it.
func (n grouped) group(name string, check func(*schedulerv1alpha1.PodGroup) error) *schedulerv1alpha1.PodGroup {
	n.t.Helper()
	var group *schedulerv1alpha1.PodGroup
	n.Eventually(30*time.Second, func(ctx context.Context) error {
		var err error
		if group, err = cluster.Copse.SchedulerV1alpha1().PodGroups(n.Name).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if err := check(group); err != nil {
			return fmt.Errorf("%w; status %+v", err, group.Status)
		}
		return nil
	})
	return group
}

// native waits until a group of the scheduler's is as it should be, and returns it.
func (n grouped) native(name string, check func(*schedulingv1beta1.PodGroup) error) *schedulingv1beta1.PodGroup {
	n.t.Helper()
	var group *schedulingv1beta1.PodGroup
	n.Eventually(30*time.Second, func(ctx context.Context) error {
		var err error
		if group, err = cluster.Kube.SchedulingV1beta1().PodGroups(n.Name).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(group)
	})
	return group
}

func (n grouped) isGone(name string) {
	n.t.Helper()
	n.Eventually(time.Minute, func(ctx context.Context) error {
		_, err := cluster.Copse.SchedulerV1alpha1().PodGroups(n.Name).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("PodGroup %s is there: %w", name, err)
	})
}

func inPhase(phase schedulerv1alpha1.PodGroupPhase) func(*schedulerv1alpha1.PodGroup) error {
	return func(group *schedulerv1alpha1.PodGroup) error {
		if group.Status.Phase != phase {
			return fmt.Errorf("phase %q, want %q", group.Status.Phase, phase)
		}
		return nil
	}
}

func needing(count int32) func(*schedulerv1alpha1.PodGroup) error {
	return func(group *schedulerv1alpha1.PodGroup) error {
		if got := ptr.Deref(group.Spec.MinMember, 0); got != count {
			return fmt.Errorf("minMember %d, want %d", got, count)
		}
		return nil
	}
}

func counting(count int32) func(*schedulingv1beta1.PodGroup) error {
	return func(group *schedulingv1beta1.PodGroup) error {
		if gang := group.Spec.SchedulingPolicy.Gang; gang == nil || gang.MinCount != count {
			return fmt.Errorf("policy %v, want a minCount of %d", group.Spec.SchedulingPolicy, count)
		}
		return nil
	}
}

// explaining checks the first reason why a group is not scheduled.
func explaining(reason string, details *schedulerv1alpha1.PodDetails) func(*schedulerv1alpha1.PodGroup) error {
	return func(group *schedulerv1alpha1.PodGroup) error {
		if len(group.Status.SchedulingConditions) != 1 || group.Status.SchedulingConditions[0].Reasons[0].Reason != reason {
			return fmt.Errorf("scheduling conditions %+v, want %s", group.Status.SchedulingConditions, reason)
		}
		why := group.Status.SchedulingConditions[0].Reasons[0]
		if details != nil && (why.Details == nil || why.Details.PodDetails == nil || *why.Details.PodDetails != *details) {
			return fmt.Errorf("details %+v, want %+v", why.Details, details)
		}
		return nil
	}
}

func having(condition string) func(*schedulerv1alpha1.PodGroup) error {
	return func(group *schedulerv1alpha1.PodGroup) error {
		if !meta.IsStatusConditionTrue(group.Status.Conditions, condition) {
			return fmt.Errorf("%s is not True", condition)
		}
		return nil
	}
}

// says is the message of a condition.
func says(group *schedulerv1alpha1.PodGroup, condition, text string) error {
	found := meta.FindStatusCondition(group.Status.Conditions, condition)
	if found == nil || found.Status != metav1.ConditionTrue || !strings.Contains(found.Message, text) {
		return fmt.Errorf("condition %s is %+v, want it to say %q", condition, found, text)
	}
	return nil
}

func requested(list corev1.ResourceList, name string) int64 {
	quantity := list[corev1.ResourceName(name)]
	return quantity.Value()
}

// installKAI makes the API of KAI, which stays for the tests after it.
func (n grouped) installKAI() {
	n.t.Helper()
	n.applyFile("testdata/kai-crd.yaml")
	n.Anywhere().WaitFor("crd/podgroups.scheduling.run.ai", "condition=Established")
}
