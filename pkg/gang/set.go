package gang

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// maxInferenceReplicaStatuses bounds what the status of an inference set tells of its
// replicas one by one.
const maxInferenceReplicaStatuses = 50

// SetSnapshot is all that the decision about one set depends on.
type SetSnapshot struct {
	Set *grovev1alpha1.PodCliqueSet
	// Cliques are the PodCliques of the set, by name.
	Cliques map[string]*grovev1alpha1.PodClique
	// Groups are the PodCliqueScalingGroups of the set, by name.
	Groups map[string]*grovev1alpha1.PodCliqueScalingGroup
	// Gangs are the PodGangs of the set, by name.
	Gangs map[string]*schedulerv1alpha1.PodGang
	// Gates are the StartGates of the set, by name.
	Gates map[string]*grovev1alpha1.StartGate
	// Claims are what is known of the ResourceClaims that pods of the set share.
	Claims ClaimSnapshot
	// Topology is what the set's topology constraints speak of.
	Topology Topology
	// FinishedAt is when the last pod of the set finished its work, as a live list shows
	// it; zero when one has not. It is looked at once the runtime deadline has passed.
	FinishedAt time.Time
	// NoActivePods says that a live list showed no pod of the set that may still run, and
	// that every clique of the set knew of FailureTarget before it was made.
	NoActivePods bool
}

// SetDecision is what is to be done about one set.
type SetDecision struct {
	// Status is the next status.
	Status grovev1alpha1.PodCliqueSetStatus
	// Changed says that Status differs from the status that was read.
	Changed bool
	// Urgent says that Status holds more than other counts, so it is written at once.
	Urgent bool
	// Confirm are cliques because of whose breach Status ends attempts. The breach is
	// looked at live before Status is written.
	Confirm []*grovev1alpha1.PodClique
	// Events tell of what Status decides.
	Events []Event
	// Due is when the attempts that Status ends were due to end; zero when it ends none.
	Due time.Time
	// Next is when to look again though nothing has happened; zero for never.
	Next time.Time
}

// DecideSet decides about one set.
func DecideSet(s SetSnapshot, now time.Time) SetDecision {
	status := s.Set.Status.DeepCopy()
	status.ObservedGeneration = ptr.To(s.Set.Generation)
	replicas := observeReplicas(s)

	var decision SetDecision
	active := !isFinished(status) && s.Set.DeletionTimestamp == nil
	if active && !isFailing(status) {
		decision = decideAttempts(s, replicas, status, now)
	}
	if active && !isFailing(status) {
		decision.Events = append(decision.Events, decideUpdate(s, replicas, status, now)...)
	}
	sum(s, replicas, status)
	if active {
		status.ReplicaStatuses = replicaStatuses(s, replicas)
		decision.Events = append(decision.Events, setStartup(s, replicas, status, now)...)
		decision.Events = append(decision.Events, decidePhase(s, replicas, status, now)...)
		setRestarting(s, replicas, status, now)
		setTopology(s, replicas, status, now)
	}
	setStuck(s, status, now)
	decision.Events = append(decision.Events, setMissingClaims(s, status, now)...)
	decision.Status = *status
	decision.Changed = !apiequality.Semantic.DeepEqual(s.Set.Status, *status)
	decision.Urgent = !apiequality.Semantic.DeepEqual(withoutSetCounts(&s.Set.Status), withoutSetCounts(status))
	return decision
}

// replicaState is what one replica comes to.
type replicaState struct {
	index     int32
	attempt   int32
	exists    bool
	running   bool
	available bool
	succeeded bool
	// updated says that all pods follow the template.
	updated bool
	// breached says that a clique or scaling group lacks pods that it had.
	breached bool
	// scheduled is how many pods have a node.
	scheduled int32
	pods      int32
	ready     int32
	cliques   []cliqueState
	// restartCause says why the decision at hand raised the attempt; empty when it did not.
	restartCause string
	// recycled says which copy of a scaling group was recycled and has not been available
	// since, and why; empty when there is none.
	recycled string
}

// cliqueState is an expected clique and the PodClique that stands for it, if any.
type cliqueState struct {
	ExpectedClique
	object *grovev1alpha1.PodClique
	// copyAttempt is that of its copy of a scaling group: its attempt is the sum with the
	// replica's.
	copyAttempt int32
}

// groupObject is the scaling group of a replica, nil when it does not exist.
func (s SetSnapshot) groupObject(replica int32, group *grovev1alpha1.PodCliqueScalingGroupConfig) *grovev1alpha1.PodCliqueScalingGroup {
	return s.Groups[naming.ScalingGroup(s.Set.Name, replica, group.Name)]
}

// sizes are those of the scaling groups as they are now.
func (s SetSnapshot) sizes(replica int32, group *grovev1alpha1.PodCliqueScalingGroupConfig) int32 {
	if object := s.groupObject(replica, group); object != nil {
		return object.Spec.Replicas
	}
	return TemplateSizes(replica, group)
}

