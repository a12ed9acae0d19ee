package admission

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// groupByHand puts a pod into the group of the PodGroup that its user names.
func (m *Members) groupByHand(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	group, err := m.named(ctx, pod)
	if err != nil {
		return nil, err
	}
	name := podgrouper.NativeNameOf(group)
	live := &groupClass{name: group.Spec.PriorityClassName}
	native := &schedulingv1beta1.PodGroup{}
	switch err := m.Cache.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, native); {
	case err == nil:
		live = classOf(native)
	case !apierrors.IsNotFound(err):
		return nil, notYet(fmt.Errorf("read the scheduler's PodGroup %s: %w", name, err))
	}
	if !m.canHave(live) {
		return nil, never("PodGroup %s has %s and a priority that no pod gets by that any more: name a PodGroup that is made anew", group.Name, describe(live.name))
	}
	if m.tooHigh(live.name) {
		return nil, never("PodGroup %s has %s and a priority above %d, the highest that Kubernetes' scheduler takes for a group: name a PodGroup with another class, or leave annotation %s out",
			group.Name, describe(live.name), gang.HighestPriority, podgrouper.PodGroupAnnotation)
	}
	asked := pod.Spec.PriorityClassName
	if asked == m.Classes.GlobalDefault() {
		// The API server writes it into pods that ask for none.
		asked = ""
	}
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	return follow(pod, group.Name, asked, live.name), nil
}

// hold keeps a pod from its scheduler, which knows no groups, until the group is complete.
func (m *Members) hold(ctx context.Context, pod *corev1.Pod) error {
	name := pod.Annotations[podgrouper.PodGroupAnnotation]
	if name == "" || pod.Annotations[podgrouper.SkipAnnotation] == "true" || isDaemon(pod) || pod.Spec.NodeName != "" {
		return nil
	}
	if _, err := m.named(ctx, pod); err != nil {
		return err
	}
	gate := corev1.PodSchedulingGate{Name: naming.PendingGate}
	if !slices.Contains(pod.Spec.SchedulingGates, gate) {
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, gate)
	}
	return nil
}

func isDaemon(pod *corev1.Pod) bool {
	for _, ref := range pod.OwnerReferences {
		if ref.Kind == "DaemonSet" {
			return true
		}
	}
	return false
}

// named is the PodGroup that a pod's user names. It is read live: pods are often created right
// after it, and one by the same name that is gone by now would lead to a group that never
// comes.
func (m *Members) named(ctx context.Context, pod *corev1.Pod) (*schedulerv1alpha1.PodGroup, error) {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Annotations[podgrouper.PodGroupAnnotation]}
	group := &schedulerv1alpha1.PodGroup{}
	err := m.Live.Get(ctx, key, group)
	switch {
	case apierrors.IsNotFound(err):
		return nil, never("PodGroup %s, which annotation %s names, does not exist in namespace %s: create it first, or leave the annotation out",
			key.Name, podgrouper.PodGroupAnnotation, key.Namespace)
	case err != nil:
		return nil, notYet(fmt.Errorf("read PodGroup %s: %w", key, err))
	}
	return group, nil
}
