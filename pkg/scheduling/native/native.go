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
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/scheduling"
)

// OwnerIndex is the field index by which the cache finds the groups of a gang.
const OwnerIndex = "metadata.controllerUID"

// Backend is the native back end.
type Backend struct {
	client client.Client
	// topology says that the cluster's groups have a topology.
	topology bool
}

var _ scheduling.Backend = &Backend{}

// New returns the back end. The cache behind c has to index PodGroups by OwnerIndex. topology
// says whether the cluster's groups have a topology.
func New(c client.Client, topology bool) *Backend {
	return &Backend{client: c, topology: topology}
}

// Name of the back end.
func (*Backend) Name() string { return "native" }

// Topology says that a group keeps one level that is required of all its pods, where the
// feature gate TopologyAwareWorkloadScheduling is on. It cannot be changed.
func (b *Backend) Topology() gang.TopologySupport {
	if !b.topology {
		return gang.TopologySupport{Lacks: "kube-apiserver drops the topology of PodGroups, as the feature gate TopologyAwareWorkloadScheduling is off", Fixed: true}
	}
	return gang.TopologySupport{Gangs: true, Fixed: true}
}

// PreparePod puts a pod into the gang's group, which may be created later than the pod, and
// gives it the group's priority class: one of another is never placed. The set's may be new,
// and reach this gang only with its next attempt.
func (*Backend) PreparePod(pod *corev1.Pod, podGang *schedulerv1alpha1.PodGang) {
	pod.Spec.PriorityClassName = podGang.Spec.PriorityClassName
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(groupName(podGang))}
}

// PrepareSurplus gives a pod the priority class of the gang alone: it is placed by itself (D23).
func (*Backend) PrepareSurplus(pod *corev1.Pod, podGang *schedulerv1alpha1.PodGang) {
	pod.Spec.PriorityClassName = podGang.Spec.PriorityClassName
}

// Sync creates the group of the gang's attempt, or changes what it has to hold at least, and
// deletes those of earlier attempts. One of a later attempt is another leader's, who knows
// more. A group for nobody cannot be: a gang of which all is scaled to 0 has none, or keeps it
// as it is.
func (b *Backend) Sync(ctx context.Context, podGang *schedulerv1alpha1.PodGang, needed gang.Needed) error {
	groups := &schedulingv1beta1.PodGroupList{}
	if err := b.client.List(ctx, groups, client.InNamespace(podGang.Namespace), client.MatchingFields{OwnerIndex: string(podGang.UID)}); err != nil {
		return fmt.Errorf("list the PodGroups of PodGang %s: %w", podGang.Name, err)
	}
	name := groupName(podGang)
	var current *schedulingv1beta1.PodGroup
	for i := range groups.Items {
		group := &groups.Items[i]
		if group.Name == name {
			current = group
			continue
		}
		if group.DeletionTimestamp != nil || attemptOf(group) >= attemptOf(podGang) {
			continue
		}
		if err := b.client.Delete(ctx, group, client.Preconditions{UID: &group.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PodGroup %s of an earlier attempt: %w", group.Name, err)
		}
	}
	if needed.Members < 1 {
		return nil
	}
	if current == nil || !IsScheduled(current) || raises(current, needed) {
		members, err := scheduling.Members(ctx, b.client, podGang)
		if err != nil {
			return err
		}
		needed.Members = max(min(needed.Members, needed.Left-count(members, func(pod *corev1.Pod) bool { return !isIn(pod, name) && !hasEnded(pod) })), 1)
	}
	if current != nil {
		return b.setMinimum(ctx, current, needed)
	}
	want := desiredGroup(podGang, needed.Members, b.topology)
	if err := b.client.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create PodGroup %s: %w", want.Name, WhyRefused(err, want))
	}
	return nil
}

// isIn says that a pod is in a group. Those of a gang that are not are from before somebody
// deleted its PodGang, or before the cluster scheduled gangs. They keep their places, and can
// join no group, so that nobody is to wait for them.
func isIn(pod *corev1.Pod, group string) bool {
	return pod.Spec.SchedulingGroup != nil && ptr.Deref(pod.Spec.SchedulingGroup.PodGroupName, "") == group
}

// hasEnded says that a pod has finished, and is needed no more, or has failed, so that another
// one takes its place.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func count(pods []*corev1.Pod, is func(*corev1.Pod) bool) int32 {
	var n int32
	for _, pod := range pods {
		if is(pod) {
			n++
		}
	}
	return n
}

