package gang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
)

// WaitContainer is the name of the init container that pods of a clique of the template
// wait in; empty when they do not wait. A clique that is held at the barrier and by an
// order waits in one container, for both.
func WaitContainer(pcs *grovev1alpha1.PodCliqueSet, clique string) string {
	switch {
	case isBarrierTarget(pcs, clique):
		return naming.BarrierContainer
	case len(parentsOf(pcs, clique)) > 0:
		return naming.OrderContainer
	}
	return ""
}

// NeedsGate says that some pods of a set wait at a gate.
func NeedsGate(pcs *grovev1alpha1.PodCliqueSet) bool {
	return slices.ContainsFunc(pcs.Spec.Template.Cliques, func(clique grovev1alpha1.PodCliqueTemplateSpec) bool {
		return WaitContainer(pcs, clique.Name) != ""
	})
}

// parentsOf are the cliques of the template whose pods have to be there before the
// containers of a clique start.
func parentsOf(pcs *grovev1alpha1.PodCliqueSet, clique string) []string {
	cliques := pcs.Spec.Template.Cliques
	for i := range cliques {
		switch {
		case cliques[i].Name != clique:
		case ptr.Deref(pcs.Spec.Template.StartupType, "") == grovev1alpha1.CliqueStartupTypeInOrder && i > 0:
			return []string{cliques[i-1].Name}
		case ptr.Deref(pcs.Spec.Template.StartupType, "") == grovev1alpha1.CliqueStartupTypeExplicit:
			return cliques[i].Spec.StartsAfter
		}
	}
	return nil
}

// GateSnapshot is all that the decision about the gate of one replica depends on.
type GateSnapshot struct {
	Set     *grovev1alpha1.PodCliqueSet
	Replica int32
	Gate    *grovev1alpha1.StartGate
	// Cliques are the PodCliques of the replica, and Groups its scaling groups, by name.
	Cliques map[string]*grovev1alpha1.PodClique
	Groups  map[string]*grovev1alpha1.PodCliqueScalingGroup
	// Pods are the pods of PodCliques, by the name of those, as a live list shows them. They
	// count instead of the status of a PodClique, which may be behind.
	Pods map[string][]Pod
}

// GateDecision is what is to be done about the gate of one replica.
type GateDecision struct {
	Status grovev1alpha1.StartGateStatus
	// Expired are cliques because of which the gate of a gang expires: they are looked at
	// live before Status is written.
	Expired []*grovev1alpha1.PodClique
	Events  []Event
	// Next is when to look again though nothing has happened; zero for never.
	Next time.Time
}

// waiter is a PodClique that waits at the gate.
type waiter struct {
	cliqueState
	attempt int32
	barrier bool
	entry   grovev1alpha1.StartGateClique
	// going says that the PodClique is being deleted, and its entry with it: one that takes
	// its name waits anew.
	going bool
	// forgotten says that the entry goes, for the next one to begin anew: what it says is not
	// taken back within an attempt.
	forgotten bool
	// ready says that the cliques before it are there.
	ready bool
}

// DecideGate opens gates, each for a PodClique in an attempt. A gate stays open within the
// attempt, and nothing opens it but what was seen in that attempt: pods of the cliques
// before it that are Ready or Succeeded, and at the barrier every pod of the gang that has
// started (D20, D21).
func DecideGate(s GateSnapshot, now time.Time) GateDecision {
	var decision GateDecision
	set := SetSnapshot{Set: s.Set, Cliques: s.Cliques, Groups: s.Groups}
	replica := observeReplica(set, s.Replica, set.sizes)
	waiters := waitersOf(s, replica, now)
	barriers, expired := map[string][]*waiter{}, map[string]bool{}
	for _, w := range waiters {
		switch {
		case w.entry.Expired:
			expired[w.Gang] = expired[w.Gang] || w.entry.Attempt == w.attempt
		case w.entry.Open:
		case w.barrier:
			barriers[w.Gang] = append(barriers[w.Gang], w)
		case w.ready:
			w.entry.Open, w.entry.Since = true, ptr.To(metav1.NewTime(now))
		}
	}
	for _, gang := range slices.Sorted(maps.Keys(barriers)) {
		if expired[gang] {
			// The attempt of the gang is about to end: a copy that was recycled in it does not
			// start without the others.
			continue
		}
		decideBarrier(s, gang, barriers[gang], &decision, now)
	}
	for _, w := range waiters {
		if !w.going && !w.forgotten {
			decision.Status.Cliques = append(decision.Status.Cliques, w.entry)
		}
	}
	decision.Status.Conditions = slices.Clone(s.Gate.Status.Conditions)
	return decision
}

