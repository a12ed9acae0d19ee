package gang

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// GroupSnapshot is all that the decision about one scaling group depends on.
type GroupSnapshot struct {
	Group *grovev1alpha1.PodCliqueScalingGroup
	// Cliques are the members that exist, of all copies.
	Cliques []grovev1alpha1.PodClique
	// SetAttempt is the attempt of the set's replica.
	SetAttempt int32
	// Parent is what the set lets its children do.
	Parent Parent
	// TerminationDelay is how long a breach may last; nil when nothing is terminated.
	TerminationDelay *time.Duration
	// Gate is the StartGate of the replica, nil when there is none.
	Gate *grovev1alpha1.StartGate
	// Turn is what the set lets an update of the group do.
	Turn GroupTurn
}

// GroupDecision is what is to be done about one scaling group.
type GroupDecision struct {
	// Status is the next status.
	Status grovev1alpha1.PodCliqueScalingGroupStatus
	// Changed says that Status differs from the status that was read.
	Changed bool
	// Recycled says that Status recycles copies: the set is looked at live before it is written.
	Recycled bool
	// Confirm are cliques because of whose breach Status recycles copies. The breach is
	// looked at live before Status is written.
	Confirm []*grovev1alpha1.PodClique
	// Events tell of what Status records.
	Events []Event
	// Next is when to look again though nothing has happened; zero for never.
	Next time.Time
}

// copyState is what one copy of a scaling group comes to.
type copyState struct {
	index                         int32
	exists, complete              bool
	available, scheduled, wasOnce bool
	// followsTemplate says that all its cliques do.
	followsTemplate bool
	// breached are members that are breached in the copy's attempt, and since when the
	// first of them is.
	breached []*grovev1alpha1.PodClique
	since    metav1.Time
	members  []*grovev1alpha1.PodClique
	// recovering is a copy that was recycled in this attempt of the replica and has not
	// been available since.
	recovering bool
}

// DecideGroup decides about one scaling group. A copy that is breached for longer than
// the delay is recycled alone as long as enough others are left; otherwise the group is
// breached, and its set's replica as a whole is the set's to terminate (seed 001).
func DecideGroup(s GroupSnapshot, now time.Time) GroupDecision {
	status := s.Group.Status.DeepCopy()
	if s.SetAttempt < status.ObservedAttempt {
		// The set that was read is older than what is recorded here.
		return GroupDecision{Status: *status}
	}
	if s.SetAttempt > status.ObservedAttempt {
		status.ObservedAttempt = s.SetAttempt
		setCondition(&status.Conditions, s.Group.Generation, now, grovev1alpha1.ConditionTypeMinAvailableBreached,
			metav1.ConditionFalse, grovev1alpha1.ReasonNeverAvailable, "a new attempt has begun")
	}
	status.ObservedGeneration = ptr.To(s.Group.Generation)
	status.Selector = ptr.To(labels.FirstPodsOfScalingGroup(s.Group.Name))
	copies := observeCopies(s)
	countCopies(copies, status)
	if s.Parent == ParentActive {
		decideGroupUpdate(s, copies, status, now)
	}

	decision := GroupDecision{}
	breached, healthy, need := observeGroupAvailability(s, copies, status, now)
	// In Training each clique's own events say enough.
	if s.Parent == ParentActive && s.Group.Spec.WorkloadType != grovev1alpha1.WorkloadTypeTraining {
		restored := status.ObservedAttempt == s.Group.Status.ObservedAttempt && need > 0 && status.AvailableReplicas >= need
		decision.Events = eventsOfBreach("scaling group "+s.Group.Name, EventMinAvailableBreached, s.Group.Status.Conditions, status.Conditions, restored)
	}
	if healthy >= need && s.Parent == ParentActive && s.TerminationDelay != nil && !isGroupUpdating(status) && s.Group.Spec.WorkloadType != grovev1alpha1.WorkloadTypeTraining {
		recycle(s, breached, status, now, &decision)
	}
	if s.Parent == ParentActive && s.Group.Spec.WorkloadType != grovev1alpha1.WorkloadTypeTraining {
		recycleExpired(s, copies, status, now, &decision)
	}
	decision.Status = *status
	decision.Changed = !apiequality.Semantic.DeepEqual(s.Group.Status, *status)
	return decision
}

