package podgroup

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
	"github.com/copse-dev/copse/pkg/scheduling/native"
)

// syncNative makes the group of Kubernetes' own scheduler, and keeps its minimum. It returns
// nil when there is none: without pods that are in it, or where the scheduler takes no groups,
// none is needed.
func (r *Reconciler) syncNative(ctx context.Context, s *state) (*schedulingv1beta1.PodGroup, error) {
	if !r.NativeGangs {
		return nil, nil
	}
	name := podgrouper.NativeNameOf(s.group)
	group := &schedulingv1beta1.PodGroup{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: name}, group)
	switch {
	case apierrors.IsNotFound(err):
		return r.createNative(ctx, s, name)
	case err != nil:
		return nil, fmt.Errorf("read the scheduler's PodGroup %s: %w", name, err)
	case group.DeletionTimestamp != nil || group.Annotations[podgrouper.GroupedByAnnotation] != podgrouper.GroupedByValue || group.Spec.SchedulingPolicy.Gang == nil:
		// One that somebody else made is theirs.
		return group, nil
	}
	return r.setMinCount(ctx, s, group)
}

// createNative makes the group, once the workload has said what it needs.
func (r *Reconciler) createNative(ctx context.Context, s *state, name string) (*schedulingv1beta1.PodGroup, error) {
	if s.invalid != nil || s.backEnd != podgrouper.Native || oldest(s.members, func(pod *corev1.Pod) bool { return waitsIn(pod, name) }) == nil {
		return nil, nil
	}
	group := desiredNative(s.group, name, s.minPods(), r.unattached(s, name))
	// Another may have made it that the cache does not show yet.
	if err := r.Client.Create(ctx, group); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create the scheduler's PodGroup %s: %w", name, native.WhyRefused(err, group))
	}
	if s.described != nil && !s.described.PerPod && s.described.Owner != nil {
		// Pods that were made before may be in others.
		r.queue.add(r.owners.beside(s.key, s.described.Owner.UID)...)
	}
	return group, nil
}

// unattached are the pods that live or have succeeded and are not in a group of the
// scheduler's, though they belong to it: they were created before they could be, or are in the
// groups that they belonged to before. The group cannot wait for them.
func (r *Reconciler) unattached(s *state, name string) int32 {
	n := r.strays(s)
	for _, pod := range s.members {
		if isThere(pod) && !isIn(pod, name) && r.belongs(s, pod) {
			n++
		}
	}
	return n
}

// belongs says that a pod is meant for a group of Kubernetes' own scheduler, though it may not
// be in it. The annotation that names the group can be put on any pod.
func (r *Reconciler) belongs(s *state, pod *corev1.Pod) bool {
	if r.backEndOf(pod) != podgrouper.Native {
		return false
	}
	if podgrouper.IsMade(s.group) {
		return s.loose.Has(pod.UID) || pods.IsGrouped(pod)
	}
	id, err := r.Grouping.Current().Identify(pod, owners.Chain{})
	return err == nil && id.Exempt == podgrouper.GroupedByHand
}

// desiredNative is the group of the scheduler's with a minimum, which so many pods are not in.
func desiredNative(of *schedulerv1alpha1.PodGroup, name string, minimum, unattached int32) *schedulingv1beta1.PodGroup {
	out := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: name, OwnerReferences: of.OwnerReferences,
			Annotations: map[string]string{podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue, podgrouper.MinMemberAnnotation: strconv.Itoa(int(minimum))},
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy:  schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: max(1, minimum-unattached)}},
			PriorityClassName: of.Spec.PriorityClassName,
		},
	}
	// One of several parts is a gang, also while one of its pods is enough to begin with. Pods of
	// which one is enough are independent of each other.
	if minimum > 1 || len(of.Spec.SubGroups) > 1 {
		out.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	}
	if !podgrouper.IsMade(of) {
		// One that was made by hand goes with the PodGroup, for nothing makes that anew.
		out.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, schedulerv1alpha1.SchemeGroupVersion.WithKind("PodGroup"))}
		out.OwnerReferences[0].BlockOwnerDeletion = nil
	}
	return out
}

// isIn says that a pod is in a group of the scheduler's.
func isIn(pod *corev1.Pod, group string) bool {
	in := pod.Spec.SchedulingGroup
	return in != nil && ptr.Deref(in.PodGroupName, "") == group
}

// waitsIn says that a pod is in a group of the scheduler's, and has not ended.
func waitsIn(pod *corev1.Pod, group string) bool {
	return !pods.HasEnded(pod) && isIn(pod, group)
}
