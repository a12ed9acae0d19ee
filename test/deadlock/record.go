package deadlock

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// What starts when is said here once more, in terms of the pods themselves: nothing of the
// engine that is judged is used for it.

// unit is a PodClique that a set has to have.
type unit struct {
	name    string
	replica int32
	// place is that of the clique in the template.
	place  int
	clique *grovev1alpha1.PodCliqueSpec
	group  *grovev1alpha1.PodCliqueScalingGroupConfig
	copyOf int32
	// base says that it belongs to the replica's base gang, or to that of its stage.
	base bool
}

func (u unit) minimum() int32 { return ptr.Deref(u.clique.MinAvailable, u.clique.Replicas) }

// size is how many copies a scaling group of a replica has.
func (l *life) size(replica int32, group *grovev1alpha1.PodCliqueScalingGroupConfig) int32 {
	if object := l.replicas[replica].groups[naming.ScalingGroup(l.set.Name, replica, group.Name)]; object != nil {
		return object.Spec.Replicas
	}
	return ptr.Deref(group.Replicas, 1)
}

// unitsOf are those of a replica.
func (l *life) unitsOf(replica int32) []unit {
	var out []unit
	set := l.set
	for place := range set.Spec.Template.Cliques {
		clique := &set.Spec.Template.Cliques[place]
		i := slices.IndexFunc(set.Spec.Template.PodCliqueScalingGroups, func(g grovev1alpha1.PodCliqueScalingGroupConfig) bool {
			return slices.Contains(g.CliqueNames, clique.Name)
		})
		if i < 0 {
			out = append(out, unit{name: naming.StandaloneClique(set.Name, replica, clique.Name), replica: replica, place: place, clique: &clique.Spec, base: true})
			continue
		}
		group := &set.Spec.Template.PodCliqueScalingGroups[i]
		for n := range l.size(replica, group) {
			out = append(out, unit{
				name: naming.MemberClique(set.Name, replica, group.Name, n, clique.Name), replica: replica, place: place, clique: &clique.Spec,
				group: group, copyOf: n, base: n < ptr.Deref(group.MinAvailable, 1),
			})
		}
	}
	return out
}

// isStagedSet says that later cliques have no pods before earlier ones are there.
func isStagedSet(set *grovev1alpha1.PodCliqueSet) bool {
	policy := set.Spec.StartupPolicy
	return policy != nil && policy.StartupPolicyOrder == grovev1alpha1.StartupPolicyInOrder
}

// isTarget says that a unit starts together with the other targets of its gang.
func (u unit) isTarget(set *grovev1alpha1.PodCliqueSet) bool {
	config := set.Spec.GroupSchedulingConfig
	return config != nil && (len(config.TargetCliques) == 0 || slices.Contains(config.TargetCliques, set.Spec.Template.Cliques[u.place].Name))
}

// parents are the units that have to be there before the containers of one start.
func (l *life) parents(u unit) []unit {
	template := &l.set.Spec.Template
	var names []string
	switch startupType := ptr.Deref(template.StartupType, ""); {
	case startupType == grovev1alpha1.CliqueStartupTypeExplicit:
		names = u.clique.StartsAfter
	case startupType == grovev1alpha1.CliqueStartupTypeInOrder && u.place > 0:
		names = []string{template.Cliques[u.place-1].Name}
	}
	var out []unit
	for _, other := range l.unitsOf(u.replica) {
		ownCopy := u.group != nil && other.group != nil && u.group.Name == other.group.Name
		if slices.Contains(names, template.Cliques[other.place].Name) && ((ownCopy && other.copyOf == u.copyOf) || (!ownCopy && other.base)) {
			out = append(out, other)
		}
	}
	return out
}

// earlier are the units whose pods all have to be there before one has pods: those of the
// cliques before its own, in all copies or in its own.
func (l *life) earlier(u unit, ownCopy bool) []unit {
	var out []unit
	for _, other := range l.unitsOf(u.replica) {
		inCopy := u.group != nil && other.group != nil && u.group.Name == other.group.Name && u.copyOf == other.copyOf
		if isStagedSet(l.set) && other.place < u.place && (inCopy || !ownCopy) {
			out = append(out, other)
		}
	}
	return out
}

