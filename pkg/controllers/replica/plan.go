package replica

import (
	"maps"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	gates    map[string]*grovev1alpha1.StartGate
	// configMaps are those of the gates.
	configMaps  map[string]*corev1.ConfigMap
	autoscalers map[string]*autoscalingv2.HorizontalPodAutoscaler
	// claims are those that pods share, and claimTemplates what they may be made from beside the
	// set's own templates.
	claims         map[string]*resourcev1.ResourceClaim
	claimTemplates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
	// servesClaims says that the cluster knows claims.
	servesClaims bool
	// topology is what the set's constraints speak of.
	topology gang.Topology
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
	planGate(&p, pcs, replica, have)
	planGroups(&p, pcs, replica, have)
	// Pods wait for their gang, so what is made before it is there before them.
	planClaims(&p, pcs, replica, have)
	planCliques(&p, pcs, replica, have)
	planAutoscalers(&p, pcs, replica, have)
	return p
}

// planRemoval takes everything away. Autoscalers go at once: what goes is not scaled. Cliques
// go before what their pods use; each holds on until its pods are gone.
func planRemoval(have observed) plan {
	var p plan
	for _, name := range slices.Sorted(maps.Keys(have.autoscalers)) {
		p.removeOne(have.autoscalers[name])
	}
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
	for _, name := range slices.Sorted(maps.Keys(have.gates)) {
		p.removeOne(have.gates[name])
	}
	for _, name := range slices.Sorted(maps.Keys(have.configMaps)) {
		p.removeOne(have.configMaps[name])
	}
	for _, name := range slices.Sorted(maps.Keys(have.claims)) {
		p.removeOne(have.claims[name])
	}
	if len(have.configMaps) > 0 || len(have.autoscalers) > 0 || len(have.claims) > 0 {
		// The set goes when the Service has: what the file says must not be there for a set that
		// takes the name, whose pods would start by it. Its autoscalers have the same names, too,
		// and its pods would use the devices of these.
		return p
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
	if updated := serviceAsWanted(service, want); updated != nil {
		p.update = append(p.update, updated)
	}
}

// planGroups makes the scaling groups of a replica, and keeps on them what the template says there.
// Their size is their own.
func planGroups(p *plan, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) {
	for i := range pcs.Spec.Template.PodCliqueScalingGroups {
		want := desiredScalingGroup(pcs, replica, &pcs.Spec.Template.PodCliqueScalingGroups[i])
		group := have.groups[want.Name]
		switch {
		case group == nil:
			p.create = append(p.create, want)
		case group.DeletionTimestamp == nil && !maps.Equal(group.Annotations, want.Annotations):
			updated := group.DeepCopy()
			updated.Annotations = want.Annotations
			p.update = append(p.update, updated)
		}
	}
}

func planCliques(p *plan, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) {
	expected := gang.ExpectedCliques(pcs, replica, func(_ int32, config *grovev1alpha1.PodCliqueScalingGroupConfig) int32 {
		return sizeOf(have.groups[desiredScalingGroup(pcs, replica, config).Name])
	})
	wanted := make(map[string]bool, len(expected))
	gangs := gangPlans{byName: map[string]*gangPlan{}}
	// A base gang is there as long as the replica is, though its cliques may have been scaled
	// away. It names the members of every scaling group, so it waits for the groups as well.
	for i := range pcs.Spec.Template.Cliques {
		clique := pcs.Spec.Template.Cliques[i].Name
		base := gangs.plan(gang.BaseGang(pcs, replica, clique), gang.BaseGang(pcs, replica, clique))
		base.closed, base.incomplete = !gang.IsStageOpen(pcs, replica, clique), !groupsExist(pcs, replica, have)
	}
	held := heldMembers(pcs, expected, have)
	for _, want := range expected {
		wanted[want.Name] = true
		group, isOpen := have.groups[want.GroupName], gang.IsStageOpen(pcs, replica, want.Template.Name)
		own := gangs.plan(want.Gang, want.BaseGang)
		own.attempt, own.closed = gangAttempt(pcs, want, group), !isOpen
		clique := have.cliques[want.Name]
		if clique == nil {
			own.incomplete = true
			if isOpen {
				p.create = append(p.create, desiredClique(pcs, want, group))
			}
			continue
		}
		if clique.DeletionTimestamp != nil {
			own.incomplete = true
			continue
		}
		if updated := updatedClique(pcs, want, group, clique); updated != nil {
			clique = updated
			p.update = append(p.update, clique)
		}
		own.members = append(own.members, gangMember{expected: want, clique: clique, held: held[want.Name]})
	}
	for _, name := range slices.Sorted(maps.Keys(have.cliques)) {
		if clique := have.cliques[name]; !wanted[name] && belongsToKnownGroup(clique, have) {
			p.removeOne(clique)
		}
	}
	planGangs(p, pcs, replica, have, gangs)
}

// heldMembers are the PodCliques of scaling groups that wait for others of their copy.
func heldMembers(pcs *grovev1alpha1.PodCliqueSet, expected []gang.ExpectedClique, have observed) map[string]bool {
	type copyOf struct {
		group string
		index int32
	}
	members := map[copyOf]map[string]*grovev1alpha1.PodClique{}
	for _, want := range expected {
		if key := (copyOf{want.GroupName, want.Copy}); want.Group != nil {
			if members[key] == nil {
				members[key] = map[string]*grovev1alpha1.PodClique{}
			}
			members[key][want.Template.Name] = have.cliques[want.Name]
		}
	}
	held := map[string]bool{}
	for _, want := range expected {
		if want.Group != nil {
			held[want.Name] = gang.IsCopyHeld(pcs, want.Template.Name, members[copyOf{want.GroupName, want.Copy}], desiredAttempt(pcs, want, have.groups[want.GroupName]))
		}
	}
	return held
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

// gangPlan is what is known of a gang that a replica should have.
type gangPlan struct {
	name, base string
	attempt    int32
	members    []gangMember
	// closed says that its stage has not been opened yet.
	closed bool
	// incomplete says that a clique of it does not exist, or goes.
	incomplete bool
}

// gangMember is a PodClique of a gang. One that is held makes no pods yet.
type gangMember struct {
	expected gang.ExpectedClique
	clique   *grovev1alpha1.PodClique
	held     bool
}

// gangPlans are those of a replica, in the order in which their cliques are expected.
type gangPlans struct {
	byName map[string]*gangPlan
	order  []*gangPlan
}

// plan is that of the gang with a name.
func (g *gangPlans) plan(name, base string) *gangPlan {
	own := g.byName[name]
	if own == nil {
		own = &gangPlan{name: name, base: base}
		g.byName[name] = own
		g.order = append(g.order, own)
	}
	return own
}

func planGangs(p *plan, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed, gangs gangPlans) {
	for _, own := range gangs.order {
		// A gang names all its pods, so it waits until all its cliques exist; pods wait for it.
		if own.closed || own.incomplete || len(own.members) == 0 {
			continue
		}
		podGang := have.gangs[own.name]
		want, complete := desiredGang(pcs, replica, own, podGang, have.topology)
		if !complete {
			continue
		}
		if podGang == nil {
			p.create = append(p.create, want)
			continue
		}
		if podGang.DeletionTimestamp != nil || isAsWanted(podGang, want) {
			continue
		}
		if gang.GangAttempt(podGang) > gang.GangAttempt(want) {
			// The scaling group that was read is older than the gang.
			continue
		}
		updated := podGang.DeepCopy()
		updated.Spec = want.Spec
		metav1.SetMetaDataLabel(&updated.ObjectMeta, labels.RestartAttempt, want.Labels[labels.RestartAttempt])
		carry(updated, want)
		nameTopology(updated, want.Annotations[labels.TopologyName])
		p.update = append(p.update, updated)
	}
	for _, name := range slices.Sorted(maps.Keys(have.gangs)) {
		if gangs.byName[name] == nil && !stillUsed(name, have) {
			p.removeOne(have.gangs[name])
		}
	}
}

// isAsWanted says that a gang needs no update.
func isAsWanted(podGang, want *schedulerv1alpha1.PodGang) bool {
	return apiequality.Semantic.DeepEqual(podGang.Spec, want.Spec) && carriesSame(podGang, want) &&
		podGang.Annotations[labels.TopologyName] == want.Annotations[labels.TopologyName] &&
		podGang.Labels[labels.RestartAttempt] == want.Labels[labels.RestartAttempt]
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
