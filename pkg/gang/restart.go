package gang

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
)

// replicaBreach is why the attempt of a replica ends.
type replicaBreach struct {
	// due is when it ends.
	due time.Time
	// cliques are those whose breach it is.
	cliques []*grovev1alpha1.PodClique
	message string
}

// decideAttempts ends attempts: by maxRuntime, by a restart, or, when the budget does not
// hold it, for good (D5-D7, seed 000 and 001). It changes the replicas that restart.
func decideAttempts(s SetSnapshot, replicas []replicaState, status *grovev1alpha1.PodCliqueSetStatus, now time.Time) SetDecision {
	var decision SetDecision
	runtime := RuntimeDeadline(s.Set)
	if !runtime.IsZero() {
		if !now.Before(runtime) {
			if s.FinishedAt.IsZero() || !s.FinishedAt.Before(runtime) {
				message := fmt.Sprintf("the workload has run for longer than maxRuntime, %s, since %s",
					s.Set.Spec.TrainingSpec.MaxRuntime.Duration, status.StartTime.UTC().Format(time.RFC3339))
				decision.Events = fail(s, status, grovev1alpha1.ReasonMaxRuntimeExceeded, message, now)
				decision.Due = runtime
				return decision
			}
		} else {
			decision.Next = runtime
		}
	}
	due := map[int32]replicaBreach{}
	for i := range replicas {
		breach := breachOfReplica(s, &replicas[i], now)
		switch {
		case breach == nil:
		case breach.due.After(now):
			decision.Next = earliest(decision.Next, breach.due)
		default:
			due[replicas[i].index] = *breach
			decision.Due = earliest(decision.Due, breach.due)
			decision.Confirm = append(decision.Confirm, breach.cliques...)
		}
	}
	if len(due) == 0 {
		return decision
	}
	if s.Set.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining {
		budget := maxRestarts(s.Set)
		if left := max(budget-status.RestartCount, 0); int32(len(due)) > left {
			decision.Events = fail(s, status, grovev1alpha1.ReasonMaxRestartsExceeded,
				fmt.Sprintf("%s; %s", usedUp(left, budget, len(due)), causesOfReplicas(replicas, due)), now)
			return decision
		}
	}
	for i := range replicas {
		if breach, ok := due[replicas[i].index]; ok {
			decision.Events = append(decision.Events, restart(s, &replicas[i], breach, status))
		}
	}
	return decision
}

// usedUp says how many restarts are left for those that are needed.
func usedUp(left, budget int32, needed int) string {
	if budget == 0 {
		return "no restart is allowed"
	}
	if needed == 1 {
		return fmt.Sprintf("all %d restarts have been used", budget)
	}
	return fmt.Sprintf("%d replicas have failed and %d of %d restarts are left", needed, left, budget)
}

func maxRestarts(pcs *grovev1alpha1.PodCliqueSet) int32 {
	if pcs.Spec.TrainingSpec == nil {
		return 0
	}
	return ptr.Deref(pcs.Spec.TrainingSpec.MaxRestarts, 0)
}

// fail records the decision to fail. Pods are terminated after it, and Failed is set when
// none is left (D4).
func fail(s SetSnapshot, status *grovev1alpha1.PodCliqueSetStatus, reason, message string, now time.Time) []Event {
	setCondition(&status.Conditions, s.Set.Generation, now, grovev1alpha1.ConditionTypeFailureTarget, metav1.ConditionTrue, reason, message)
	return []Event{{corev1.EventTypeWarning, reason, message + ": all active pods are terminated"}}
}

// restart raises the attempt of a replica: its pods go, and are made again when the last
// is gone.
func restart(s SetSnapshot, replica *replicaState, breach replicaBreach, status *grovev1alpha1.PodCliqueSetStatus) Event {
	replica.raise(breach.message)
	if s.Set.Spec.WorkloadType != grovev1alpha1.WorkloadTypeTraining {
		return Event{corev1.EventTypeWarning, EventReplicaTerminated, fmt.Sprintf("replica %d is made anew (attempt %d): %s", replica.index, replica.attempt, breach.message)}
	}
	status.RestartCount++
	replica.restartCause = fmt.Sprintf("restart %d of %d: %s", status.RestartCount, maxRestarts(s.Set), breach.message)
	return Event{corev1.EventTypeNormal, EventReplicaRestarting, fmt.Sprintf("replica %d, %s", replica.index, replica.restartCause)}
}

// raise begins another attempt of a replica, of which nothing exists yet.
func (r *replicaState) raise(cause string) {
	r.attempt++
	r.restartCause = cause
	r.running, r.available, r.succeeded, r.ready = false, false, false, 0
}

func causesOfReplicas(replicas []replicaState, due map[int32]replicaBreach) string {
	var causes []string
	for i := range replicas {
		if breach, ok := due[replicas[i].index]; ok {
			causes = append(causes, fmt.Sprintf("replica %d: %s", replicas[i].index, breach.message))
		}
	}
	return firstOf(causes)
}