// withoutGoing takes away the PodCliques that are being deleted, and tells their names: what
// their pods have come to opens nothing for those that are made under their names.
func withoutGoing(cliques []cliqueState) (staying []cliqueState, going map[string]bool) {
	staying, going = slices.Clone(cliques), map[string]bool{}
	for i := range staying {
		if staying[i].object != nil && staying[i].object.DeletionTimestamp != nil {
			going[staying[i].Name], staying[i].object = true, nil
		}
	}
	return staying, going
}

// waitersOf are the PodCliques that wait, or have waited, with what the gate says of their
// attempt.
func waitersOf(s GateSnapshot, replica replicaState, now time.Time) []*waiter {
	var going map[string]bool
	replica.cliques, going = withoutGoing(replica.cliques)
	before := map[string]grovev1alpha1.StartGateClique{}
	for _, entry := range s.Gate.Status.Cliques {
		before[entry.Name] = entry
	}
	var out []*waiter
	for _, clique := range replica.cliques {
		if WaitContainer(s.Set, clique.Template.Name) == "" {
			continue
		}
		w := &waiter{cliqueState: clique, attempt: replica.attempt + clique.copyAttempt, barrier: isBarrierTarget(s.Set, clique.Template.Name)}
		w.entry, w.going = before[clique.Name], going[clique.Name]
		if w.entry.Name == "" || w.entry.Attempt < w.attempt || w.going {
			w.entry = grovev1alpha1.StartGateClique{Name: clique.Name, Attempt: w.attempt}
		}
		if _, known := before[clique.Name]; !known && clique.object != nil && isCurrent(clique.object, w.attempt) && clique.object.Status.WasAvailable {
			// The gate was deleted: its pods have passed it once.
			w.entry.Open, w.entry.Since = true, ptr.To(metav1.NewTime(now))
		}
		// An entry of a later attempt than what was read is left as it is. An order that let
		// the time of the barrier begin has been kept.
		w.ready = w.entry.Attempt == w.attempt && (w.entry.FirstStarted != nil || areThere(s.Set, replica, clique))
		out = append(out, w)
	}
	return out
}

// areThere says that each clique that one waits for has its minimum of pods Ready or
// Succeeded. In the same scaling group that is the clique of its own copy; elsewhere it is
// the cliques of the base gang.
func areThere(pcs *grovev1alpha1.PodCliqueSet, replica replicaState, child cliqueState) bool {
	for _, name := range parentsOf(pcs, child.Template.Name) {
		found := false
		for _, parent := range replica.cliques {
			sameGroup := parent.Group != nil && child.Group != nil && parent.GroupName == child.GroupName
			if parent.Template.Name != name || (sameGroup && parent.Copy != child.Copy) || (!sameGroup && parent.Gang != parent.BaseGang) {
				continue
			}
			if !isCurrent(parent.object, replica.attempt+parent.copyAttempt) || !isUpToDate(parent.object) || !hasSome(parent.object) {
				return false
			}
			found = true
		}
		// No gate is opened by cliques that are not there.
		if !found {
			return false
		}
	}
	return true
}

// hasSome says that the minimum of a clique is there, of at least one pod.
func hasSome(clique *grovev1alpha1.PodClique) bool {
	return Available(clique) >= max(effectiveMinAvailable(&clique.Spec), 1)
}

// CliqueAtGate is what a gate looks at of a PodClique.
type CliqueAtGate struct {
	attempt  int32
	started  share
	isThere  bool
	upToDate bool
}

// AtGate reads what a gate looks at.
func AtGate(clique *grovev1alpha1.PodClique) CliqueAtGate {
	return CliqueAtGate{
		attempt: clique.Status.ObservedAttempt, started: startedOf(clique.Status.StartedReplicas, effectiveMinAvailable(&clique.Spec)),
		isThere: hasSome(clique), upToDate: isUpToDate(clique),
	}
}

// GateFile is what the ConfigMap of a gate says, for pods that cannot reach the API: a line
// for each PodClique whose gate is open, with its attempt.
func GateFile(status *grovev1alpha1.StartGateStatus) string {
	var lines []string
	for _, entry := range status.Cliques {
		if entry.Open {
			lines = append(lines, fmt.Sprintf("%s %d\n", entry.Name, entry.Attempt))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// expiredEntry is what a gate says of a PodClique whose barrier has expired in an attempt;
// nil when it has not.
func expiredEntry(gate *grovev1alpha1.StartGate, clique string, attempt int32) *grovev1alpha1.StartGateClique {
	if gate == nil {
		return nil
	}
	for i := range gate.Status.Cliques {
		if entry := &gate.Status.Cliques[i]; entry.Name == clique && entry.Attempt == attempt && entry.Expired && entry.Since != nil {
			return entry
		}
	}
	return nil
}
