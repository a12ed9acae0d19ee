// Package kai schedules gangs with KAI: one PodGroup of scheduling.run.ai per PodGang and
// attempt, with a subgroup for each PodClique. Pods are told their group by metadata alone.
// A pod above its clique's minimum joins the same subgroup: KAI places no pod without a
// group, and such pods after the minimum.
package kai

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/scheduling"
)

// OwnerIndex is the field index by which the cache finds the groups of a gang.
const OwnerIndex = "metadata.controllerUID"

// Backend is the back end.
type Backend struct {
	client client.Client
	// topologies says that the cluster has KAI's topologies.
	topologies bool
}

var _ scheduling.Backend = &Backend{}

// New returns the back end. The cache behind c has to index PodGroups by OwnerIndex.
// topologies says whether the cluster has KAI's topologies: without them a gang with a
// constraint would never be placed.
func New(c client.Client, topologies bool) *Backend {
	return &Backend{client: c, topologies: topologies}
}

// Name of the back end.
func (*Backend) Name() string { return "kai" }

// Topology says that KAI keeps all constraints, where the cluster has its topologies.
func (b *Backend) Topology() gang.TopologySupport {
	if !b.topologies {
		return gang.TopologySupport{Lacks: fmt.Sprintf("the cluster does not serve KAI's %s of %s", TopologyResource, TopologyGroupVersion)}
	}
	return gang.TopologySupport{Gangs: true, Parts: true}
}

// PreparePod puts a pod into the subgroup of its clique, and keeps groupers off it. Whatever
// a template says under these keys is overwritten: who is in a gang is not its to say.
func (*Backend) PreparePod(pod *corev1.Pod, podGang *schedulerv1alpha1.PodGang) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, podgrouper.PodGroupAnnotation, groupName(podGang))
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, podgrouper.KAISkipAnnotation, "true")
	metav1.SetMetaDataLabel(&pod.ObjectMeta, podgrouper.SubGroupLabel, podgrouper.SubGroupName(pod.Labels[labels.PodClique]))
}

// PrepareSurplus does the same: the subgroup's minimum says who is waited for.
func (b *Backend) PrepareSurplus(pod *corev1.Pod, podGang *schedulerv1alpha1.PodGang) {
	b.PreparePod(pod, podGang)
}

// Sync creates the group of the gang's attempt, or has it follow the gang, and deletes those
// of earlier attempts. One of a later attempt is another leader's, who knows more. What is
// needed is told for each clique here, and not by one number.
func (b *Backend) Sync(ctx context.Context, podGang *schedulerv1alpha1.PodGang, _ gang.Needed) error {
	groups := &PodGroupList{}
	if err := b.client.List(ctx, groups, client.InNamespace(podGang.Namespace), client.MatchingFields{OwnerIndex: string(podGang.UID)}); err != nil {
		return fmt.Errorf("list KAI's PodGroups of PodGang %s: %w", podGang.Name, err)
	}
	cliques, err := b.cliquesOf(ctx, podGang)
	if err != nil {
		return err
	}
	want := desiredGroup(b.told(podGang), gang.MembersNeededByGroup(podGang, cliques))
	var current *PodGroup
	for i := range groups.Items {
		group := &groups.Items[i]
		if group.Name == want.Name {
			current = group
			continue
		}
		if group.DeletionTimestamp != nil || attemptOf(group) >= gang.GangAttempt(podGang) {
			continue
		}
		if err := b.client.Delete(ctx, group, client.Preconditions{UID: &group.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete KAI's PodGroup %s of an earlier attempt: %w", group.Name, err)
		}
	}
	if !gang.WasScheduled(podGang) {
		if err := b.takeOver(ctx, podGang); err != nil {
			return err
		}
	}
	switch {
	case len(want.Spec.SubGroups) == 0:
		// Nobody is needed: no pod is there yet that KAI could place, or all have finished.
		return nil
	case current != nil:
		return b.follow(ctx, current, want, gang.WasScheduled(podGang))
	}
	if err := b.client.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create KAI's PodGroup %s: %w", want.Name, err)
	}
	return nil
}

// takeOver brings the pods of a PodGang that somebody has deleted into the group of the next
// one: without them, a pod that replaces another would wait for the others for ever.
func (b *Backend) takeOver(ctx context.Context, podGang *schedulerv1alpha1.PodGang) error {
	members, err := scheduling.Members(ctx, b.client, podGang)
	if err != nil {
		return err
	}
	for _, pod := range members {
		if group := pod.Annotations[podgrouper.PodGroupAnnotation]; group == "" || group == groupName(podGang) {
			continue
		}
		moved := pod.DeepCopy()
		metav1.SetMetaDataAnnotation(&moved.ObjectMeta, podgrouper.PodGroupAnnotation, groupName(podGang))
		if err := b.client.Patch(ctx, moved, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("bring pod %s into PodGroup %s: %w", pod.Name, groupName(podGang), err)
		}
	}
	return nil
}