// setMinimum lets the scheduler place members though fewer than before are left: those that have
// finished count for it no more, and it would hold back a replacement for ever
// (kubernetes/kubernetes#142330). Cliques that were scaled to 0 and are wanted again are placed
// together with what is there.
func (b *Backend) setMinimum(ctx context.Context, group *schedulingv1beta1.PodGroup, needed gang.Needed) error {
	policy := group.Spec.SchedulingPolicy.Gang
	if policy == nil || (policy.MinCount <= needed.Members && !raises(group, needed)) {
		return nil
	}
	// The version keeps a pass that is behind from undoing what another has done.
	changed := group.DeepCopy()
	changed.Spec.SchedulingPolicy.Gang.MinCount = needed.Members
	if err := b.client.Patch(ctx, changed, client.MergeFromWithOptions(group, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change the minimum of PodGroup %s: %w", group.Name, err)
	}
	return nil
}

// raises says that a group is to hold more than it does.
func raises(group *schedulingv1beta1.PodGroup, needed gang.Needed) bool {
	policy := group.Spec.SchedulingPolicy.Gang
	return policy != nil && policy.MinCount < needed.Members && needed.Raise
}

// Observe reads the conditions of the gang's group. The scheduler says nothing while pods
// are missing or one of them is held by a gate, so those are counted. It says nothing, either,
// about a gang of which nobody is needed.
func (b *Backend) Observe(ctx context.Context, podGang *schedulerv1alpha1.PodGang) (scheduling.Observation, error) {
	if gang.IsIdle(podGang) {
		return scheduling.Observation{Untold: true}, nil
	}
	group := &schedulingv1beta1.PodGroup{}
	err := b.client.Get(ctx, types.NamespacedName{Namespace: podGang.Namespace, Name: groupName(podGang)}, group)
	if apierrors.IsNotFound(err) {
		return scheduling.Observation{Why: []schedulerv1alpha1.UnschedulableExplanation{
			{Reason: schedulerv1alpha1.ReasonPodGroupMissing, Message: "the scheduler's group of this gang does not exist"},
		}}, nil
	}
	if err != nil {
		return scheduling.Observation{}, fmt.Errorf("read PodGroup %s: %w", groupName(podGang), err)
	}
	out := scheduling.Observation{Scheduled: IsScheduled(group)}
	if out.Scheduled && !hasTopology(group) {
		return out, nil
	}
	members, err := scheduling.Members(ctx, b.client, podGang)
	if err != nil {
		return scheduling.Observation{}, err
	}
	if out.Why = Explain(group, members); len(out.Why) > 0 {
		return out, nil
	}
	out.Gated = scheduling.Gated(members)
	if out.Scheduled {
		out.Why = inDomain(scheduling.Unplaced(members))
	}
	// The scheduler never speaks of a group that nobody joins.
	all := gang.MembersNeeded(podGang, nil).Members
	placed := count(members, func(pod *corev1.Pod) bool { return !isIn(pod, group.Name) && pod.Spec.NodeName != "" })
	out.Scheduled = out.Scheduled || (all > 0 && placed >= all)
	return out, nil
}

// desiredGroup is the group of a gang of which so many members are needed. topology says
// whether groups have one.
func desiredGroup(podGang *schedulerv1alpha1.PodGang, needed int32, topology bool) *schedulingv1beta1.PodGroup {
	groupLabels := maps.Clone(podGang.Labels)
	if groupLabels == nil {
		groupLabels = map[string]string{}
	}
	groupLabels[labels.PodGang] = podGang.Name
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:            groupName(podGang),
			Namespace:       podGang.Namespace,
			Labels:          groupLabels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(podGang, schedulerv1alpha1.SchemeGroupVersion.WithKind("PodGang"))},
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy:  schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: needed}},
			DisruptionMode:    &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
			PriorityClassName: podGang.Spec.PriorityClassName,
		},
	}
	if key := gang.RequiredOfAll(&podGang.Spec); key != "" && topology {
		group.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}}}
	}
	return group
}

// groupName is new with each gang object and attempt: the scheduler knows groups by
// name, so a name must never come back.
func groupName(podGang *schedulerv1alpha1.PodGang) string {
	return naming.SchedulingGroup(podGang.Name, podGang.UID, attemptOf(podGang))
}

func attemptOf(obj client.Object) int32 {
	attempt, _ := labels.ParseIndex(obj.GetLabels()[labels.RestartAttempt])
	return attempt
}
