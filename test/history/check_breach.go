package history

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// lookWindow is how old a state may be on which a decision was made: what was read,
// looked at live and written takes a while on a busy machine.
const lookWindow = 2 * time.Second

// repeatedFailures is how often an index fails until that alone ends the attempt (D8).
const repeatedFailures = 6

// checkAvailability holds I7: wasAvailable is monotone within an attempt, but for a clique
// that is idle, and a breach needs it, but for the pods of a first start that have failed (D8).
func checkAvailability(w *world, f *Findings) {
	for _, clique := range w.cliques {
		for i, rev := range clique.revs {
			status := &cliqueOf(rev).Status
			c := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
			if c != nil && c.Status == metav1.ConditionTrue && !status.WasAvailable && c.Reason != grovev1alpha1.ReasonPodsFailed {
				f.add("I7", rev, clique.revs[:i], "%s is in breach (%s) though it was never available", clique.name, c.Reason)
			}
			if i == 0 {
				continue
			}
			if was := &cliqueOf(clique.revs[i-1]).Status; was.WasAvailable && !status.WasAvailable && was.ObservedAttempt == status.ObservedAttempt && cliqueOf(rev).Spec.Replicas > 0 {
				f.add("I7", rev, clique.revs[i-1:i], "wasAvailable of %s is taken back", clique.name)
			}
		}
	}
}

// checkTermination holds I8: no replica or copy is restarted, and no set fails for want
// of restarts, before a breach has lasted as long as its delay. The sixth failure of an
// index and an expired start barrier need no delay.
func checkTermination(w *world, f *Findings) {
	for _, set := range w.of(Set) {
		for i, rev := range set.revs {
			if i > 0 {
				checkSetTermination(w, f, set, set.revs[i-1], rev)
			}
		}
	}
	for _, group := range w.of(Group) {
		for i, rev := range group.revs {
			if i > 0 {
				checkCopyTermination(w, f, group, group.revs[i-1], rev)
			}
		}
	}
}

func checkSetTermination(w *world, f *Findings, set *story, before, rev *Revision) {
	cliques := w.cliquesOf(set)
	ofReplica := func(replica int32) []*cliqueStory {
		return slices.DeleteFunc(slices.Clone(cliques), func(c *cliqueStory) bool { return c.replica != replica })
	}
	for _, replica := range setOf(rev).Status.ReplicaStatuses {
		if replica.Attempt > replicaAttempt(before, replica.Index) && !w.isRenewed(set, rev, replica.Index) {
			t := termination{w, setOf(rev), rev, ofReplica(replica.Index)}
			t.check(f, "replica %d of %s is restarted", replica.Index, set.name)
		}
	}
	failing := meta.FindStatusCondition(setOf(rev).Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
	if isFailing(rev) && !isFailing(before) && failing.Reason == grovev1alpha1.ReasonMaxRestartsExceeded {
		t := termination{w, setOf(rev), rev, cliques}
		t.check(f, "%s fails", set.name)
	}
}

// isRenewed says that an update makes a replica anew, for its gangs had another priority class.
func (w *world) isRenewed(set *story, rev *Revision, replica int32) bool {
	progress := setOf(rev).Status.UpdateProgress
	if progress == nil || !slices.ContainsFunc(progress.CurrentlyUpdating, func(p grovev1alpha1.PodCliqueSetReplicaUpdateProgress) bool {
		return p.ReplicaIndex == replica && p.UpdateEndedAt == nil
	}) {
		return false
	}
	return slices.ContainsFunc(w.of(Gang), func(podGang *story) bool {
		before := podGang.before(rev)
		if before == nil {
			return false
		}
		index, _ := labels.ParseIndex(before.Object.GetLabels()[labels.ReplicaIndex])
		return index == replica && metav1.IsControlledBy(before.Object, setOf(rev)) && gangOf(before).Spec.PriorityClassName != setOf(rev).Spec.Template.PriorityClassName
	})
}

func checkCopyTermination(w *world, f *Findings, group *story, before, rev *Revision) {
	for _, attempt := range groupOf(rev).Status.ReplicaAttempts {
		if attempt.Attempt <= copyAttempt(before, attempt.Index) {
			continue
		}
		var members []*cliqueStory
		for _, clique := range w.cliques {
			if clique.group == group && clique.copy == attempt.Index {
				members = append(members, clique)
			}
		}
		if len(members) == 0 || members[0].set == nil {
			f.skip("I8", "the PodCliques of copy %d of %s are not known", attempt.Index, group.name)
			continue
		}
		at := members[0].set.before(rev)
		if at == nil {
			f.skip("I8", "the set of %s is not known", group.name)
			continue
		}
		if isTraining(at) {
			f.add("I8", rev, []*Revision{before}, "copy %d of %s is recycled, in Training", attempt.Index, group.name)
			continue
		}
		t := termination{w, setOf(at), rev, members}
		t.check(f, "copy %d of %s is recycled", attempt.Index, group.name)
	}
}

// termination is a write that ends an attempt of some cliques.
type termination struct {
	w       *world
	set     *grovev1alpha1.PodCliqueSet
	rev     *Revision
	cliques []*cliqueStory
}

func (t termination) check(f *Findings, format string, args ...any) {
	var related []*Revision
	for _, clique := range t.cliques {
		for _, seen := range clique.near(t.rev, lookWindow) {
			if t.justifies(clique, seen) {
				return
			}
			related = append(related, seen)
		}
	}
	if t.barrierExpired() {
		return
	}
	if t.w.hasGap(Clique) {
		f.skip("I8", format+", and revisions of PodCliques are missing", args...)
		return
	}
	f.add("I8", t.rev, related, format+" at %s, and no breach has lasted its delay", append(args, clock(t.w.written[t.rev]))...)
}

// justifies says that a state of a clique is reason enough.
func (t termination) justifies(clique *cliqueStory, seen *Revision) bool {
	status := &cliqueOf(seen).Status
	for _, failed := range status.FailedIndexes {
		if failed.Count >= repeatedFailures && cliqueOf(seen).Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining {
			return true
		}
	}
	delay := t.delayOf(clique)
	if !isBreached(seen) || delay == nil {
		return false
	}
	due := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached).LastTransitionTime.Time
	if delay.Duration > 0 {
		due = due.Add(rounding + delay.Duration)
	}
	return !t.w.written[t.rev].Before(due)
}

// delayOf is the delay of the clique's scaling group, else the set's; nil is never.
func (t termination) delayOf(clique *cliqueStory) *metav1.Duration {
	delay := t.set.Spec.Template.TerminationDelay
	if clique.group == nil || delay == nil {
		return delay
	}
	for _, config := range t.set.Spec.Template.PodCliqueScalingGroups {
		if naming.ScalingGroup(t.set.Name, clique.replica, config.Name) == clique.group.name && config.TerminationDelay != nil {
			return config.TerminationDelay
		}
	}
	return delay
}

// barrierExpired says that the start barrier of one of the cliques has expired.
func (t termination) barrierExpired() bool {
	for _, gate := range t.w.of(Gate) {
		for _, seen := range gate.near(t.rev, lookWindow) {
			for _, entry := range gateOf(seen).Status.Cliques {
				if entry.Expired && slices.ContainsFunc(t.cliques, func(c *cliqueStory) bool { return c.name == entry.Name }) {
					return true
				}
			}
		}
	}
	return false
}
