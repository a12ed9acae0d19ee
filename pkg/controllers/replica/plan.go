package replica

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// observed are the children of one replica that the cache holds, by name. All of them
// are owned by the set.
type observed struct {
	services map[string]*corev1.Service
	groups   map[string]*grovev1alpha1.PodCliqueScalingGroup
	cliques  map[string]*grovev1alpha1.PodClique
	gangs    map[string]*schedulerv1alpha1.PodGang
}

// plan is what to write. Objects to create come before those that depend on them; what
// depends on the UID of an object that does not exist yet is left for the pass that the
// object's event brings.
type plan struct {
	create []client.Object
	update []client.Object
	remove []client.Object
}

func (p *plan) empty() bool {
	return len(p.create)+len(p.update)+len(p.remove) == 0
}

// planReplica compares what a replica should consist of with what exists.
func planReplica(pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) plan {
	var p plan
	parent := gang.ParentOf(pcs)
	if parent == gang.ParentDeleting || replica >= pcs.Spec.Replicas {
		return planRemoval(have)
	}
	if parent != gang.ParentActive {
		// Nothing is made below a parent that is finished or failing (D12).
		return p
	}
	planService(&p, pcs, replica, have)
	planGroups(&p, pcs, replica, have)
	planCliques(&p, pcs, replica, have)
	return p
}

// planRemoval takes everything away. Cliques go before what their pods use; each holds
// on until its pods are gone.
func planRemoval(have observed) plan {
	var p plan
	for _, name := range slices.Sorted(maps.Keys(have.cliques)) {
		p.removeOne(have.cliques[name])
	}
	if len(have.cliques) > 0 {
		return p
	}
	for _, name := range slices.Sorted(maps.Keys(have.groups)) {
		p.removeOne(have.groups[name])
	}
	for _, name := range slices.Sorted(maps.Keys(have.gangs)) {
		p.removeOne(have.gangs[name])
	}
	for _, name := range slices.Sorted(maps.Keys(have.services)) {
		p.removeOne(have.services[name])
	}
	return p
}

func (p *plan) removeOne(obj client.Object) {
	if obj.GetDeletionTimestamp() == nil {
		p.remove = append(p.remove, obj)
	}
}

func planService(p *plan, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) {
	want := desiredService(pcs, replica)
	service := have.services[want.Name]
	if service == nil {
		p.create = append(p.create, want)
		return
	}
	if service.Spec.PublishNotReadyAddresses == want.Spec.PublishNotReadyAddresses && apiequality.Semantic.DeepEqual(service.Spec.Selector, want.Spec.Selector) {
		return
	}
	updated := service.DeepCopy()
	updated.Spec.PublishNotReadyAddresses = want.Spec.PublishNotReadyAddresses
	updated.Spec.Selector = want.Spec.Selector
	p.update = append(p.update, updated)
}

func planGroups(p *plan, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) {
	for i := range pcs.Spec.Template.PodCliqueScalingGroups {
		want := desiredScalingGroup(pcs, replica, &pcs.Spec.Template.PodCliqueScalingGroups[i])
		if have.groups[want.Name] == nil {
			p.create = append(p.create, want)
		}
	}
}

func planCliques(p *plan, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) {
	expected := gang.ExpectedCliques(pcs, replica, func(_ int32, config *grovev1alpha1.PodCliqueScalingGroupConfig) int32 {
		return sizeOf(have.groups[desiredScalingGroup(pcs, replica, config).Name])
	})
	wanted := make(map[string]bool, len(expected))
	members := map[string][]*grovev1alpha1.PodClique{}
	// The base gang is there as long as the replica is. It names the members of every
	// scaling group, so it waits for the groups as well.
	base := naming.Replica(pcs.Name, replica)
	gangOrder := []string{base}
	attempts := map[string]int32{}
	incomplete := map[string]bool{base: !groupsExist(pcs, replica, have)}
	for _, want := range expected {
		wanted[want.Name] = true
		group := have.groups[want.GroupName]
		if want.Gang != base && members[want.Gang] == nil && !incomplete[want.Gang] {
			gangOrder = append(gangOrder, want.Gang)
		}
		attempts[want.Gang] = gangAttempt(pcs, want, group)
		clique := have.cliques[want.Name]
		if clique == nil {
			p.create = append(p.create, desiredClique(pcs, want, group))
			incomplete[want.Gang] = true
			continue
		}
		if clique.DeletionTimestamp != nil {
			incomplete[want.Gang] = true
			continue
		}
		if attempt := desiredAttempt(pcs, want, group); attempt > clique.Spec.Attempt {
			clique = clique.DeepCopy()
			clique.Spec.Attempt = attempt
			p.update = append(p.update, clique)
		}
		members[want.Gang] = append(members[want.Gang], clique)
	}
	for _, name := range slices.Sorted(maps.Keys(have.cliques)) {
		if clique := have.cliques[name]; !wanted[name] && belongsToKnownGroup(clique, have) {
			p.removeOne(clique)
		}
	}
	planGangs(p, pcs, replica, have, gangOrder, members, attempts, incomplete)
}

