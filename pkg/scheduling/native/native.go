// Package native schedules gangs with Kubernetes' own gang scheduling: one
// scheduling.k8s.io PodGroup per PodGang and attempt, which pods join at their creation
// (D23). It needs the API server, scheduler and controller manager of Kubernetes 1.37
// with the feature gate GenericWorkload, and the API scheduling.k8s.io/v1beta1.
package native

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/scheduling"
)

// OwnerIndex is the field index by which the cache finds the groups of a gang.
const OwnerIndex = "metadata.controllerUID"

// Backend is the native back end.
type Backend struct {
	client client.Client
}

var _ scheduling.Backend = &Backend{}

// New returns the back end. The cache behind c has to index PodGroups by OwnerIndex.
func New(c client.Client) *Backend {
	return &Backend{client: c}
}

// Name of the back end.
func (*Backend) Name() string { return "native" }

// PreparePod puts a pod into the gang's group, which may be created later than the pod, and
// gives it the group's priority class: one of another is never placed. The set's may be new,
// and reach this gang only with its next attempt.
func (*Backend) PreparePod(pod *corev1.Pod, gang *schedulerv1alpha1.PodGang) {
	pod.Spec.PriorityClassName = gang.Spec.PriorityClassName
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(groupName(gang))}
}

// PrepareSurplus does nothing: such a pod is placed alone (D23).
func (*Backend) PrepareSurplus(*corev1.Pod, *schedulerv1alpha1.PodGang) {}

// Sync creates the group of the gang's attempt, or lowers what it has to hold at least, and
// deletes those of earlier attempts. One of a later attempt is another leader's, who knows
// more.
func (b *Backend) Sync(ctx context.Context, gang *schedulerv1alpha1.PodGang, needed int32) error {
	groups := &schedulingv1beta1.PodGroupList{}
	if err := b.client.List(ctx, groups, client.InNamespace(gang.Namespace), client.MatchingFields{OwnerIndex: string(gang.UID)}); err != nil {
		return fmt.Errorf("list the PodGroups of PodGang %s: %w", gang.Name, err)
	}
	want := desiredGroup(gang, needed)
	var current *schedulingv1beta1.PodGroup
	for i := range groups.Items {
		group := &groups.Items[i]
		if group.Name == want.Name {
			current = group
			continue
		}
		if group.DeletionTimestamp != nil || attemptOf(group) >= attemptOf(gang) {
			continue
		}
		if err := b.client.Delete(ctx, group, client.Preconditions{UID: &group.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PodGroup %s of an earlier attempt: %w", group.Name, err)
		}
	}
	if current != nil {
		return b.lower(ctx, current, needed)
	}
	if err := b.client.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create PodGroup %s: %w", want.Name, err)
	}
	return nil
}

// lower lets the scheduler place members though fewer than before are left: those that have
// finished count for it no more, and it would hold back a replacement for ever
// (kubernetes/kubernetes#142330).
func (b *Backend) lower(ctx context.Context, group *schedulingv1beta1.PodGroup, needed int32) error {
	if gang := group.Spec.SchedulingPolicy.Gang; gang == nil || gang.MinCount <= needed {
		return nil
	}
	// The version keeps a pass that is behind from raising what another has lowered.
	lowered := group.DeepCopy()
	lowered.Spec.SchedulingPolicy.Gang.MinCount = needed
	if err := b.client.Patch(ctx, lowered, client.MergeFromWithOptions(group, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("lower the minimum of PodGroup %s: %w", group.Name, err)
	}
	return nil
}

// Observe reads the conditions of the gang's group. The scheduler says nothing while pods
// are missing or one of them is held by a gate, so those are counted.
func (b *Backend) Observe(ctx context.Context, gang *schedulerv1alpha1.PodGang) (scheduling.Observation, error) {
	group := &schedulingv1beta1.PodGroup{}
	err := b.client.Get(ctx, types.NamespacedName{Namespace: gang.Namespace, Name: groupName(gang)}, group)
	if apierrors.IsNotFound(err) {
		return scheduling.Observation{Why: []schedulerv1alpha1.UnschedulableExplanation{
			{Reason: schedulerv1alpha1.ReasonPodGroupMissing, Message: "the scheduler's group of this gang does not exist"},
		}}, nil
	}
	if err != nil {
		return scheduling.Observation{}, fmt.Errorf("read PodGroup %s: %w", groupName(gang), err)
	}
	out := scheduling.Observation{Scheduled: IsScheduled(group), Why: Explain(group)}
	if out.Scheduled || len(out.Why) > 0 {
		return out, nil
	}
	members, err := scheduling.Members(ctx, b.client, gang)
	if err != nil {
		return scheduling.Observation{}, err
	}
	out.Gated = scheduling.Gated(members)
	return out, nil
}

func desiredGroup(gang *schedulerv1alpha1.PodGang, needed int32) *schedulingv1beta1.PodGroup {
	groupLabels := maps.Clone(gang.Labels)
	if groupLabels == nil {
		groupLabels = map[string]string{}
	}
	groupLabels[labels.PodGang] = gang.Name
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:            groupName(gang),
			Namespace:       gang.Namespace,
			Labels:          groupLabels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(gang, schedulerv1alpha1.SchemeGroupVersion.WithKind("PodGang"))},
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy:  schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: needed}},
			DisruptionMode:    &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
			PriorityClassName: gang.Spec.PriorityClassName,
		},
	}
}

// groupName is new with each gang object and attempt: the scheduler knows groups by
// name, so a name must never come back.
func groupName(gang *schedulerv1alpha1.PodGang) string {
	return naming.SchedulingGroup(gang.Name, gang.UID, attemptOf(gang))
}

func attemptOf(obj client.Object) int32 {
	attempt, _ := labels.ParseIndex(obj.GetLabels()[labels.RestartAttempt])
	return attempt
}
