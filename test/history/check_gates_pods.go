package history

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// waiting is a PodClique that waits at a gate in an attempt, whether it exists or not.
type waiting struct {
	set     *story
	replica int32
	// group is nil for a standalone clique.
	group *story
	copy  int32
	// template is the clique in the set's template.
	template string
	attempt  int32
}

// isTarget and mustBeThere are what the set says: whether a clique comes to the barrier, and
// which cliques come before it.
func isTarget(pcs *grovev1alpha1.PodCliqueSet, clique string) bool {
	barrier := pcs.Spec.GroupSchedulingConfig
	return barrier != nil && (len(barrier.TargetCliques) == 0 || slices.Contains(barrier.TargetCliques, clique))
}

func mustBeThere(pcs *grovev1alpha1.PodCliqueSet, clique string) []string {
	names := pcs.Spec.Template.Cliques
	i := slices.IndexFunc(names, func(c grovev1alpha1.PodCliqueTemplateSpec) bool { return c.Name == clique })
	switch ptr.Deref(pcs.Spec.Template.StartupType, grovev1alpha1.CliqueStartupTypeAnyOrder) {
	case grovev1alpha1.CliqueStartupTypeInOrder:
		if i > 0 {
			return []string{names[i-1].Name}
		}
	case grovev1alpha1.CliqueStartupTypeExplicit:
		if i >= 0 {
			return names[i].Spec.StartsAfter
		}
	}
	return nil
}

// groupConfigOf is the scaling group of a clique of the template; nil for none.
func groupConfigOf(pcs *grovev1alpha1.PodCliqueSet, clique string) *grovev1alpha1.PodCliqueScalingGroupConfig {
	groups := pcs.Spec.Template.PodCliqueScalingGroups
	for i := range groups {
		if slices.Contains(groups[i].CliqueNames, clique) {
			return &groups[i]
		}
	}
	return nil
}

// place is where a PodClique of a clique of the template is.
type place struct {
	name  string
	group *story
	copy  int32
}

// placesOf are the PodCliques of a clique of the template in a replica: in the base gang, or
// in one copy of its scaling group if that is at least 0.
func (w *world) placesOf(set *story, replica int32, clique string, copyIndex int32) []place {
	config := groupConfigOf(setOf(set.revs[0]), clique)
	if config == nil {
		return []place{{name: naming.StandaloneClique(set.name, replica, clique)}}
	}
	var group *story
	for _, g := range w.of(Group) {
		if g.name == naming.ScalingGroup(set.name, replica, config.Name) && isOwnedBy(g, set) {
			group = g
		}
	}
	at := func(index int32) place {
		return place{name: naming.MemberClique(set.name, replica, config.Name, index, clique), group: group, copy: index}
	}
	if copyIndex >= 0 {
		return []place{at(copyIndex)}
	}
	var out []place
	for index := range ptr.Deref(config.MinAvailable, 1) {
		out = append(out, at(index))
	}
	return out
}

// waitingOf finds the PodClique that an entry of a gate is about; known is false when no
// clique of the set that waits has that name.
func (w *world) waitingOf(gate *story, entry *grovev1alpha1.StartGateClique) (at waiting, known bool) {
	set := w.setOwning(gate)
	replica, ok := labels.ParseIndex(gate.revs[0].Object.GetLabels()[labels.ReplicaIndex])
	if set == nil || !ok {
		return waiting{}, false
	}
	pcs := setOf(set.revs[0])
	for i := range pcs.Spec.Template.Cliques {
		clique := pcs.Spec.Template.Cliques[i].Name
		if !isTarget(pcs, clique) && len(mustBeThere(pcs, clique)) == 0 {
			continue
		}
		for copyIndex := range w.mostCopies(set, replica, clique) {
			if p := w.placesOf(set, replica, clique, copyIndex)[0]; p.name == entry.Name {
				return waiting{set, replica, p.group, p.copy, clique, entry.Attempt}, true
			}
		}
	}
	return waiting{}, false
}

// mostCopies is how many copies the scaling group of a clique has ever had; 1 without one.
func (w *world) mostCopies(set *story, replica int32, clique string) int32 {
	most := int32(1)
	for _, p := range w.placesOf(set, replica, clique, 0) {
		if p.group == nil {
			continue
		}
		for _, r := range p.group.revs {
			most = max(most, groupOf(r).Spec.Replicas)
		}
	}
	return most
}

// mayBeBeyond says that a controller may have seen a scaling group that was too small for a
// copy when it wrote a revision.
func (w *world) mayBeBeyond(group *story, copyIndex int32, at *Revision) bool {
	if group == nil {
		return false
	}
	for i, rev := range group.revs {
		if w.certainlyAfter(rev, at) {
			break
		}
		if i+1 < len(group.revs) && group.revs[i+1].Arrived.Before(at.Arrived.Add(-createWindow)) {
			continue
		}
		if isGoing(rev) || groupOf(rev).Spec.Replicas <= copyIndex {
			return true
		}
	}
	return false
}