// told is a gang as KAI is told of it: without constraints that it could not keep.
func (b *Backend) told(podGang *schedulerv1alpha1.PodGang) *schedulerv1alpha1.PodGang {
	if b.topologies || podGang.Annotations[labels.TopologyName] == "" {
		return podGang
	}
	out := podGang.DeepCopy()
	gang.GangPlacement{}.Apply(&out.Spec)
	return out
}

func (b *Backend) cliquesOf(ctx context.Context, podGang *schedulerv1alpha1.PodGang) (map[string]*grovev1alpha1.PodClique, error) {
	cliques := map[string]*grovev1alpha1.PodClique{}
	for _, group := range podGang.Spec.PodGroups {
		clique := &grovev1alpha1.PodClique{}
		err := b.client.Get(ctx, types.NamespacedName{Namespace: podGang.Namespace, Name: group.Name}, clique)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read clique %s: %w", group.Name, err)
		}
		cliques[group.Name] = clique
	}
	return cliques, nil
}

// follow changes what is the gang's to say, and leaves what people say: the queue, and all
// that the gang has never said anything about. KAI writes to the object as well.
func (b *Backend) follow(ctx context.Context, current, want *PodGroup, wasScheduled bool) error {
	if current.DeletionTimestamp != nil {
		return nil
	}
	updated := current.DeepCopy()
	spec := &updated.Spec
	spec.SubGroups = want.Spec.SubGroups
	if wasScheduled {
		keepLowered(spec.SubGroups, current.Spec.SubGroups)
	}
	spec.MinMember = sumOf(spec.SubGroups)
	said := current.Annotations[saidAnnotation]
	spec.PriorityClassName = sayFirst(want.Spec.PriorityClassName, spec.PriorityClassName, said, "priorityClassName")
	spec.Preemptibility = sayFirst(want.Spec.Preemptibility, spec.Preemptibility, said, "preemptibility")
	spec.TopologyConstraint = sayFirst(want.Spec.TopologyConstraint, spec.TopologyConstraint, said, "topologyConstraint")
	if says := want.Annotations[saidAnnotation]; says != said {
		delete(updated.Annotations, saidAnnotation)
		if says != "" {
			metav1.SetMetaDataAnnotation(&updated.ObjectMeta, saidAnnotation, says)
		}
	}
	if apiequality.Semantic.DeepEqual(current.Spec, updated.Spec) && updated.Annotations[saidAnnotation] == said {
		return nil
	}
	// The version keeps a pass that is behind from undoing what another has done.
	if err := b.client.Patch(ctx, updated, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change KAI's PodGroup %s: %w", current.Name, err)
	}
	return nil
}

// sayFirst is what the gang says about a field. Where it says nothing people may, but what the
// gang has said before goes.
func sayFirst[T comparable](want, live T, said, field string) T {
	var nothing T
	if want == nothing && !slices.Contains(strings.Split(said, ","), field) {
		return live
	}
	return want
}

// keepLowered keeps the minimum of a subgroup that is lower than wanted. KAI evicts a group
// that has fewer pods than its minimum for some time, so that one that runs must not be told
// to grow.
func keepLowered(want, current []SubGroup) {
	for i := range want {
		for j := range current {
			if want[i].Name == current[j].Name && current[j].MinMember > 0 {
				want[i].MinMember = min(want[i].MinMember, current[j].MinMember)
			}
		}
	}
}

// Observe reads what KAI says about the gang's group, or about its pods. It never says that
// it has placed a group, so the pods that have a node are counted.
func (b *Backend) Observe(ctx context.Context, podGang *schedulerv1alpha1.PodGang) (scheduling.Observation, error) {
	out := scheduling.Observation{Untold: true, AllOrNothing: true}
	members, err := scheduling.Members(ctx, b.client, podGang)
	if err != nil {
		return scheduling.Observation{}, err
	}
	out.Gated = scheduling.Gated(members)
	group := &PodGroup{}
	err = b.client.Get(ctx, types.NamespacedName{Namespace: podGang.Namespace, Name: groupName(podGang)}, group)
	switch {
	case apierrors.IsNotFound(err):
		out.Why = []schedulerv1alpha1.UnschedulableExplanation{
			{Reason: schedulerv1alpha1.ReasonPodGroupMissing, Message: "KAI's group of this gang does not exist"},
		}
	case err != nil:
		return scheduling.Observation{}, fmt.Errorf("read KAI's PodGroup %s: %w", groupName(podGang), err)
	// What KAI said once stays in its group, whether or not it is still so.
	case allPlaced(members):
	default:
		out.Why = Explain(since(group.Status.SchedulingConditions, podGang))
		if len(out.Why) == 0 {
			out.Why = scheduling.Unplaced(members)
		}
	}
	return out, nil
}

func allPlaced(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			return false
		}
	}
	return true
}
