package gang

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
)

// replicaStatuses tells of each replica in Training, and in Inference of those that
// wait or have been restarted.
func replicaStatuses(s SetSnapshot, replicas []replicaState) []grovev1alpha1.PodCliqueSetReplicaStatus {
	training := s.Set.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining
	var out []grovev1alpha1.PodCliqueSetReplicaStatus
	told := map[int32]bool{}
	for _, replica := range replicas {
		stages, stage := openStages(s, replica)
		waiting := waitingFor(s, replica, stages, stage)
		mustTell := training || replica.attempt > 0 || len(stages) > 0
		if !mustTell && (waiting == nil || len(out) >= maxInferenceReplicaStatuses) {
			continue
		}
		phase := grovev1alpha1.PodCliqueSetPending
		switch {
		case replica.succeeded && training:
			phase = grovev1alpha1.PodCliqueSetSucceeded
		case replica.running:
			phase = grovev1alpha1.PodCliqueSetRunning
		}
		told[replica.index] = true
		out = append(out, grovev1alpha1.PodCliqueSetReplicaStatus{
			Index: replica.index, Phase: phase, Attempt: replica.attempt, OpenStages: stages, WaitingFor: waiting,
		})
	}
	// Attempts survive scale-in of their index (D3).
	for _, before := range s.Set.Status.ReplicaStatuses {
		if before.Attempt > 0 && !told[before.Index] {
			out = append(out, grovev1alpha1.PodCliqueSetReplicaStatus{Index: before.Index, Attempt: before.Attempt})
		}
	}
	return out
}

// waitingFor says what holds a replica back: first a base gang, then the stage that has to
// come before the next, then the first clique that is not available.
func waitingFor(s SetSnapshot, replica replicaState, stages []string, stage *grovev1alpha1.WaitingFor) *grovev1alpha1.WaitingFor {
	if replica.available {
		return nil
	}
	looked := map[string]bool{}
	for _, clique := range replica.cliques {
		if !looked[clique.BaseGang] && (!IsStaged(s.Set) || slices.Contains(stages, clique.Template.Name)) {
			looked[clique.BaseGang] = true
			if waiting := waitingForGang(s.Gangs[clique.BaseGang], replica); waiting != nil {
				return waiting
			}
		}
	}
	if stage != nil {
		return stage
	}
	held := map[string]bool{}
	if gate := s.Gates[naming.Replica(s.Set.Name, replica.index)]; gate != nil {
		waiters := waitersOf(GateSnapshot{Set: s.Set, Gate: gate}, replica, time.Time{})
		if waiting := waitingAtBarrier(waiters); waiting != nil {
			return waiting
		}
		for _, w := range waiters {
			held[w.Name] = !w.entry.Open && !w.ready
		}
	}
	return waitingForClique(replica, held)
}

// waitingForClique says which clique is not available: the first, unless its pods are held
// until another is there.
func waitingForClique(replica replicaState, held map[string]bool) *grovev1alpha1.WaitingFor {
	var first *grovev1alpha1.WaitingFor
	for _, clique := range replica.cliques {
		current := isCurrent(clique.object, replica.attempt)
		if current && IsAvailable(clique.object) {
			continue
		}
		waiting := &grovev1alpha1.WaitingFor{Clique: clique.Template.Name, Status: string(grovev1alpha1.CliqueStatusReady)}
		waiting.Want = ptr.Deref(clique.Template.Spec.MinAvailable, clique.Template.Spec.Replicas)
		if current {
			waiting.Have = Available(clique.object)
		}
		if !held[clique.Name] {
			return waiting
		}
		if first == nil {
			first = waiting
		}
	}
	return first
}

// waitingAtBarrier says which clique keeps the start barrier of a base gang shut; nil when
// none does. The others are not Ready because of it.
func waitingAtBarrier(waiters []*waiter) *grovev1alpha1.WaitingFor {
	for _, w := range waiters {
		if have, want := w.started(nil); w.barrier && w.ready && w.Gang == w.BaseGang && !w.entry.Open && have < want {
			return &grovev1alpha1.WaitingFor{Clique: w.Template.Name, Status: grovev1alpha1.WaitingForStarted, Have: have, Want: want}
		}
	}
	return nil
}

// waitingForGang says what a gang waits for, nil when all its pods are placed, or its status
// is of an earlier attempt. One that was placed can wait again: for pods that replace others.
func waitingForGang(podGang *schedulerv1alpha1.PodGang, replica replicaState) *grovev1alpha1.WaitingFor {
	if podGang == nil || podGang.Status.ObservedAttempt < replica.attempt {
		return nil
	}
	condition := meta.FindStatusCondition(podGang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled)
	again := whyAgain(podGang)
	scheduled := condition != nil && condition.Status == metav1.ConditionTrue
	if scheduled && again == nil {
		return nil
	}
	waiting := &grovev1alpha1.WaitingFor{Status: schedulerv1alpha1.ReasonWaitingForPods}
	for _, clique := range replica.cliques {
		if clique.Gang != podGang.Name {
			continue
		}
		waiting.Want += ptr.Deref(clique.Template.Spec.MinAvailable, clique.Template.Spec.Replicas)
		if isCurrent(clique.object, replica.attempt) {
			waiting.Have += clique.object.Status.ScheduledReplicas
		}
	}
	switch {
	case scheduled:
		waiting.Status, waiting.Message = again.Reason, again.Message
	case condition != nil:
		waiting.Status, waiting.Message = condition.Reason, condition.Message
	}
	return waiting
}

// whyAgain is why pods of a gang that was placed have no node; nil when all have.
func whyAgain(podGang *schedulerv1alpha1.PodGang) *schedulerv1alpha1.UnschedulableExplanation {
	for i := range podGang.Status.SchedulingConditions {
		if reasons := podGang.Status.SchedulingConditions[i].Reasons; len(reasons) > 0 {
			return &reasons[0]
		}
	}
	return nil
}
