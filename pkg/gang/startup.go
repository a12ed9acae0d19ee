package gang

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// The stages of startupPolicy InOrder (seed 003, D20). A stage is a clique of the template,
// with its copies in scaling groups. What has been opened in an attempt of a replica is on
// record in the status of the set, and is acted on by whoever makes the stage's gang: no
// pod is made before its gang is there.

// IsStaged says that the cliques of a set start one after the other.
func IsStaged(pcs *grovev1alpha1.PodCliqueSet) bool {
	policy := pcs.Spec.StartupPolicy
	return policy != nil && policy.StartupPolicyOrder == grovev1alpha1.StartupPolicyInOrder
}

// IsStageOpen says that a clique of the template may start in the present attempt of a
// replica. The first one always may.
func IsStageOpen(pcs *grovev1alpha1.PodCliqueSet, replica int32, clique string) bool {
	if !IsStaged(pcs) || pcs.Spec.Template.Cliques[0].Name == clique {
		return true
	}
	return slices.Contains(recordedStages(pcs, replica, ReplicaAttempt(pcs, replica)), clique)
}

// HaveSameStages says that the same stages are open in the replicas of a set before and
// after a change.
func HaveSameStages(before, after *grovev1alpha1.PodCliqueSet) bool {
	open := func(pcs *grovev1alpha1.PodCliqueSet) map[int32][]string {
		out := map[int32][]string{}
		for i := range pcs.Status.ReplicaStatuses {
			if replica := &pcs.Status.ReplicaStatuses[i]; len(replica.OpenStages) > 0 {
				out[replica.Index] = replica.OpenStages
			}
		}
		return out
	}
	return maps.EqualFunc(open(before), open(after), slices.Equal[[]string])
}

// HasAll says which of the statuses that another clique can wait for a PodClique has
// reached with all its pods: none, Ready, or Succeeded.
func HasAll(clique *grovev1alpha1.PodClique) grovev1alpha1.CliqueStatus {
	for _, rule := range []grovev1alpha1.CliqueStatus{grovev1alpha1.CliqueStatusSucceeded, grovev1alpha1.CliqueStatusReady} {
		if have, want := progress(rule, clique); have >= want && clique.Status.ObservedAttempt == clique.Spec.Attempt && isUpToDate(clique) {
			return rule
		}
	}
	return ""
}

// HasReached says that a PodClique has come to where cliques after it may start: every pod
// has, and there is one. Its status has to be that of the attempt.
func HasReached(pcs *grovev1alpha1.PodCliqueSet, template string, clique *grovev1alpha1.PodClique, attempt int32) bool {
	if !isCurrent(clique, attempt) || !isUpToDate(clique) {
		return false
	}
	have, want := progress(ruleOf(pcs, template), clique)
	return want > 0 && have >= want
}

// IsCopyHeld says that a member of a scaling group waits for members of its own copy, whose
// stages come before: a copy that comes later, or is made anew, replays the order by
// itself (D20). members are the PodCliques of the copy, by the clique of the template, and
// attempt is the copy's.
func IsCopyHeld(pcs *grovev1alpha1.PodCliqueSet, clique string, members map[string]*grovev1alpha1.PodClique, attempt int32) bool {
	if own := members[clique]; !IsStaged(pcs) || (isCurrent(own, attempt) && (own.Status.Replicas > 0 || own.Status.CreatedReplicas > 0)) {
		// What has begun is not held back again.
		return false
	}
	for i := range pcs.Spec.Template.Cliques {
		name := pcs.Spec.Template.Cliques[i].Name
		if name == clique {
			return false
		}
		if member, ok := members[name]; ok && !HasReached(pcs, name, member, attempt) {
			return true
		}
	}
	return false
}

// ruleOf is the status that the cliques after one wait for.
func ruleOf(pcs *grovev1alpha1.PodCliqueSet, clique string) grovev1alpha1.CliqueStatus {
	if pcs.Spec.StartupPolicy != nil {
		for _, rule := range pcs.Spec.StartupPolicy.Rules {
			if slices.Contains(rule.TargetCliques, clique) && rule.WaitForCliquesStatus != "" {
				return rule.WaitForCliquesStatus
			}
		}
	}
	return grovev1alpha1.CliqueStatusReady
}

// progress is how many pods of a clique have reached a status, of how many.
func progress(rule grovev1alpha1.CliqueStatus, clique *grovev1alpha1.PodClique) (have, want int32) {
	want = clique.Spec.Replicas
	switch {
	case rule != grovev1alpha1.CliqueStatusSucceeded:
		return min(Available(clique), want), want
	case meta.IsStatusConditionTrue(clique.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded):
		return want, want
	}
	return min(int32(completedOf(&clique.Status).Len()), want), want
}