func observeCopies(s GroupSnapshot) []copyState {
	members := map[int32][]*grovev1alpha1.PodClique{}
	for i := range s.Cliques {
		clique := &s.Cliques[i]
		if index, ok := labels.ParseIndex(clique.Labels[labels.ScalingGroupReplicaIndex]); ok && clique.DeletionTimestamp == nil && index < s.Group.Spec.Replicas {
			members[index] = append(members[index], clique)
		}
	}
	copies := make([]copyState, 0, s.Group.Spec.Replicas)
	for index := range s.Group.Spec.Replicas {
		copies = append(copies, observeCopy(s, index, members[index]))
	}
	return copies
}

func observeCopy(s GroupSnapshot, index int32, members []*grovev1alpha1.PodClique) copyState {
	state := copyState{index: index, members: members, exists: len(members) > 0, complete: len(members) >= len(s.Group.Spec.CliqueNames)}
	state.available, state.scheduled, state.wasOnce = state.complete, state.complete, state.complete
	state.followsTemplate = true
	attempt := s.SetAttempt + CopyAttempt(s.Group, index)
	for _, clique := range members {
		current := isIn(clique, attempt)
		state.available = state.available && current && IsAvailable(clique)
		state.scheduled = state.scheduled && current && IsScheduled(clique)
		state.followsTemplate = state.followsTemplate && followsTemplate(clique, s.Turn.TemplateHashes[clique.Name])
		state.wasOnce = state.wasOnce && current && (clique.Status.WasAvailable || clique.Spec.Replicas == 0)
		if breach := breachOf(clique); current && breach != nil {
			if len(state.breached) == 0 || breach.LastTransitionTime.Before(&state.since) {
				state.since = breach.LastTransitionTime
			}
			state.breached = append(state.breached, clique)
		}
	}
	state.recovering = recycledSince(s.Group, index, s.SetAttempt) != nil && !state.wasOnce
	return state
}

func countCopies(copies []copyState, status *grovev1alpha1.PodCliqueScalingGroupStatus) {
	status.Replicas, status.AvailableReplicas, status.ScheduledReplicas, status.UpdatedReplicas = 0, 0, 0, 0
	for i := range copies {
		state := &copies[i]
		if state.exists {
			status.Replicas++
		}
		if state.available {
			status.AvailableReplicas++
		}
		if state.scheduled {
			status.ScheduledReplicas++
		}
		if state.available && state.followsTemplate {
			status.UpdatedReplicas++
		}
	}
}

// observeGroupAvailability sets MinAvailableBreached: too few copies are left when those
// are taken away that are breached, or still recover from having been recycled. A copy
// that has not been available yet is not counted as lost.
func observeGroupAvailability(s GroupSnapshot, copies []copyState, status *grovev1alpha1.PodCliqueScalingGroupStatus, now time.Time) (breached []copyState, healthy, need int32) {
	need = min(ptr.Deref(s.Group.Spec.MinAvailable, 1), s.Group.Spec.Replicas)
	healthy = s.Group.Spec.Replicas
	recovering := 0
	for _, state := range copies {
		switch {
		case len(state.breached) > 0:
			breached = append(breached, state)
			healthy--
		case state.recovering:
			recovering++
			healthy--
		}
	}
	value, reason := metav1.ConditionFalse, grovev1alpha1.ReasonSufficientAvailableReplicas
	switch {
	case status.AvailableReplicas >= need:
	case healthy >= need || len(breached) == 0:
		if !slices.ContainsFunc(copies, func(c copyState) bool { return c.wasOnce }) {
			reason = grovev1alpha1.ReasonNeverAvailable
		}
	case isGroupUpdating(status):
		value, reason = metav1.ConditionUnknown, grovev1alpha1.ReasonUpdateInProgress
	default:
		value, reason = metav1.ConditionTrue, grovev1alpha1.ReasonInsufficientAvailableReplicas
	}
	message := fmt.Sprintf("%d of %d copies are available, at least %d are needed", status.AvailableReplicas, s.Group.Spec.Replicas, need)
	if len(breached)+recovering > 0 {
		message += fmt.Sprintf(": %d breached, %d recovering", len(breached), recovering)
	}
	setCondition(&status.Conditions, s.Group.Generation, now, grovev1alpha1.ConditionTypeMinAvailableBreached, value, reason, message)
	return breached, healthy, need
}

