package gang

import (
	"fmt"

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

// eventsOfClique tells of failures and of a breach that status records first.
func eventsOfClique(s CliqueSnapshot, status *grovev1alpha1.PodCliqueStatus) []Event {
	if s.Parent != ParentActive {
		// The pods are told to stop: what becomes of them is no news.
		return nil
	}
	var events []Event
	var failures []string
	for i := range status.FailedIndexes {
		failed := &status.FailedIndexes[i]
		before := failureOf(&s.Clique.Status, failed.Index)
		if before == nil || before.Count != failed.Count || before.PodUID != failed.PodUID || (before.RecoveredTime != nil && failed.RecoveredTime == nil) {
			failures = append(failures, failed.Message)
		}
	}
	if len(failures) > 0 {
		events = append(events, Event{corev1.EventTypeWarning, EventPodFailed, firstOf(failures)})
	}
	breach := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
	if breach == nil || breach.Status != metav1.ConditionTrue || meta.IsStatusConditionTrue(s.Clique.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached) {
		return events
	}
	reason := EventMinAvailableBreached
	if isTraining(s.Clique) {
		reason = EventPodCliqueFailed
	}
	return append(events, Event{corev1.EventTypeWarning, reason, fmt.Sprintf("%s: %s", s.Clique.Name, breach.Message)})
}