// recordedStages are the stages that the status of a set says are open in an attempt of a
// replica.
func recordedStages(pcs *grovev1alpha1.PodCliqueSet, replica, attempt int32) []string {
	for i := range pcs.Status.ReplicaStatuses {
		if before := &pcs.Status.ReplicaStatuses[i]; before.Index == replica && before.Attempt == attempt {
			return before.OpenStages
		}
	}
	return nil
}

// openStages are the stages that are open in the replica's attempt: those on record, which
// stay so, and the next when every clique before it has reached its status. waiting says
// what the next one waits for, nil when all are open.
func openStages(s SetSnapshot, replica replicaState) (open []string, waiting *grovev1alpha1.WaitingFor) {
	recorded := recordedStages(s.Set, replica.index, replica.attempt)
	if !IsStaged(s.Set) {
		return recorded, nil
	}
	cliques := s.Set.Spec.Template.Cliques
	for i := range cliques {
		open = append(open, cliques[i].Name)
		if i == len(cliques)-1 || slices.Contains(recorded, cliques[i+1].Name) {
			continue
		}
		waiting = stageProgress(s.Set, replica, cliques[i].Name)
		if isFailing(&s.Set.Status) || waiting.Want == 0 || waiting.Have < waiting.Want {
			return open, waiting
		}
	}
	return open, nil
}

// stageProgress is how far a stage is, in all its PodCliques.
func stageProgress(pcs *grovev1alpha1.PodCliqueSet, replica replicaState, stage string) *grovev1alpha1.WaitingFor {
	rule := ruleOf(pcs, stage)
	out := &grovev1alpha1.WaitingFor{Clique: stage, Status: string(rule)}
	for _, clique := range replica.cliques {
		if clique.Template.Name != stage {
			continue
		}
		if !isCurrent(clique.object, replica.attempt+clique.copyAttempt) || clique.object.DeletionTimestamp != nil {
			out.Want += max(clique.Template.Spec.Replicas, 1)
			continue
		}
		if !isUpToDate(clique.object) {
			out.Want += max(clique.object.Spec.Replicas, 1)
			continue
		}
		have, want := progress(rule, clique.object)
		out.Have += have
		out.Want += want
	}
	return out
}

// setStartup tells how far the order of a staged set is. Completed stays so until a replica
// begins anew.
func setStartup(s SetSnapshot, replicas []replicaState, status *grovev1alpha1.PodCliqueSetStatus, now time.Time) []Event {
	if !IsStaged(s.Set) {
		return nil
	}
	const inProgress, completed = grovev1alpha1.ConditionTypeStartupPolicyInProgress, grovev1alpha1.ConditionTypeStartupPolicyCompleted
	set := func(conditionType string, value metav1.ConditionStatus, reason, message string) {
		setCondition(&status.Conditions, s.Set.Generation, now, conditionType, value, reason, message)
	}
	if isFailing(status) {
		set(inProgress, metav1.ConditionFalse, grovev1alpha1.ReasonPodCliqueSetFailing, "the workload has failed: no clique starts any more")
		return nil
	}
	last := s.Set.Spec.Template.Cliques[len(s.Set.Spec.Template.Cliques)-1].Name
	done, events := 0, []Event(nil)
	for _, replica := range replicas {
		open, _ := openStages(s, replica)
		events = append(events, eventsOfStages(s, replica, open)...)
		reached := stageProgress(s.Set, replica, last)
		if slices.Contains(open, last) && (meta.IsStatusConditionTrue(s.Set.Status.Conditions, completed) || (reached.Want > 0 && reached.Have >= reached.Want)) {
			done++
		}
	}
	if done == len(replicas) {
		set(inProgress, metav1.ConditionFalse, grovev1alpha1.ReasonInOrderStartupPolicyCompleted, "every clique has started")
		set(completed, metav1.ConditionTrue, grovev1alpha1.ReasonInOrderStartupPolicyCompleted, "every clique has started")
		return events
	}
	message := fmt.Sprintf("in %d of %d replicas every clique has started", done, len(replicas))
	set(completed, metav1.ConditionFalse, grovev1alpha1.ReasonInOrderStartupPolicyInProgress, message)
	set(inProgress, metav1.ConditionTrue, grovev1alpha1.ReasonInOrderStartupPolicyInProgress, message)
	return events
}

// eventsOfStages tell of stages that are opened now.
func eventsOfStages(s SetSnapshot, replica replicaState, open []string) []Event {
	recorded := recordedStages(s.Set, replica.index, replica.attempt)
	var events []Event
	for i := 1; i < len(open); i++ {
		if slices.Contains(recorded, open[i]) {
			continue
		}
		reached := stageProgress(s.Set, replica, open[i-1])
		events = append(events, Event{corev1.EventTypeNormal, EventStageOpened,
			fmt.Sprintf("replica %d: clique %s starts, since %s is %s (%d/%d)", replica.index, open[i], open[i-1], reached.Status, reached.Have, reached.Want)})
	}
	return events
}
