package gang

import (
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// Parent is what the PodCliqueSet of a clique lets it do.
type Parent string

const (
	// ParentActive lets the clique run its pods.
	ParentActive Parent = "Active"
	// ParentFailing has recorded that it fails: active pods go, nothing is made.
	ParentFailing Parent = "Failing"
	// ParentFinished has succeeded: nothing is made.
	ParentFinished Parent = "Finished"
	// ParentDeleting goes away: nothing is made, and the clique's own deletion follows
	// unless it is orphaned.
	ParentDeleting Parent = "Deleting"
)

// ParentOf reads what a set lets its cliques do.
func ParentOf(pcs *grovev1alpha1.PodCliqueSet) Parent {
	switch {
	case pcs.DeletionTimestamp != nil:
		return ParentDeleting
	case meta.IsStatusConditionTrue(pcs.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget):
		return ParentFailing
	case pcs.Status.Phase == grovev1alpha1.PodCliqueSetSucceeded:
		return ParentFinished
	}
	return ParentActive
}

// Membership says how a clique's pods are scheduled together.
type Membership struct {
	// Known is false while the clique's PodGang has not been seen: its members are not
	// made before, because a pod joins a gang only at its creation.
	Known bool
	// Scheduled says that the clique's own gang was scheduled once in this attempt.
	Scheduled bool
	// BaseScheduled says so of the base gang; true for members of the base gang itself.
	BaseScheduled bool
}

// CliqueSnapshot is all that the decision about one clique depends on.
type CliqueSnapshot struct {
	Clique     *grovev1alpha1.PodClique
	Parent     Parent
	Membership Membership
	// Pods are the pods that the clique controls.
	Pods []Pod
	// Lost are indexes of which a live read found no pod.
	Lost []int32
	// OthersDrained says that no pod of an earlier attempt is left in the other cliques
	// that restart together with this one: see Drained.
	OthersDrained bool
	// TerminationDelay is how long a breach may last before the attempt ends; nil when
	// nothing ends it.
	TerminationDelay *time.Duration
	// Turn is what the levels above let an update of the clique do.
	Turn CliqueTurn
	// DeadNodes are nodes that are gone, or that somebody has declared to be out of
	// service, each with what is known of it: no container on them runs any more.
	DeadNodes map[string]string
	// NextDeadNode is when another node that pods should have left counts as one of them;
	// zero for never.
	NextDeadNode time.Time
}

// CliqueDecision is what is to be done about one clique.
type CliqueDecision struct {
	// Status is the next status.
	Status grovev1alpha1.PodCliqueStatus
	// Changed says that Status differs from the status that was read.
	Changed bool
	// Urgent says that Status holds more than other counts, so it is written at once.
	Urgent bool
	// Record says that Status holds a decision: it is written, and nothing is done
	// before a later pass has read it back (D4). Create and Delete are empty.
	Record bool
	// Create are the indexes of pods to make.
	Create []int32
	// Delete are pods to delete, by UID.
	Delete []Pod
	// ForceDelete are terminating pods of dead nodes, which nobody else will remove.
	ForceDelete []Pod
	// Events tell of what Status records.
	Events []Event
	// Next is when to look again though nothing has happened; zero for never.
	Next time.Time
}

// DecideClique decides about one clique.
func DecideClique(s CliqueSnapshot, now time.Time) CliqueDecision {
	if isStale(s) {
		return CliqueDecision{Status: s.Clique.Status}
	}
	status := s.Clique.Status.DeepCopy()
	before := &s.Clique.Status
	record := startAttempt(s.Clique, status, now)
	pods := splitPods(s)

	completed := completedOf(status)
	if !record {
		// The write that starts an attempt holds nothing that pods of it have come to: what
		// such a write told could be of an earlier attempt, and the API server refuses it.
		completed = observeCompletion(s, pods.current, status)
		record = observeFailures(s, pods.current, completed, status, now)
		record = observeRecovery(pods.current, status, now) || record
		record = observeCreation(s, pods.current, completed, status) || record
	}
	count(s, pods, status)
	record = observeUpdate(s, pods, status, now) || record
	observeAvailability(s, pods.current, completed, status, now)
	record = observeSuccess(s, completed, status, now) || record
	clearCreationProblems(s, pods.current, completed, status)
	observeFailingSet(s, status, now)
	nextStuck := observeTermination(s, status, now)
	status.ObservedGeneration = ptr.To(s.Clique.Generation)

	decision := CliqueDecision{
		Status:  *status,
		Changed: !apiequality.Semantic.DeepEqual(*before, *status),
		Urgent:  !apiequality.Semantic.DeepEqual(withoutCounts(before, effectiveMinAvailable(&s.Clique.Spec)), withoutCounts(status, effectiveMinAvailable(&s.Clique.Spec))),
		Record:  record,
		Events:  eventsOfClique(s, status),
	}
	if record {
		return decision
	}
	var nextDelete, nextCreate time.Time
	decision.Delete, nextDelete = podsToDelete(s, pods, status, now)
	decision.Create, nextCreate = podsToCreate(s, pods, completed, status, now)
	decision.ForceDelete = podsToForce(s, now)
	decision.Next = earliest(nextStuck, nextDelete, nextCreate, s.NextDeadNode)
	return decision
}

// earliest is the first of several moments; zero when there is none.
func earliest(moments ...time.Time) time.Time {
	var first time.Time
	for _, moment := range moments {
		if !moment.IsZero() && (first.IsZero() || moment.Before(first)) {
			first = moment
		}
	}
	return first
}

// isStale says that the snapshot holds a pod of a later attempt than the clique's: the
// clique that was read is old, and its successor will come as an event. A deletion holds for
// every attempt.
func isStale(s CliqueSnapshot) bool {
	return s.Clique.DeletionTimestamp == nil && slices.ContainsFunc(s.Pods, func(pod Pod) bool { return !pod.Stray && pod.Attempt > s.Clique.Spec.Attempt })
}

// startAttempt begins the record of a new attempt: what belongs to the attempt starts
// anew with it, and nothing else resets it (D3).
func startAttempt(clique *grovev1alpha1.PodClique, status *grovev1alpha1.PodCliqueStatus, now time.Time) bool {
	if clique.Spec.Attempt <= status.ObservedAttempt {
		return false
	}
	status.ObservedAttempt = clique.Spec.Attempt
	status.WasAvailable = false
	status.CompletedIndexes = ""
	status.FailedIndexes = nil
	status.RecoveredIndexes = nil
	status.CreatedReplicas = 0
	if isUpdating(status) {
		// All its pods are made anew, from the template that the clique has now.
		status.UpdateProgress.UpdateEndedAt = ptr.To(metav1.NewTime(now))
	}
	meta.RemoveStatusCondition(&status.Conditions, grovev1alpha1.ConditionTypeSucceeded)
	setCondition(&status.Conditions, clique.Generation, now, grovev1alpha1.ConditionTypeMinAvailableBreached,
		metav1.ConditionFalse, grovev1alpha1.ReasonNeverAvailable, "a new attempt has begun")
	return true
}

// observeFailingSet records that the clique knows of its set's failure. Passes over one
// clique follow each other, so when this is on record, none that could make a pod is under
// way any more, and a list of the pods that comes after it is complete (D11).
func observeFailingSet(s CliqueSnapshot, status *grovev1alpha1.PodCliqueStatus, now time.Time) {
	if s.Parent == ParentFailing {
		setCondition(&status.Conditions, s.Clique.Generation, now, grovev1alpha1.ConditionTypeFailureTarget, metav1.ConditionTrue,
			grovev1alpha1.ReasonPodCliqueSetFailing, "the PodCliqueSet fails: active pods are terminated, and none is made")
	}
}

// KnowsOfFailure says that the clique makes no pods any more because its set fails, and
// that this is on record.
func KnowsOfFailure(clique *grovev1alpha1.PodClique) bool {
	return meta.IsStatusConditionTrue(clique.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
}

// podsOf are the pods of a clique by what becomes of them.
type podsOf struct {
	// current belong to the attempt and size of the spec, one per index.
	current podsByIndex
	// old belong to an earlier attempt: they only ever go.
	old []Pod
	// strays are none of the clique's, though it controls them: they only ever go, too.
	strays []Pod
	// surplus have an index that the size does not reach any more, or share one.
	surplus []Pod
}

func splitPods(s CliqueSnapshot) podsOf {
	pods := podsOf{current: make(podsByIndex, s.Clique.Spec.Replicas)}
	for i := range s.Pods {
		pod := &s.Pods[i]
		other := pods.current.at(pod.Index)
		switch {
		case pod.Stray && IsBeginning(s.Clique):
			// Nobody knows of which attempt it is, and no pod of a new one runs beside an old one.
			pods.old = append(pods.old, *pod)
		case pod.Stray:
			pods.strays = append(pods.strays, *pod)
		case pod.Attempt < s.Clique.Spec.Attempt:
			pods.old = append(pods.old, *pod)
		case pod.Index >= s.Clique.Spec.Replicas, pod.Attempt > s.Clique.Spec.Attempt:
			pods.surplus = append(pods.surplus, *pod)
		case other != nil && goesBefore(pod, other):
			pods.surplus = append(pods.surplus, *other)
			pods.current[pod.Index] = pod
		case other != nil:
			pods.surplus = append(pods.surplus, *pod)
		default:
			pods.current[pod.Index] = pod
		}
	}
	return pods
}

// IsBeginning says that a restart is under way: not all pods of the attempt were made yet, and
// there was one before it.
func IsBeginning(clique *grovev1alpha1.PodClique) bool {
	created := clique.Status.CreatedAttempt
	return clique.Spec.Attempt > 0 && (created == nil || *created < clique.Spec.Attempt)
}

// goesBefore says which of two pods of one index stays. The answer does not depend on
// the order in which they were read, else two passes could each delete the other one.
func goesBefore(pod, other *Pod) bool {
	if pod.Terminating() != other.Terminating() {
		return other.Terminating()
	}
	return pod.UID < other.UID
}

// count sets the counters. Terminating pods never count (D2).
func count(s CliqueSnapshot, pods podsOf, status *grovev1alpha1.PodCliqueStatus) {
	status.HPAPodSelector = ptr.To(labels.PodsOfClique(s.Clique.Name))
	status.OldReplicas = int32(len(pods.old))
	status.Replicas, status.ReadyReplicas, status.RunningReplicas = 0, 0, 0
	status.ScheduledReplicas, status.ScheduleGatedReplicas, status.UpdatedReplicas = 0, 0, 0
	status.StartedReplicas = countStarted(s.Clique, pods)
	for pod := range pods.current.all() {
		if pod.Terminating() {
			continue
		}
		status.Replicas++
		if pod.Scheduled {
			status.ScheduledReplicas++
		}
		if pod.Gated {
			status.ScheduleGatedReplicas++
		}
		if pod.TemplateHash == s.Turn.PodTemplateHash {
			status.UpdatedReplicas++
		}
		if pod.Ended() {
			continue
		}
		if pod.Ready || (pod.Finishing && isTraining(s.Clique)) {
			status.ReadyReplicas++
		}
		if pod.Started {
			status.RunningReplicas++
		}
	}
}

// withoutCounts is what of a status is worth a write of its own.
func withoutCounts(status *grovev1alpha1.PodCliqueStatus, atBarrier int32) *grovev1alpha1.PodCliqueStatus {
	out := status.DeepCopy()
	// Whether any pod runs decides the phase of the set; how many do does not.
	out.RunningReplicas = min(out.RunningReplicas, 1)
	// Others wait for the last old pod to go.
	out.OldReplicas = min(out.OldReplicas, 1)
	out.Replicas, out.ReadyReplicas = 0, 0
	out.ScheduledReplicas, out.ScheduleGatedReplicas, out.UpdatedReplicas = 0, 0, 0
	out.CompletedIndexes = ""
	for i := range out.Conditions {
		out.Conditions[i].Message = ""
		out.Conditions[i].ObservedGeneration = 0
	}
	// The first pod at the barrier starts its time, and the last opens it.
	out.StartedReplicas = int32(startedOf(out.StartedReplicas, atBarrier))
	return out
}

// setCondition sets a condition; its time of transition is now when the status changes, or
// the time of the transition before, if a clock that was ahead recorded that: times do not
// go back.
func setCondition(conditions *[]metav1.Condition, generation int64, now time.Time, conditionType string, status metav1.ConditionStatus, reason, message string) {
	if before := meta.FindStatusCondition(*conditions, conditionType); before != nil && now.Before(before.LastTransitionTime.Time) {
		now = before.LastTransitionTime.Time
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:               conditionType,
		Status:             status,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(now),
	})
}

// effectiveMinAvailable is the clique's minimum; a clique that is scaled to nothing is
// idle and needs nothing.
func effectiveMinAvailable(spec *grovev1alpha1.PodCliqueSpec) int32 {
	return min(ptr.Deref(spec.MinAvailable, spec.Replicas), spec.Replicas)
}

func isTraining(clique *grovev1alpha1.PodClique) bool {
	return clique.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining
}

// completedOf reads the completed indexes of a status. The server refuses any other
// form, so one that cannot be read holds nothing.
func completedOf(status *grovev1alpha1.PodCliqueStatus) indexset.Set {
	completed, err := indexset.Parse(status.CompletedIndexes)
	if err != nil {
		return indexset.Set{}
	}
	return completed
}
