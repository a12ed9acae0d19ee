package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// liveClass is the PriorityClass of a group that is there already; nil when there is none.
// The scheduler refuses a group whose pods have another priority than the group, and that
// can never change: so a new member takes it over, whatever has been asked for since. The
// scheduler's own group counts; before that is made, the PodGroup that it is made from.
func (m *Members) liveClass(ctx context.Context, namespace, name string) (*string, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	native := &schedulingv1beta1.PodGroup{}
	err := m.Cache.Get(ctx, key, native)
	if err == nil {
		return &native.Spec.PriorityClassName, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the scheduler's PodGroup %s: %w", key, err)
	}
	group := &schedulerv1alpha1.PodGroup{}
	err = m.Cache.Get(ctx, key, group)
	if err == nil {
		return &group.Spec.PriorityClassName, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read PodGroup %s: %w", key, err)
	}
	return nil, nil
}

// follow gives a pod the class of its group, and tells its user when that is not what was
// asked for.
func follow(pod *corev1.Pod, group, asked, live string) []string {
	setClass(pod, live)
	if asked == "" || asked == live {
		return nil
	}
	has := "no PriorityClass"
	if live != "" {
		has = fmt.Sprintf("PriorityClass %q", live)
	}
	return []string{fmt.Sprintf("PriorityOfGroup: group %s has %s, and so has each of its pods; %q counts for groups that are made later", group, has, asked)}
}

// setClass changes the class of a pod. What the API server has derived from another goes: it
// derives it anew after the webhook, and refuses a pod where both differ. Without a class
// a pod gets the cluster's default, as a group does.
func setClass(pod *corev1.Pod, class string) {
	if pod.Spec.PriorityClassName == class {
		return
	}
	pod.Spec.PriorityClassName = class
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = nil, nil
}
