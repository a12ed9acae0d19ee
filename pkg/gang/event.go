package gang

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// Event is told once the write that it reports has been accepted.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason in one word, and Message for people.
	Reason, Message string
}

// Reasons of events. Those of seed 000 have its names.
const (
	// EventPodCliqueFailed: a clique in Training has fallen below its minimum.
	EventPodCliqueFailed = "PodCliqueFailed"
	// EventMinAvailableBreached: a clique in Inference has.
	EventMinAvailableBreached = "MinAvailableBreached"
	// EventPodFailed: pods failed, or were lost, that are replaced or end the attempt.
	EventPodFailed = "PodFailed"
	// EventPodRecovered: indexes that had failed are Ready again, in the same attempt.
	EventPodRecovered = "PodRecovered"
	// EventMinAvailableRestored: a clique or scaling group has its minimum again, in the same
	// attempt.
	EventMinAvailableRestored = "MinAvailableRestored"
	// EventPodsStuckTerminating: pods outlive their grace period.
	EventPodsStuckTerminating = "PodsStuckTerminating"
	// EventPodForceDeleted: a pod of a node that runs nothing any more has been removed.
	EventPodForceDeleted = "PodForceDeleted"
	// EventStrayPodDeleted: a pod that is a copy of another, or whose labels somebody has
	// changed, has been removed.
	EventStrayPodDeleted = "StrayPodDeleted"
	// EventReplicaRestarting: a restart of a replica has been recorded, in Training.
	EventReplicaRestarting = "ReplicaRestarting"
	// EventReplicaTerminated: gang termination of a replica, or of a copy of a scaling
	// group, has been recorded, in Inference.
	EventReplicaTerminated = "ReplicaTerminated"
	// EventReplicaRenewed: an update makes a replica anew as a whole.
	EventReplicaRenewed = "ReplicaRenewed"
	// EventUpdateStarted and EventUpdateCompleted: pods are brought to a new template, and all
	// follow it.
	EventUpdateStarted   = "UpdateStarted"
	EventUpdateCompleted = "UpdateCompleted"
	// EventMaxRestartsExceeded: more restarts are needed than are left.
	EventMaxRestartsExceeded = "MaxRestartsExceeded"
	// EventMaxRuntimeExceeded: the workload has run for too long.
	EventMaxRuntimeExceeded = "MaxRuntimeExceeded"
	// EventStartBarrierExpired: not all pods of a gang have started in time.
	EventStartBarrierExpired = "StartBarrierExpired"
	// EventStageOpened: a clique of a set with startupPolicy InOrder starts.
	EventStageOpened = "StageOpened"
	// EventWorkloadSucceeded and EventWorkloadFailed: the workload has ended.
	EventWorkloadSucceeded = "WorkloadSucceeded"
	EventWorkloadFailed    = "WorkloadFailed"
)

// eventsOfClique tells of what status records first: failures and breaches, that they are
// over, and pods that do not go.
func eventsOfClique(s CliqueSnapshot, status *grovev1alpha1.PodCliqueStatus) []Event {
	var events []Event
	const stuck = grovev1alpha1.ConditionTypePodsStuckTerminating
	if after := meta.FindStatusCondition(status.Conditions, stuck); after != nil && !meta.IsStatusConditionTrue(s.Clique.Status.Conditions, stuck) {
		events = append(events, Event{corev1.EventTypeWarning, EventPodsStuckTerminating, s.Clique.Name + ": " + after.Message})
	}
	if s.Parent != ParentActive || s.Clique.DeletionTimestamp != nil {
		// The pods are told to stop: what becomes of them is no news, unless they do not.
		return events
	}
	var failures, recoveries []string
	for i := range status.FailedIndexes {
		failed := &status.FailedIndexes[i]
		before := failureOf(&s.Clique.Status, failed.Index)
		switch {
		case before == nil || before.Count != failed.Count || before.PodUID != failed.PodUID || (before.RecoveredTime != nil && failed.RecoveredTime == nil):
			failures = append(failures, tellFailure(failed))
		case before.RecoveredTime == nil && failed.RecoveredTime != nil:
			recoveries = append(recoveries, fmt.Sprintf("index %d is Ready again, %s after: %s", failed.Index, wholeSeconds(failed.LastTime, *failed.RecoveredTime), tellFailure(failed)))
		}
	}
	if len(failures) > 0 {
		events = append(events, Event{corev1.EventTypeWarning, EventPodFailed, firstOf(failures)})
	}
	if len(recoveries) > 0 {
		events = append(events, Event{corev1.EventTypeNormal, EventPodRecovered, s.Clique.Name + ": " + firstOf(recoveries)})
	}
	begins := EventMinAvailableBreached
	if isTraining(s.Clique) {
		begins = EventPodCliqueFailed
	}
	need := effectiveMinAvailable(&s.Clique.Spec)
	restored := status.ObservedAttempt == s.Clique.Status.ObservedAttempt && need > 0 && available(s.Clique, status) >= need
	return append(events, eventsOfBreach(s.Clique.Name, begins, s.Clique.Status.Conditions, status.Conditions, restored)...)
}

// eventsOfBreach tells that a breach of a clique or scaling group begins or, if it is restored,
// that one has ended. A breach that a new attempt ends is told by what began that.
func eventsOfBreach(name, begins string, before, after []metav1.Condition, restored bool) []Event {
	was, is := meta.FindStatusCondition(before, grovev1alpha1.ConditionTypeMinAvailableBreached), meta.FindStatusCondition(after, grovev1alpha1.ConditionTypeMinAvailableBreached)
	wasBreached := was != nil && was.Status == metav1.ConditionTrue
	switch {
	case is == nil:
	case is.Status == metav1.ConditionTrue && !wasBreached:
		return []Event{{corev1.EventTypeWarning, begins, name + ": " + is.Message}}
	case is.Status == metav1.ConditionFalse && wasBreached && restored:
		return []Event{{corev1.EventTypeNormal, EventMinAvailableRestored,
			fmt.Sprintf("%s: %s, after a breach of %s", name, is.Message, wholeSeconds(was.LastTransitionTime, is.LastTransitionTime))}}
	}
	return nil
}

// wholeSeconds is the time between two recorded moments, as precise as objects keep them.
func wholeSeconds(from, to metav1.Time) time.Duration {
	return to.Truncate(time.Second).Sub(from.Truncate(time.Second))
}