// waitsToSucceed says that the cliques after a unit's wait for its pods to have succeeded.
func (u unit) waitsToSucceed(set *grovev1alpha1.PodCliqueSet) bool {
	return slices.ContainsFunc(set.Spec.StartupPolicy.Rules, func(r grovev1alpha1.StartupPolicyRule) bool {
		return slices.Contains(r.TargetCliques, set.Spec.Template.Cliques[u.place].Name) && r.WaitForCliquesStatus == grovev1alpha1.CliqueStatusSucceeded
	})
}

// inAttempt is a PodClique in one of its attempts.
type inAttempt struct {
	clique  string
	attempt int32
}

// podOf is a pod of a PodClique in an attempt.
type podOf struct {
	inAttempt
	index int32
}

// record is what has been seen of pods.
type record struct {
	// available is how many pods were Ready, or had succeeded in Training, at once, at most;
	// succeeded and atBarrier how many had come that far.
	available, succeeded, atBarrier map[inAttempt]int32
	// expired says that a start barrier has.
	expired bool
}

func newRecord() record {
	return record{available: map[inAttempt]int32{}, succeeded: map[inAttempt]int32{}, atBarrier: map[inAttempt]int32{}}
}

// remember looks at a pod that has changed.
func (r *record) remember(l *life, changed *podOnNode) {
	key := changed.of
	now := l.nodes.count(key.inAttempt)
	r.available[key.inAttempt] = max(r.available[key.inAttempt], now.available)
	r.succeeded[key.inAttempt] = max(r.succeeded[key.inAttempt], now.succeeded)
	r.atBarrier[key.inAttempt] = max(r.atBarrier[key.inAttempt], now.atBarrier)
}

// counts are how many pods of a PodClique have come how far.
type counts struct{ available, succeeded, atBarrier int32 }

// count counts pods as they are now.
func (n *nodes) count(of inAttempt) counts {
	var c counts
	for _, p := range n.pods {
		if p.of.inAttempt != of || p.DeletionTimestamp != nil {
			continue
		}
		if p.Status.Phase == corev1.PodSucceeded {
			c.succeeded++
		}
		if p.isReady() || p.Status.Phase == corev1.PodSucceeded {
			c.available++
		}
		if p.cameToBarrier() {
			c.atBarrier++
		}
	}
	return c
}

// cameToBarrier says that the container at the barrier runs, or has ended with 0.
func (p *podOnNode) cameToBarrier() bool {
	if p.waiter() == nil || p.waiter().Name != naming.BarrierContainer || len(p.Status.InitContainerStatuses) == 0 {
		return false
	}
	state := p.Status.InitContainerStatuses[0].State
	return state.Running != nil || (state.Terminated != nil && state.Terminated.ExitCode == 0)
}

// current is a unit in the attempt that its PodClique is in.
func (l *life) current(u unit) inAttempt {
	if clique := l.replicas[u.replica].cliques[u.name]; clique != nil {
		return inAttempt{u.name, clique.Spec.Attempt}
	}
	return inAttempt{u.name, 0}
}

// reached says that a unit has come, at some time in its attempt, to where the stages after
// it may begin.
func (l *life) reached(u unit) bool {
	if u.waitsToSucceed(l.set) {
		return l.record.succeeded[l.current(u)] >= u.clique.Replicas
	}
	return l.record.available[l.current(u)] >= u.clique.Replicas
}

// isThere says that a unit has come to there and has not receded: the stages after it wait
// for all at once.
func (l *life) isThere(u unit) bool {
	now := l.nodes.count(l.current(u))
	if u.waitsToSucceed(l.set) {
		return now.succeeded >= u.clique.Replicas
	}
	return now.available >= u.clique.Replicas
}