// recycle raises the attempts of copies whose breach has lasted for the delay.
func recycle(s GroupSnapshot, breached []copyState, status *grovev1alpha1.PodCliqueScalingGroupStatus, now time.Time, decision *GroupDecision) {
	for _, state := range breached {
		if due := deadline(state.since, *s.TerminationDelay); due.After(now) {
			decision.Next = earliest(decision.Next, due)
			continue
		}
		attempt := CopyAttempt(s.Group, state.index) + 1
		cause := describeBreach(state.breached[0], state.since, now)
		setCopyAttempt(status, grovev1alpha1.ScalingGroupReplicaAttempt{Index: state.index, Attempt: attempt, SetAttempt: s.SetAttempt, Message: cause})
		decision.Recycled = true
		decision.Confirm = append(decision.Confirm, state.breached...)
		decision.Events = append(decision.Events, Event{corev1.EventTypeWarning, EventReplicaTerminated,
			fmt.Sprintf("copy %d of scaling group %s is made anew (attempt %d): %s", state.index, s.Group.Name, attempt, cause)})
	}
}

// recycleExpired raises the attempts of copies whose start barrier has expired: of those
// that are gangs of their own, whatever the delay is (D21). The others are their replica's.
func recycleExpired(s GroupSnapshot, copies []copyState, status *grovev1alpha1.PodCliqueScalingGroupStatus, now time.Time, decision *GroupDecision) {
	for _, state := range copies {
		attempt := CopyAttempt(s.Group, state.index)
		if state.index < ptr.Deref(s.Group.Spec.MinAvailable, 1) || CopyAttempt(&grovev1alpha1.PodCliqueScalingGroup{Status: *status}, state.index) > attempt {
			continue
		}
		for _, clique := range state.members {
			entry := expiredEntry(s.Gate, clique.Name, s.SetAttempt+attempt)
			if entry == nil {
				continue
			}
			if due := deadline(*entry.Since, backoff(attempt+1)); due.After(now) {
				decision.Next = earliest(decision.Next, due)
				break
			}
			cause := clique.Name + ": the start barrier has expired: " + entry.Message
			setCopyAttempt(status, grovev1alpha1.ScalingGroupReplicaAttempt{Index: state.index, Attempt: attempt + 1, SetAttempt: s.SetAttempt, Message: cause})
			decision.Recycled = true
			decision.Events = append(decision.Events, Event{corev1.EventTypeWarning, EventReplicaTerminated,
				fmt.Sprintf("copy %d of scaling group %s is made anew (attempt %d): %s", state.index, s.Group.Name, attempt+1, cause)})
			break
		}
	}
}

func setCopyAttempt(status *grovev1alpha1.PodCliqueScalingGroupStatus, entry grovev1alpha1.ScalingGroupReplicaAttempt) {
	for i := range status.ReplicaAttempts {
		if status.ReplicaAttempts[i].Index == entry.Index {
			status.ReplicaAttempts[i] = entry
			return
		}
	}
	status.ReplicaAttempts = append(status.ReplicaAttempts, entry)
}

// isIn says that a clique, and what its status tells, are in an attempt.
func isIn(clique *grovev1alpha1.PodClique, attempt int32) bool {
	return clique.Spec.Attempt == attempt && clique.Status.ObservedAttempt == attempt
}

// breachOf is the condition of a clique that is breached, else nil.
func breachOf(clique *grovev1alpha1.PodClique) *metav1.Condition {
	breach := meta.FindStatusCondition(clique.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
	if breach == nil || breach.Status != metav1.ConditionTrue {
		return nil
	}
	return breach
}

// describeBreach tells of the breach of a clique and how long it has lasted.
func describeBreach(clique *grovev1alpha1.PodClique, since metav1.Time, now time.Time) string {
	return clique.Name + ": " + breachOf(clique).Message + lasted(since, now)
}

// lasted says for how long something has been so; nothing below a second.
func lasted(since metav1.Time, now time.Time) string {
	if d := now.Sub(since.Time).Truncate(time.Second); d > 0 {
		return fmt.Sprintf(", for %s", d)
	}
	return ""
}

// copyOf is the scaling group and copy that a clique is a member of; the name is empty
// for a standalone clique.
func copyOf(clique *grovev1alpha1.PodClique) (group string, index int32) {
	index, ok := labels.ParseIndex(clique.Labels[labels.ScalingGroupReplicaIndex])
	if !ok {
		return "", 0
	}
	return clique.Labels[labels.ScalingGroup], index
}

// recycledSince is the last recycling of a copy since its replica began an attempt, nil when
// there was none. group may be nil.
func recycledSince(group *grovev1alpha1.PodCliqueScalingGroup, index, setAttempt int32) *grovev1alpha1.ScalingGroupReplicaAttempt {
	if group == nil {
		return nil
	}
	for i := range group.Status.ReplicaAttempts {
		entry := &group.Status.ReplicaAttempts[i]
		if entry.Index == index && entry.Attempt > 0 && entry.SetAttempt == setAttempt {
			return entry
		}
	}
	return nil
}
