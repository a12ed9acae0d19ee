package gang

import (
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// GangAttempt is the attempt that a PodGang names the pods of.
func GangAttempt(podGang *schedulerv1alpha1.PodGang) int32 {
	attempt, _ := labels.ParseIndex(podGang.Labels[labels.RestartAttempt])
	return attempt
}

// WasScheduled says that a gang was scheduled once in its attempt. It stays so within
// the attempt.
func WasScheduled(podGang *schedulerv1alpha1.PodGang) bool {
	return podGang.Status.ObservedAttempt == GangAttempt(podGang) &&
		meta.IsStatusConditionTrue(podGang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled)
}

// GangSnapshot is all that the status of one PodGang depends on.
type GangSnapshot struct {
	PodGang *schedulerv1alpha1.PodGang
	// Cliques are the PodCliques of the gang, by name.
	Cliques map[string]*grovev1alpha1.PodClique
	// Scheduled says that the scheduler has placed the gang once in this attempt.
	Scheduled bool
	// Untold says that the scheduler does not tell so: the gang counts as scheduled when all of
	// its pods have a node.
	Untold bool
	// AllOrNothing says that it places gangs as a whole all the same.
	AllOrNothing bool
	// Why is what the scheduler says about pods that it has not placed, or about itself.
	Why []schedulerv1alpha1.UnschedulableExplanation
	// Gated is how many pods are held by scheduling gates.
	Gated int32
}

// DecideGang returns the next status of a PodGang, and whether it differs.
func DecideGang(s GangSnapshot, now time.Time) (schedulerv1alpha1.PodGangStatus, bool) {
	status := s.PodGang.Status.DeepCopy()
	attempt := GangAttempt(s.PodGang)
	if attempt > status.ObservedAttempt {
		status.ObservedAttempt = attempt
		status.Conditions = nil
	}
	status.ObservedGeneration = ptr.To(s.PodGang.Generation)
	counts, ready := countMembers(s, attempt)
	generation := s.PodGang.Generation

	initialized, reason := metav1.ConditionFalse, "PodGangPodsCreationPending"
	if counts.have >= counts.need || meta.IsStatusConditionTrue(status.Conditions, schedulerv1alpha1.PodGangConditionInitialized) {
		initialized, reason = metav1.ConditionTrue, "PodGangPodsCreated"
	}
	setCondition(&status.Conditions, generation, now, schedulerv1alpha1.PodGangConditionInitialized, initialized, reason, "")
	scheduled := s.Scheduled || (s.Untold && counts.placed >= counts.need) ||
		meta.IsStatusConditionTrue(status.Conditions, schedulerv1alpha1.PodGangConditionScheduled)
	why := explain(s, counts, scheduled)
	setScheduled(status, counts, scheduled, why, generation, now)
	status.SchedulingConditions = SchedulingConditions(status.SchedulingConditions, "", why, now)
	readyStatus, readyReason := metav1.ConditionFalse, "PodsNotReady"
	if ready {
		readyStatus, readyReason = metav1.ConditionTrue, "PodsReady"
	}
	setCondition(&status.Conditions, generation, now, schedulerv1alpha1.PodGangConditionReady, readyStatus, readyReason, "")
	switch {
	case !scheduled:
		status.Phase = schedulerv1alpha1.PodGangPending
	case !ready:
		status.Phase = schedulerv1alpha1.PodGangStarting
	default:
		status.Phase = schedulerv1alpha1.PodGangRunning
	}
	return *status, !apiequality.Semantic.DeepEqual(s.PodGang.Status, *status)
}

// memberCounts are pods of a gang's attempt.
type memberCounts struct {
	// have exist, placed have a node, need have to be: of each clique no more than its minimum.
	have, placed, need int32
	// waiting have no node, whichever they are: a pod beyond the minimum may have one in the
	// place of a member.
	waiting int32
}

// countMembers counts the pods of the gang's attempt, and says whether every clique is
// available.
func countMembers(s GangSnapshot, attempt int32) (counts memberCounts, ready bool) {
	ready = true
	for _, group := range s.PodGang.Spec.PodGroups {
		counts.need += group.MinReplicas
		clique := s.Cliques[group.Name]
		if !isCurrent(clique, attempt) {
			ready = false
			continue
		}
		counts.have += min(clique.Status.Replicas, group.MinReplicas)
		counts.placed += min(clique.Status.ScheduledReplicas, group.MinReplicas)
		counts.waiting += waitingOf(clique)
		ready = ready && IsAvailable(clique)
	}
	return counts, ready
}

// waitingOf is how many pods of a clique have no node.
func waitingOf(clique *grovev1alpha1.PodClique) int32 {
	return max(clique.Status.Replicas-clique.Status.ScheduledReplicas, 0)
}

// PodsWait says whether pods of a gang's cliques exist that have no node.
func PodsWait(podGang *schedulerv1alpha1.PodGang, cliques map[string]*grovev1alpha1.PodClique) bool {
	counts, _ := countMembers(GangSnapshot{PodGang: podGang, Cliques: cliques}, GangAttempt(podGang))
	return counts.waiting > 0
}

// IsIdle says that a gang needs nobody: all its cliques are scaled to 0.
func IsIdle(podGang *schedulerv1alpha1.PodGang) bool {
	return !slices.ContainsFunc(podGang.Spec.PodGroups, func(group schedulerv1alpha1.PodGangPodGroup) bool { return group.MinReplicas > 0 })
}

// IsTold says that the scheduler has been told of a gang as it is, as far as pods have to wait
// for that. A new gang, and a new attempt, have a group of their own that the scheduler waits
// for; one that exists has its pods placed as it is, be it for fewer cliques.
func IsTold(podGang *schedulerv1alpha1.PodGang) bool {
	status := &podGang.Status
	return status.ObservedAttempt != GangAttempt(podGang) || ptr.Deref(status.ObservedGeneration, podGang.Generation) >= podGang.Generation
}

// Needed is how many members of a gang have to have a node at once.
type Needed struct {
	Members int32
	// Left is how many members have not finished.
	Left int32
	// Raise says that a lower minimum was that of fewer cliques, others being scaled to 0. The
	// minimum of a gang that has finished in part stays low.
	Raise bool
}

// MembersNeeded is how many members of a gang have to have a node at once: all of them
// until the gang was scheduled. Later, one that waits for a node is placed with those that
// have not finished, for the scheduler counts no others (D23). It stays all of them while
// nobody waits, so that not every pod that finishes costs a write.
func MembersNeeded(podGang *schedulerv1alpha1.PodGang, cliques map[string]*grovev1alpha1.PodClique) Needed {
	var all, left int32
	waits := false
	for _, group := range podGang.Spec.PodGroups {
		all += group.MinReplicas
		left += group.MinReplicas
		clique := cliques[group.Name]
		if !isCurrent(clique, GangAttempt(podGang)) {
			continue
		}
		waits = waits || clique.Status.ScheduledReplicas < clique.Status.Replicas
		left -= int32(completedOf(&clique.Status).CountBelow(group.MinReplicas))
	}
	out := Needed{Members: all, Left: left, Raise: left == all}
	if waits && WasScheduled(podGang) {
		out.Members = max(left, min(all, 1))
	}
	return out
}

// MembersNeededByGroup is the same for each group alone, for schedulers that count so. Those
// that have finished are not counted once the gang was scheduled, whether or not a pod waits:
// such a scheduler may evict what has fewer pods than it is told. A group of which nobody is
// left is missing; one that has a surplus pod alone keeps it.
func MembersNeededByGroup(podGang *schedulerv1alpha1.PodGang, cliques map[string]*grovev1alpha1.PodClique) map[string]int32 {
	out := map[string]int32{}
	for _, group := range podGang.Spec.PodGroups {
		left := group.MinReplicas
		if clique := cliques[group.Name]; WasScheduled(podGang) && isCurrent(clique, GangAttempt(podGang)) {
			completed := completedOf(&clique.Status)
			left -= int32(completed.CountBelow(group.MinReplicas))
			if left == 0 && completed.CountBelow(clique.Spec.Replicas) < int(clique.Spec.Replicas) {
				left = 1
			}
		}
		if left > 0 {
			out[group.Name] = left
		}
	}
	return out
}

// setScheduled tells whether the gang was scheduled; True is sticky, as the
// scheduler's own condition is.
func setScheduled(status *schedulerv1alpha1.PodGangStatus, counts memberCounts, scheduled bool, why []schedulerv1alpha1.UnschedulableExplanation, generation int64, now time.Time) {
	if meta.IsStatusConditionTrue(status.Conditions, schedulerv1alpha1.PodGangConditionScheduled) {
		return
	}
	value, reason, message := metav1.ConditionTrue, schedulerv1alpha1.ReasonPodGangScheduled, fmt.Sprintf("all %d pods have been placed", counts.need)
	if !scheduled {
		value, reason, message = metav1.ConditionFalse, why[0].Reason, why[0].Message
	}
	setCondition(&status.Conditions, generation, now, schedulerv1alpha1.PodGangConditionScheduled, value, reason, message)
}