// unitNamed is the unit that a PodClique stands for.
func (l *life) unitNamed(replica int32, name string) unit {
	for _, u := range l.unitsOf(replica) {
		if u.name == name {
			return u
		}
	}
	l.fail("PodClique %s is not one that the set has", name)
	return unit{}
}

// checkCreation holds that no pod is made before its base gang has a place, before its stage is on record as open, and before
// the earlier members of its own copy were there.
func (r *record) checkCreation(l *life, clique *grovev1alpha1.PodClique) {
	index, _ := l.replicaOf(clique)
	u := l.unitNamed(index, clique.Name)
	if base := clique.Labels[labels.BasePodGang]; !l.isPlaced(l.replicas[index], base) {
		l.fail("a pod of %s is made before its base gang %s has a place", clique.Name, base)
	}
	if !isStagedSet(l.set) || l.err != nil || u.place == 0 {
		return
	}
	name := l.set.Spec.Template.Cliques[u.place].Name
	if !slices.ContainsFunc(l.set.Status.ReplicaStatuses, func(s grovev1alpha1.PodCliqueSetReplicaStatus) bool {
		return s.Index == index && slices.Contains(s.OpenStages, name)
	}) {
		l.fail("a pod of %s is made before its stage is open", clique.Name)
	}
	for _, other := range l.earlier(u, true) {
		if !l.reached(other) {
			l.fail("a pod of %s is made before %s of its copy is there", clique.Name, other.name)
		}
	}
}

// checkStages holds that no stage is opened before all of the earlier ones are there.
func (l *life) checkStages(next *grovev1alpha1.PodCliqueSet) {
	for _, after := range next.Status.ReplicaStatuses {
		var recorded []string
		for _, before := range l.set.Status.ReplicaStatuses {
			if before.Index == after.Index && before.Attempt == after.Attempt {
				recorded = before.OpenStages
			}
		}
		for _, u := range l.unitsOf(after.Index) {
			name := l.set.Spec.Template.Cliques[u.place].Name
			if !slices.Contains(after.OpenStages, name) || slices.Contains(recorded, name) {
				continue
			}
			for _, other := range l.earlier(u, false) {
				if opened := slices.Contains(recorded, l.set.Spec.Template.Cliques[other.place+1].Name); !opened && !l.reached(other) {
					l.fail("stage %s is opened before %s is there", name, other.name)
				}
			}
		}
	}
}

// checkGate holds that no gate is opened before what it waits for was there, and that none
// is closed.
func (l *life) checkGate(before, after *grovev1alpha1.StartGate) {
	index, _ := l.replicaOf(after)
	wasOpen := map[inAttempt]bool{}
	for _, entry := range before.Status.Cliques {
		wasOpen[inAttempt{entry.Name, entry.Attempt}] = entry.Open
	}
	for _, entry := range after.Status.Cliques {
		l.record.expired = l.record.expired || entry.Expired
		if !entry.Open || wasOpen[inAttempt{entry.Name, entry.Attempt}] {
			continue
		}
		u := l.unitNamed(index, entry.Name)
		for _, parent := range l.parents(u) {
			if l.record.available[l.current(parent)] < parent.minimum() {
				l.fail("the gate of %s is opened before %s is there", entry.Name, parent.name)
			}
		}
		for _, other := range l.companions(u) {
			if l.record.atBarrier[l.current(other)] < other.clique.Replicas {
				l.fail("the gate of %s is opened before all pods of %s have come to the barrier", entry.Name, other.name)
			}
		}
	}
}

// companions are the targets of the barrier that start together with a unit, itself
// included.
func (l *life) companions(u unit) []unit {
	var out []unit
	for _, other := range l.unitsOf(u.replica) {
		sameGang := other.base == u.base && (u.base || (other.group.Name == u.group.Name && other.copyOf == u.copyOf)) && (!isStagedSet(l.set) || other.place == u.place)
		if u.isTarget(l.set) && other.isTarget(l.set) && sameGang {
			out = append(out, other)
		}
	}
	return out
}