func observeReplicas(s SetSnapshot) []replicaState {
	out := make([]replicaState, 0, s.Set.Spec.Replicas)
	for index := range s.Set.Spec.Replicas {
		out = append(out, observeReplica(s, index, s.sizes))
	}
	return out
}

func observeReplica(s SetSnapshot, index int32, sizes GroupSizes) replicaState {
	state := replicaState{index: index, attempt: ReplicaAttempt(s.Set, index), available: true, succeeded: true, updated: true}
	// Copies of scaling groups that have every clique available, by group.
	unavailableCopies := map[string]map[int32]bool{}
	for _, expected := range ExpectedCliques(s.Set, index, sizes) {
		object := s.Cliques[expected.Name]
		copyAttempt := CopyAttempt(s.Groups[expected.GroupName], expected.Copy)
		state.cliques = append(state.cliques, cliqueState{expected, object, copyAttempt})
		wanted, ready := expected.Template.Spec.Replicas, int32(0)
		current := isCurrent(object, state.attempt+copyAttempt)
		ok := current && IsAvailable(object)
		if object != nil {
			wanted = object.Spec.Replicas
			state.exists = true
		}
		if current {
			// The clique's status may be of before a scale-in.
			ready = min(Available(object), wanted)
			state.running = state.running || object.Status.RunningReplicas > 0
			state.breached = state.breached || isBreached(object.Status.Conditions)
			state.scheduled += object.Status.ScheduledReplicas
		}
		state.pods += wanted
		state.ready += ready
		state.succeeded = state.succeeded && current && meta.IsStatusConditionTrue(object.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded)
		state.updated = state.updated && state.cliques[len(state.cliques)-1].isUpdated(s.Set)
		if expected.Group == nil {
			state.available = state.available && ok
			continue
		}
		if unavailableCopies[expected.Group.Name] == nil {
			unavailableCopies[expected.Group.Name] = map[int32]bool{}
		}
		if !ok {
			unavailableCopies[expected.Group.Name][expected.Copy] = true
			recycling := recycledSince(s.Groups[expected.GroupName], expected.Copy, state.attempt)
			if recycling != nil && state.recycled == "" && !(current && object.Status.WasAvailable) {
				state.recycled = fmt.Sprintf("copy %d of scaling group %s is made anew: %s", expected.Copy, expected.GroupName, recycling.Message)
			}
		}
	}
	if len(state.cliques) == 0 {
		// All that there is are scaling groups, which exist, and have been scaled to nothing.
		state.exists, state.succeeded = true, false
	}
	for i := range s.Set.Spec.Template.PodCliqueScalingGroups {
		group := &s.Set.Spec.Template.PodCliqueScalingGroups[i]
		if object := s.groupObject(index, group); object != nil {
			state.breached = state.breached || isBreached(object.Status.Conditions)
		}
		availableCopies := sizes(index, group) - int32(len(unavailableCopies[group.Name]))
		state.available = state.available && availableCopies >= min(ptr.Deref(group.MinAvailable, 1), sizes(index, group))
	}
	return state
}

// isCurrent says that the status of a clique speaks of an attempt or of a later one: what
// an earlier attempt came to counts for nothing (D3).
func isCurrent(clique *grovev1alpha1.PodClique, attempt int32) bool {
	return clique != nil && clique.Status.ObservedAttempt == clique.Spec.Attempt && clique.Spec.Attempt >= attempt
}

// isUpToDate says that the status of a clique speaks of its spec as it is: a count of
// another size opens nothing.
func isUpToDate(clique *grovev1alpha1.PodClique) bool {
	return ptr.Deref(clique.Status.ObservedGeneration, 0) >= clique.Generation
}

// sum sets the counters of the set.
func sum(s SetSnapshot, replicas []replicaState, status *grovev1alpha1.PodCliqueSetStatus) {
	status.Replicas, status.AvailableReplicas, status.UpdatedReplicas, status.SucceededReplicas = 0, 0, 0, 0
	status.Pods, status.AvailablePods = 0, 0
	for _, replica := range replicas {
		status.Pods += replica.pods
		status.AvailablePods += replica.ready
		if !replica.exists {
			continue
		}
		status.Replicas++
		if replica.available {
			status.AvailableReplicas++
			if replica.updated {
				status.UpdatedReplicas++
			}
		}
		if replica.succeeded {
			status.SucceededReplicas++
		}
	}
	status.HPAPodSelector = ptr.To(labels.PodsOfSet(s.Set.Name))
}

func isFinished(status *grovev1alpha1.PodCliqueSetStatus) bool {
	return status.Phase == grovev1alpha1.PodCliqueSetSucceeded || status.Phase == grovev1alpha1.PodCliqueSetFailed
}

func isFailing(status *grovev1alpha1.PodCliqueSetStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
}

