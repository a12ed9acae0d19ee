package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
)

// Classes are the PriorityClasses of the cluster.
type Classes interface {
	// Value is that of a class; false when there is no such class.
	Value(name string) (int32, bool)
	// GlobalDefault is the class of pods that ask for none; empty when there is none.
	GlobalDefault() string
}

// groupClass is the PriorityClass of a group that is there already. The scheduler refuses a
// group whose pods have another priority than the group, and that can never change.
type groupClass struct {
	name string
	// priority is nil before the scheduler's own group is made.
	priority *int32
}

// liveClass is the class of a group; nil when there is none. The scheduler's own group counts;
// before that is made, the PodGroup that it is made from.
func (m *Members) liveClass(ctx context.Context, namespace, name string) (*groupClass, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	native := &schedulingv1beta1.PodGroup{}
	err := m.Cache.Get(ctx, key, native)
	if err == nil {
		return classOf(native), nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the scheduler's PodGroup %s: %w", key, err)
	}
	group := &schedulerv1alpha1.PodGroup{}
	err = m.Cache.Get(ctx, key, group)
	if err == nil {
		return &groupClass{name: group.Spec.PriorityClassName}, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read PodGroup %s: %w", key, err)
	}
	return nil, nil
}

func classOf(native *schedulingv1beta1.PodGroup) *groupClass {
	return &groupClass{name: native.Spec.PriorityClassName, priority: native.Spec.Priority}
}

// canHave says whether a pod that is made now can have the priority of a group. It cannot
// when the group's class is gone, or has come back with another value, or when the cluster
// has another default than it had.
func (m *Members) canHave(live *groupClass) bool {
	value, exists := m.Classes.Value(live.name)
	if live.name == "" {
		// Without a default class the priority is 0.
		value, _ = m.Classes.Value(m.Classes.GlobalDefault())
		exists = true
	}
	return exists && (live.priority == nil || *live.priority == value)
}

// tooHigh says that Kubernetes' scheduler takes no group of a class: those of the system are
// for single pods. A group of one would be refused for ever, and its pods wait for it.
func (m *Members) tooHigh(class string) bool {
	value, _ := m.Classes.Value(class)
	return value > gang.HighestPriority
}

// describe names a class for people.
func describe(class string) string {
	if class == "" {
		return "no PriorityClass"
	}
	return fmt.Sprintf("PriorityClass %q", class)
}

// follow gives a pod the class of its group, and tells its user when that is not what was
// asked for.
func follow(pod *corev1.Pod, group, asked, class string) []string {
	setClass(pod, class)
	if asked == "" || asked == class {
		return nil
	}
	return []string{fmt.Sprintf("PriorityOfGroup: group %s has %s, and so has each of its pods; %q counts for groups that are made later", group, describe(class), asked)}
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