// breachOfReplica is the first reason to end a replica's attempt, or nil. In Training any
// clique's is one; in Inference members of scaling groups count by their group's (D6).
func breachOfReplica(s SetSnapshot, replica *replicaState, now time.Time) *replicaBreach {
	var first *replicaBreach
	consider := func(candidate *replicaBreach) {
		if candidate != nil && (first == nil || candidate.due.Before(first.due)) {
			first = candidate
		}
	}
	training := s.Set.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining
	for _, clique := range replica.cliques {
		if training || clique.Gang == clique.BaseGang {
			consider(expiryOf(s, replica, clique))
		}
		if !training && clique.Group != nil {
			continue
		}
		if clique.object != nil && clique.object.DeletionTimestamp == nil && isIn(clique.object, replica.attempt+CopyAttempt(s.Groups[clique.GroupName], clique.Copy)) {
			consider(breachOfClique(clique.object, terminationDelay(s.Set, clique.Group), now))
		}
	}
	if training {
		return first
	}
	for i := range s.Set.Spec.Template.PodCliqueScalingGroups {
		consider(breachOfGroup(s, replica, &s.Set.Spec.Template.PodCliqueScalingGroups[i], now))
	}
	return first
}

// expiryOf reads whether the start barrier of a clique has expired in this attempt: that
// ends it, whatever the delay is (D21). In Inference the next attempt waits longer each time.
func expiryOf(s SetSnapshot, replica *replicaState, clique cliqueState) *replicaBreach {
	entry := expiredEntry(s.Gates[naming.Replica(s.Set.Name, replica.index)], clique.Name, replica.attempt+clique.copyAttempt)
	if entry == nil {
		return nil
	}
	out := &replicaBreach{due: entry.Since.Time, message: "the start barrier of " + clique.Gang + " has expired: " + entry.Message}
	if s.Set.Spec.WorkloadType != grovev1alpha1.WorkloadTypeTraining {
		out.due = deadline(*entry.Since, backoff(replica.attempt+1))
	}
	return out
}

func breachOfClique(clique *grovev1alpha1.PodClique, delay *time.Duration, now time.Time) *replicaBreach {
	if failed := ExhaustedIndex(clique); failed != nil {
		return &replicaBreach{due: failed.LastTime.Time, cliques: []*grovev1alpha1.PodClique{clique},
			message: fmt.Sprintf("%s: index %d has failed %d times, the last time: %s", clique.Name, failed.Index, failed.Count, tellFailure(failed))}
	}
	breach := breachOf(clique)
	if breach == nil || delay == nil {
		return nil
	}
	return &replicaBreach{due: deadline(breach.LastTransitionTime, *delay), cliques: []*grovev1alpha1.PodClique{clique},
		message: describeBreach(clique, breach.LastTransitionTime, now)}
}

// breachOfGroup reads what the scaling group says of this attempt of the replica.
func breachOfGroup(s SetSnapshot, replica *replicaState, config *grovev1alpha1.PodCliqueScalingGroupConfig, now time.Time) *replicaBreach {
	delay := terminationDelay(s.Set, config)
	group := s.groupObject(replica.index, config)
	if delay == nil || group == nil || group.DeletionTimestamp != nil || group.Status.ObservedAttempt != replica.attempt {
		return nil
	}
	condition := meta.FindStatusCondition(group.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	out := &replicaBreach{due: deadline(condition.LastTransitionTime, *delay), message: fmt.Sprintf("scaling group %s: %s", group.Name, condition.Message)}
	for _, clique := range replica.cliques {
		if clique.GroupName == group.Name && clique.object != nil && clique.object.DeletionTimestamp == nil && breachOf(clique.object) != nil && isIn(clique.object, replica.attempt+CopyAttempt(group, clique.Copy)) {
			out.cliques = append(out.cliques, clique.object)
		}
	}
	if len(out.cliques) == 0 {
		// The group speaks of members that have recovered: its next status says so.
		return nil
	}
	out.message += lasted(condition.LastTransitionTime, now) + "; " + describeBreach(out.cliques[0], breachOf(out.cliques[0]).LastTransitionTime, now)
	return out
}

// setRestarting tells that replicas, or copies of scaling groups, were restarted, why, and
// whether they are available again.
func setRestarting(s SetSnapshot, replicas []replicaState, status *grovev1alpha1.PodCliqueSetStatus, now time.Time) {
	before := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeRestarting)
	restarting := before != nil && before.Status == metav1.ConditionTrue
	var causes []string
	recycled, pending := "", false
	for i := range replicas {
		replica := &replicas[i]
		if replica.restartCause != "" {
			causes = append(causes, fmt.Sprintf("replica %d, %s", replica.index, replica.restartCause))
		}
		if recycled == "" {
			recycled = replica.recycled
		}
		pending = pending || (replica.attempt > 0 && !replica.available && !replica.succeeded)
	}
	set := func(value metav1.ConditionStatus, reason, message string) {
		setCondition(&status.Conditions, s.Set.Generation, now, grovev1alpha1.ConditionTypeRestarting, value, reason, message)
	}
	switch {
	case isFinished(status) || isFailing(status):
		if restarting {
			set(metav1.ConditionFalse, grovev1alpha1.ReasonWorkloadEnded, before.Message)
		}
	case len(causes) > 0:
		set(metav1.ConditionTrue, grovev1alpha1.ReasonReplicaRestarting, firstOf(causes))
	case recycled != "" && !restarting:
		set(metav1.ConditionTrue, grovev1alpha1.ReasonReplicaRestarting, recycled)
	case recycled == "" && restarting && !pending:
		set(metav1.ConditionFalse, grovev1alpha1.ReasonReplicaRestarted, before.Message)
	}
}