// decidePhase moves the phase of the set (D18, seed 000). Terminal phases never get here.
func decidePhase(s SetSnapshot, replicas []replicaState, status *grovev1alpha1.PodCliqueSetStatus, now time.Time) []Event {
	generation := s.Set.Generation
	failing := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
	switch {
	// The decision to fail was read, and is not of this pass (D4).
	case isFailing(&s.Set.Status) && s.NoActivePods:
		status.Phase = grovev1alpha1.PodCliqueSetFailed
		status.CompletionTime = completionTime(status, now)
		setCondition(&status.Conditions, generation, now, grovev1alpha1.ConditionTypeFailed, metav1.ConditionTrue, failing.Reason, failing.Message)
		endReplicas(status, grovev1alpha1.PodCliqueSetFailed)
		return []Event{{corev1.EventTypeWarning, EventWorkloadFailed, failing.Message}}
	// Failure and success seen together: failure wins (D7).
	case !isFailing(status) && s.Set.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining && allSucceeded(replicas):
		status.Phase = grovev1alpha1.PodCliqueSetSucceeded
		status.CompletionTime = completionTime(status, now)
		// A job may end within the second of its start, and a set that is first seen
		// when it is over has started, too.
		if status.StartTime == nil {
			status.StartTime = status.CompletionTime
		}
		message := fmt.Sprintf("every pod exited with 0, %d in all", status.Pods)
		setCondition(&status.Conditions, generation, now, grovev1alpha1.ConditionTypeSucceeded, metav1.ConditionTrue, grovev1alpha1.ReasonAllReplicasSucceeded, message)
		endReplicas(status, grovev1alpha1.PodCliqueSetSucceeded)
		return []Event{{corev1.EventTypeNormal, EventWorkloadSucceeded, message}}
	}
	status.Phase = grovev1alpha1.PodCliqueSetPending
	for i := range replicas {
		if replicas[i].running {
			status.Phase = grovev1alpha1.PodCliqueSetRunning
		}
	}
	if status.Phase == grovev1alpha1.PodCliqueSetRunning && status.StartTime == nil {
		status.StartTime = ptr.To(metav1.NewTime(now))
	}
	return nil
}

// completionTime is now, though not before the start: another controller, whose clock was
// ahead, may have recorded that.
func completionTime(status *grovev1alpha1.PodCliqueSetStatus, now time.Time) *metav1.Time {
	if status.StartTime != nil && now.Before(status.StartTime.Time) {
		return status.StartTime.DeepCopy()
	}
	return ptr.To(metav1.NewTime(now))
}

// endReplicas gives replicas that have not ended by themselves the phase of the set; none
// waits any more.
func endReplicas(status *grovev1alpha1.PodCliqueSetStatus, phase grovev1alpha1.PodCliqueSetPhase) {
	for i := range status.ReplicaStatuses {
		replica := &status.ReplicaStatuses[i]
		replica.WaitingFor = nil
		if replica.Phase != grovev1alpha1.PodCliqueSetSucceeded {
			replica.Phase = phase
		}
	}
}

func allSucceeded(replicas []replicaState) bool {
	for _, replica := range replicas {
		if !replica.succeeded || len(replica.cliques) == 0 {
			return false
		}
	}
	return len(replicas) > 0
}

// setStuck tells of cliques whose pods do not go though they were deleted.
func setStuck(s SetSnapshot, status *grovev1alpha1.PodCliqueSetStatus, now time.Time) {
	var stuck []string
	for _, name := range slices.Sorted(maps.Keys(s.Cliques)) {
		if c := meta.FindStatusCondition(s.Cliques[name].Status.Conditions, grovev1alpha1.ConditionTypePodsStuckTerminating); c != nil && c.Status == metav1.ConditionTrue {
			stuck = append(stuck, name+": "+c.Message)
		}
	}
	if len(stuck) == 0 {
		meta.RemoveStatusCondition(&status.Conditions, grovev1alpha1.ConditionTypePodsStuckTerminating)
		return
	}
	setCondition(&status.Conditions, s.Set.Generation, now, grovev1alpha1.ConditionTypePodsStuckTerminating, metav1.ConditionTrue, grovev1alpha1.ReasonPodsTerminating,
		firstOf(stuck))
}

// withoutSetCounts is what of a status is worth a write of its own.
func withoutSetCounts(status *grovev1alpha1.PodCliqueSetStatus) *grovev1alpha1.PodCliqueSetStatus {
	out := status.DeepCopy()
	out.AvailablePods = 0
	if pending := meta.FindStatusCondition(out.Conditions, grovev1alpha1.ConditionTypeUpdatePending); pending != nil {
		pending.Message = ""
	}
	for i := range out.ReplicaStatuses {
		if waiting := out.ReplicaStatuses[i].WaitingFor; waiting != nil {
			waiting.Have, waiting.Message = 0, ""
		}
	}
	return out
}