// groupsExist says that every scaling group of a replica is there to say how many
// copies it has.
func groupsExist(pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) bool {
	for i := range pcs.Spec.Template.PodCliqueScalingGroups {
		group := have.groups[naming.ScalingGroup(pcs.Name, replica, pcs.Spec.Template.PodCliqueScalingGroups[i].Name)]
		if group == nil || group.DeletionTimestamp != nil {
			return false
		}
	}
	return true
}

// sizeOf is the size of a scaling group that exists; one that does not yet has no members.
func sizeOf(group *grovev1alpha1.PodCliqueScalingGroup) int32 {
	if group == nil || group.DeletionTimestamp != nil {
		return 0
	}
	return group.Spec.Replicas
}

// belongsToKnownGroup keeps a clique whose scaling group the cache does not show:
// absence from a cache is no reason to delete (D11).
func belongsToKnownGroup(clique *grovev1alpha1.PodClique, have observed) bool {
	name := clique.Labels[labels.ScalingGroup]
	return name == "" || have.groups[name] != nil
}

// gangAttempt is the replica's attempt for the base gang, and the sum with the copy's
// for a scaled one (D3).
func gangAttempt(pcs *grovev1alpha1.PodCliqueSet, want gang.ExpectedClique, group *grovev1alpha1.PodCliqueScalingGroup) int32 {
	if want.Gang == want.BaseGang {
		return gang.ReplicaAttempt(pcs, want.Replica)
	}
	return desiredAttempt(pcs, want, group)
}

func planGangs(p *plan, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed, order []string,
	members map[string][]*grovev1alpha1.PodClique, attempts map[string]int32, incomplete map[string]bool) {
	wanted := make(map[string]bool, len(order))
	for _, name := range order {
		wanted[name] = true
		// A gang names all its pods, so it waits until all its cliques exist.
		if incomplete[name] || len(members[name]) == 0 {
			continue
		}
		want := desiredGang(pcs, replica, name, attempts[name], members[name])
		podGang := have.gangs[name]
		if podGang == nil {
			p.create = append(p.create, want)
			continue
		}
		if podGang.DeletionTimestamp != nil || (apiequality.Semantic.DeepEqual(podGang.Spec, want.Spec) && podGang.Labels[labels.RestartAttempt] == want.Labels[labels.RestartAttempt]) {
			continue
		}
		if gang.GangAttempt(podGang) > gang.GangAttempt(want) {
			// The scaling group that was read is older than the gang.
			continue
		}
		updated := podGang.DeepCopy()
		updated.Spec = want.Spec
		metav1.SetMetaDataLabel(&updated.ObjectMeta, labels.RestartAttempt, want.Labels[labels.RestartAttempt])
		p.update = append(p.update, updated)
	}
	for _, name := range slices.Sorted(maps.Keys(have.gangs)) {
		if !wanted[name] && !stillUsed(name, have) {
			p.removeOne(have.gangs[name])
		}
	}
}

// stillUsed says that a clique with pods belongs to the gang.
func stillUsed(name string, have observed) bool {
	for _, clique := range have.cliques {
		if clique.Labels[labels.PodGang] == name {
			return true
		}
	}
	return false
}

// asSeen is the identity under which an object is deleted: the very version that the
// decision was made from. One that has been orphaned since, and so is not ours any
// more, is another version.
func asSeen(obj client.Object) client.Preconditions {
	return client.Preconditions{UID: ptr.To(obj.GetUID()), ResourceVersion: ptr.To(obj.GetResourceVersion())}
}
