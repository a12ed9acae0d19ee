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
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/desired"
	"github.com/copse-dev/copse/pkg/scheduling/native"
)

// nativeName is the name of the group that Kubernetes' own scheduler has for a PodGroup. The
// pod grouper makes names that are never used again; people may not.
func nativeName(s *state) string {
	if isMade(s.group) || oldest(s.members, pods.IsGrouped) != nil {
		return s.key.Name
	}
	return podgrouper.NativeName(s.group.Name, s.group.UID)
}

// syncNative makes the group of Kubernetes' own scheduler, and keeps its minimum. It returns
// nil when there is none: without pods that are in it none is needed.
func (r *Reconciler) syncNative(ctx context.Context, s *state) (*schedulingv1beta1.PodGroup, error) {
	name := nativeName(s)
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
	group := desiredNative(s.group, name)
	// Another may have made it that the cache does not show yet.
	if err := r.Client.Create(ctx, group); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create the scheduler's PodGroup %s: %w", name, err)
	}
	return group, nil
}

func desiredNative(of *schedulerv1alpha1.PodGroup, name string) *schedulingv1beta1.PodGroup {
	minimum := desired.MinPods(&of.Spec)
	out := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: name, OwnerReferences: of.OwnerReferences,
			Annotations: map[string]string{podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue, podgrouper.MinMemberAnnotation: strconv.Itoa(int(minimum))},
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy:  schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minimum}},
			PriorityClassName: of.Spec.PriorityClassName,
		},
	}
	if minimum > 1 {
		out.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	}
	if !isMade(of) {
		// One that was made by hand goes with the PodGroup, for nothing makes that anew.
		out.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, schedulerv1alpha1.SchemeGroupVersion.WithKind("PodGroup"))}
		out.OwnerReferences[0].BlockOwnerDeletion = nil
	}
	return out
}

// waitsIn says that a pod is in a group of the scheduler's, and has not ended.
func waitsIn(pod *corev1.Pod, group string) bool {
	in := pod.Spec.SchedulingGroup
	return !pods.HasEnded(pod) && in != nil && ptr.Deref(in.PodGroupName, "") == group
}

// setMinCount keeps how many pods the scheduler places together.
func (r *Reconciler) setMinCount(ctx context.Context, s *state, group *schedulingv1beta1.PodGroup) (*schedulingv1beta1.PodGroup, error) {
	if len(s.members) == 0 || s.invalid != nil {
		return group, nil
	}
	asked, _ := strconv.ParseInt(group.Annotations[podgrouper.MinMemberAnnotation], 10, 32)
	m := minimum{
		wanted: desired.MinPods(&s.group.Spec), asked: int32(asked), count: group.Spec.SchedulingPolicy.Gang.MinCount, scheduled: native.IsScheduled(group),
	}
	for _, pod := range s.members {
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			m.succeeded++
		case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !pods.HasEnded(pod):
			m.waits = true
		}
	}
	count := m.decide()
	if count == m.count && m.wanted == m.asked {
		return group, nil
	}
	// The version keeps a pass that is behind from undoing what another has done.
	changed := group.DeepCopy()
	changed.Spec.SchedulingPolicy.Gang.MinCount = count
	changed.Annotations[podgrouper.MinMemberAnnotation] = strconv.Itoa(int(m.wanted))
	err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(group, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("set the minimum of the scheduler's PodGroup %s: %w", group.Name, err)
	}
	return changed, nil
}

// minimum is what decides how many pods the scheduler places together.
type minimum struct {
	// wanted is the group's, asked the one that the scheduler was told of, and count what
	// that came to.
	wanted, asked, count int32
	// scheduled says that the group was placed once, waits that a pod of it has no node.
	scheduled, waits bool
	// succeeded pods are there no more for the scheduler.
	succeeded int32
}

// decide follows the group. Pods that have succeeded count no more for the scheduler, which
// would hold back a replacement for ever (kubernetes/kubernetes#142330), so they are taken
// off when one waits (docs/decisions/0021). It is not raised again when they are deleted.
func (m minimum) decide() int32 {
	least := m.wanted
	if m.scheduled {
		least = max(1, m.wanted-m.succeeded)
	}
	switch {
	case m.wanted != m.asked && m.waits:
		return least
	case m.wanted != m.asked:
		return m.wanted
	case m.waits:
		return min(m.count, least)
	}
	return m.count
}