// missingAt says what a PodClique that waits was certainly still waiting for at a revision,
// empty for nothing.
func (w *world) missingAt(at waiting, r *Revision) string {
	pcs := setOf(at.set.revs[0])
	if isTarget(pcs, at.template) {
		own := int32(-1)
		config := groupConfigOf(pcs, at.template)
		if config != nil && at.copy >= ptr.Deref(config.MinAvailable, 1) {
			own = at.copy
		}
		for i := range pcs.Spec.Template.Cliques {
			other := pcs.Spec.Template.Cliques[i].Name
			if !isTarget(pcs, other) || (own >= 0 && groupConfigOf(pcs, other) != config) {
				continue
			}
			for _, p := range w.placesOf(at.set, at.replica, other, own) {
				if missing := w.short(at, p, r, barrierOf); missing != "" {
					return missing
				}
			}
		}
	}
	for _, before := range mustBeThere(pcs, at.template) {
		own := int32(-1)
		if config := groupConfigOf(pcs, at.template); config != nil && groupConfigOf(pcs, before) == config {
			own = at.copy
		}
		for _, p := range w.placesOf(at.set, at.replica, before, own) {
			if missing := w.short(at, p, r, availabilityOf); missing != "" {
				return missing
			}
		}
	}
	return ""
}

// measure is how many pods of a PodClique something takes, and which revisions of a pod
// count for it. What is kept counts on when the pod is gone.
type measure struct {
	what  string
	need  func(*grovev1alpha1.PodCliqueSpec) int32
	holds func(pod *corev1.Pod, training bool) (now, kept bool)
}

// barrierOf: all pods have come to the barrier.
var barrierOf = measure{
	what: "at the barrier",
	need: func(spec *grovev1alpha1.PodCliqueSpec) int32 { return spec.Replicas },
	holds: func(pod *corev1.Pod, _ bool) (now, kept bool) {
		return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == naming.BarrierContainer && (s.State.Running != nil || (s.State.Terminated != nil && s.State.Terminated.ExitCode == 0))
		}), false
	},
}

// availabilityOf: the minimum is Ready, or in Training has done its work.
var availabilityOf = measure{
	what: "Ready or Succeeded",
	need: func(spec *grovev1alpha1.PodCliqueSpec) int32 { return ptr.Deref(spec.MinAvailable, spec.Replicas) },
	holds: func(pod *corev1.Pod, training bool) (now, kept bool) {
		return isPodReady(pod) || (training && isDone(pod)), training && pod.Status.Phase == corev1.PodSucceeded
	},
}

// isDone says that some containers of a pod have ended with 0 and the others are ready.
func isDone(pod *corev1.Pod) bool {
	done := false
	for _, s := range pod.Status.ContainerStatuses {
		exited := s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		if !exited && !s.Ready {
			return false
		}
		done = done || exited
	}
	return done
}

// short says how far a PodClique, in the attempt that one that waits belongs to, certainly
// was from what is measured at a revision; empty when it may have come there, if only
// earlier: what counts is that it was there at one moment.
func (w *world) short(at waiting, p place, r *Revision, m measure) string {
	if w.mayBeBeyond(p.group, p.copy, r) {
		return ""
	}
	var clique *cliqueStory
	for _, c := range w.cliques {
		if c.name == p.name && c.set == at.set && !w.certainlyAfter(c.revs[0], r) {
			clique = c
		}
	}
	if clique == nil {
		return fmt.Sprintf("there is no PodClique %s", p.name)
	}
	need := int32(math.MaxInt32)
	for _, rev := range clique.revs {
		if !w.certainlyAfter(rev, r) {
			need = min(need, m.need(&cliqueOf(rev).Spec))
		}
	}
	need = max(need, 1)
	most := map[int32]int32{}
	for _, pod := range clique.pods {
		if _, counted := most[pod.attempt]; !counted && w.isOfAttempt(pod, at, r) {
			most[pod.attempt] = w.mostAtOnce(clique, pod.attempt, r, m)
		}
	}
	best := int32(0)
	for _, n := range most {
		best = max(best, n)
	}
	if best >= need {
		return ""
	}
	return fmt.Sprintf("%d of %d pods of %s have been %s at once", best, need, p.name, m.what)
}

// isOfAttempt says that a pod may be of the attempt of a PodClique that waits: in the same
// copy or without copies the number is the same, else it is the attempt of the replica that is.
func (w *world) isOfAttempt(pod *podStory, at waiting, r *Revision) bool {
	if pod.clique.group == at.group && (at.group == nil || pod.clique.copy == at.copy) {
		return pod.attempt == at.attempt
	}
	lowest, highest := at.attempt, at.attempt
	if at.group != nil {
		for _, rev := range at.group.revs {
			if !w.certainlyAfter(rev, r) {
				lowest = min(lowest, at.attempt-copyAttempt(rev, at.copy))
			}
		}
	}
	low, high := pod.setAttempt()
	return low <= highest && lowest <= high
}

// mostAtOnce is the highest number of indexes of a PodClique that counted at any one moment
// up to a revision, in one attempt.
func (w *world) mostAtOnce(clique *cliqueStory, attempt int32, until *Revision, m measure) int32 {
	type state struct {
		rev *Revision
		pod *podStory
	}
	var states []state
	for _, pod := range clique.pods {
		for _, rev := range pod.revs {
			if pod.attempt == attempt && !w.certainlyAfter(rev, until) {
				states = append(states, state{rev, pod})
			}
		}
	}
	slices.SortFunc(states, func(a, b state) int { return compareRevisions(a.rev, b.rev) })
	training := cliqueOf(clique.revs[0]).Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining
	counts, kept, most := map[*podStory]bool{}, map[int32]bool{}, 0
	for _, s := range states {
		now, keep := m.holds(podOf(s.rev), training)
		counts[s.pod] = now && !isGoing(s.rev)
		if keep {
			kept[s.pod.index] = true
		}
		indexes := maps.Clone(kept)
		for pod, is := range counts {
			if is {
				indexes[pod.index] = true
			}
		}
		most = max(most, len(indexes))
	}
	return int32(most)
}
