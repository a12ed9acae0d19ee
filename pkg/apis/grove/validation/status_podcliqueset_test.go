package validation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestValidatePodCliqueSetStatusUpdate(t *testing.T) {
	const (
		phasePath      = "status.phase"
		conditionsPath = "status.conditions"
		restartsPath   = "status.restartCount"
		completionPath = "status.completionTime"
		replicas       = "status.replicaStatuses"
	)
	type set = grove.PodCliqueSet
	phase := func(phase grove.PodCliqueSetPhase) func(*set) {
		return func(pcs *set) { pcs.Status.Phase = phase }
	}
	conditions := func(types ...string) func(*set) {
		return func(pcs *set) {
			pcs.Status.Conditions = nil
			for _, conditionType := range types {
				pcs.Status.Conditions = append(pcs.Status.Conditions, condition(conditionType, metav1.ConditionTrue))
			}
		}
	}
	completed := func(pcs *set) { pcs.Status.CompletionTime = at(200) }
	// attempts gives replicas 0, 1, ... their attempts.
	attempts := func(attempts ...int32) func(*set) {
		return func(pcs *set) {
			pcs.Status.ReplicaStatuses = nil
			for i, attempt := range attempts {
				pcs.Status.ReplicaStatuses = append(pcs.Status.ReplicaStatuses, grove.PodCliqueSetReplicaStatus{Index: int32(i), Attempt: attempt})
			}
		}
	}
	stages := func(names ...string) func(*set) {
		return func(pcs *set) {
			if len(pcs.Status.ReplicaStatuses) == 0 {
				pcs.Status.ReplicaStatuses = make([]grove.PodCliqueSetReplicaStatus, 1)
			}
			pcs.Status.ReplicaStatuses[0].OpenStages = names
		}
	}
	// reasons gives FailureTarget and Failed, unless empty, their reasons.
	reasons := func(failureTarget, failed string) func(*set) {
		return func(pcs *set) {
			pcs.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue, Reason: failureTarget}}
			if failed != "" {
				pcs.Status.Conditions = append(pcs.Status.Conditions, metav1.Condition{Type: grovev1alpha1.ConditionTypeFailed, Status: metav1.ConditionTrue, Reason: failed})
			}
		}
	}
	transition := func(seconds int64) func(*set) {
		return func(pcs *set) {
			pcs.Status.Conditions = []metav1.Condition{{Type: "Any", Status: metav1.ConditionTrue, LastTransitionTime: *at(seconds)}}
		}
	}
	restarts := func(n int32) func(*set) {
		return func(pcs *set) { pcs.Status.RestartCount = n }
	}
	started := func(pcs *set) { pcs.Status.StartTime = at(100) }
	toRunning := all(phase(grove.PodCliqueSetRunning), started)
	running := all(training, toRunning)
	failing := all(running, conditions(grovev1alpha1.ConditionTypeFailureTarget))
	toFailed := all(phase(grove.PodCliqueSetFailed), completed, conditions(grovev1alpha1.ConditionTypeFailureTarget, grovev1alpha1.ConditionTypeFailed))
	allSucceeded := func(pcs *set) { pcs.Status.Replicas, pcs.Status.SucceededReplicas = 1, 1 }
	toSucceeded := all(phase(grove.PodCliqueSetSucceeded), completed, allSucceeded, conditions(grovev1alpha1.ConditionTypeSucceeded))
	failed, succeeded := all(failing, toFailed), all(running, toSucceeded)

	testUpdate(t, mkPodCliqueSet, ValidatePodCliqueSetStatusUpdate, map[string]updateCase[set]{
		"nothing changes": {},
		"metadata is checked": {
			tweak: func(pcs *set) { pcs.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"status of an invalid spec may change": {
			before: func(pcs *set) { pcs.Spec.Replicas = 30000 },
			tweak:  toRunning,
		},

		// Phases.
		"pending":                   {tweak: phase(grove.PodCliqueSetPending)},
		"running in Inference":      {tweak: toRunning},
		"running to pending":        {before: running, tweak: phase(grove.PodCliqueSetPending)},
		"failure target":            {before: running, tweak: conditions(grovev1alpha1.ConditionTypeFailureTarget)},
		"failure target to failed":  {before: failing, tweak: toFailed},
		"running to succeeded":      {before: running, tweak: toSucceeded},
		"pending to succeeded":      {before: all(training, phase(grove.PodCliqueSetPending)), tweak: toSucceeded},
		"a finished set stays so":   {before: succeeded, tweak: func(pcs *set) { pcs.Status.ObservedGeneration = ptr.To[int64](4) }},
		"False conditions mean no":  {before: training, tweak: withFalse(grovev1alpha1.ConditionTypeFailed, grovev1alpha1.ConditionTypeSucceeded, grovev1alpha1.ConditionTypeFailureTarget)},
		"other conditions are free": {tweak: conditions(grovev1alpha1.ConditionTypeUpdatePending)},
		"phase is known": {
			tweak: phase("Restarting"),
			want:  field.ErrorList{unsupported(phasePath)},
		},
		"Succeeded is final": {
			before: succeeded,
			tweak:  all(phase(grove.PodCliqueSetRunning), conditions()),
			want:   field.ErrorList{invalid(phasePath), invalid(completionPath)},
		},
		"Succeeded does not become Failed": {
			before: succeeded,
			tweak:  toFailed,
			want:   field.ErrorList{invalid(phasePath), invalid(conditionsPath)},
		},
		"Failed is final": {
			before: failed,
			tweak:  all(phase(grove.PodCliqueSetRunning), conditions(grovev1alpha1.ConditionTypeFailureTarget)),
			want:   field.ErrorList{invalid(phasePath), invalid(completionPath)},
		},
		"a finished phase is not dropped": {
			before: succeeded,
			tweak:  all(phase(""), conditions()),
			want:   field.ErrorList{invalid(phasePath), invalid(completionPath)},
		},
		"Running is not emptied": {
			before: running,
			tweak:  phase(""),
			want:   field.ErrorList{required(phasePath)},
		},
		"Pending is not emptied": {
			before: all(training, phase(grove.PodCliqueSetPending)),
			tweak:  phase(""),
			want:   field.ErrorList{required(phasePath)},
		},
		"phase Succeeded needs its condition": {
			before: running,
			tweak:  all(phase(grove.PodCliqueSetSucceeded), completed, allSucceeded),
			want:   field.ErrorList{invalid(phasePath)},
		},
		"condition Succeeded needs its phase": {
			before: running,
			tweak:  conditions(grovev1alpha1.ConditionTypeSucceeded),
			want:   field.ErrorList{invalid(phasePath)},
		},
		"phase Failed needs its condition": {
			before: failing,
			tweak:  all(phase(grove.PodCliqueSetFailed), completed),
			want:   field.ErrorList{invalid(phasePath)},
		},
		"condition Failed needs its phase": {
			before: failing,
			tweak:  conditions(grovev1alpha1.ConditionTypeFailureTarget, grovev1alpha1.ConditionTypeFailed),
			want:   field.ErrorList{invalid(phasePath)},
		},
		"Failed needs FailureTarget": {
			before: running,
			tweak:  all(toFailed, conditions(grovev1alpha1.ConditionTypeFailed)),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"Failed needs FailureTarget of an earlier write": {
			before: running,
			tweak:  toFailed,
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"FailureTarget keeps any reason": {
			before: all(running, reasons("StartBarrierExpired", "")),
			tweak:  func(pcs *set) { pcs.Status.AvailablePods, pcs.Status.Pods = 1, 2 },
		},
		"the reason of FailureTarget does not change": {
			before: all(running, reasons("MaxRuntimeExceeded", "")),
			tweak:  reasons("MaxRestartsExceeded", ""),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"Failed has the reason of FailureTarget": {
			before: all(running, reasons("MaxRuntimeExceeded", "")),
			tweak:  all(toFailed, reasons("MaxRuntimeExceeded", "MaxRuntimeExceeded")),
		},
		"Failed has no other reason": {
			before: all(running, reasons("MaxRuntimeExceeded", "")),
			tweak:  all(toFailed, reasons("MaxRuntimeExceeded", "MaxRestartsExceeded")),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"Succeeded counts every replica": {
			before: running,
			tweak:  all(toSucceeded, func(pcs *set) { pcs.Status.Replicas, pcs.Status.SucceededReplicas = 2, 2 }),
			want:   field.ErrorList{invalid("status.succeededReplicas")},
		},
		"Succeeded needs every replica": {
			before: all(running, func(pcs *set) { pcs.Spec.Replicas = 2 }),
			tweak:  toSucceeded,
			want:   field.ErrorList{invalid("status.succeededReplicas")},
		},
		"replicas of a set that has succeeded may go": {
			before: succeeded,
			tweak:  func(pcs *set) { pcs.Status.Replicas, pcs.Status.SucceededReplicas = 0, 0 },
		},
		"startup is completed after it was in progress": {
			before: conditions(grovev1alpha1.ConditionTypeStartupPolicyInProgress),
			tweak:  conditions(grovev1alpha1.ConditionTypeStartupPolicyCompleted),
		},
		"startup is not in progress and completed": {
			before: conditions(grovev1alpha1.ConditionTypeStartupPolicyInProgress),
			tweak:  conditions(grovev1alpha1.ConditionTypeStartupPolicyInProgress, grovev1alpha1.ConditionTypeStartupPolicyCompleted),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"time of a transition does not go back": {
			before: transition(100),
			tweak:  transition(99),
			want:   field.ErrorList{invalid(conditionsPath + "[0].lastTransitionTime")},
		},
		"time of a transition goes on": {before: transition(100), tweak: transition(101)},
		"Succeeded contradicts FailureTarget": {
			before: failing,
			tweak:  all(toSucceeded, conditions(grovev1alpha1.ConditionTypeFailureTarget, grovev1alpha1.ConditionTypeSucceeded)),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"FailureTarget is not dropped": {
			before: failing,
			tweak:  conditions(),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"FailureTarget does not become False": {
			before: failing,
			tweak:  withFalse(grovev1alpha1.ConditionTypeFailureTarget),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"an inference set does not succeed": {
			tweak: toSucceeded,
			want:  field.ErrorList{invalid(phasePath)},
		},
		"an inference set does not fail": {
			tweak: toFailed,
			want:  field.ErrorList{invalid(phasePath), invalid(conditionsPath)},
		},
		"an inference set has no FailureTarget": {
			tweak: conditions(grovev1alpha1.ConditionTypeFailureTarget),
			want:  field.ErrorList{invalid(phasePath)},
		},
		"a succeeded set has a completionTime": {
			before: running,
			tweak:  all(toSucceeded, func(pcs *set) { pcs.Status.CompletionTime = nil }),
			want:   field.ErrorList{required("status.completionTime")},
		},
		"a failed set has a completionTime": {
			before: failing,
			tweak:  all(toFailed, func(pcs *set) { pcs.Status.CompletionTime = nil }),
			want:   field.ErrorList{required("status.completionTime")},
		},

		// Times.
		"startTime is written": {before: training, tweak: running},
		"startTime in another zone is the same": {before: running, tweak: func(pcs *set) {
			pcs.Status.StartTime = ptr.To(metav1.NewTime(pcs.Status.StartTime.UTC()))
		}},
		"startTime is written once": {
			before: running,
			tweak:  func(pcs *set) { pcs.Status.StartTime = at(101) },
			want:   field.ErrorList{invalid("status.startTime")},
		},
		"startTime is not dropped": {
			before: running,
			tweak:  all(phase(grove.PodCliqueSetPending), func(pcs *set) { pcs.Status.StartTime = nil }),
			want:   field.ErrorList{invalid("status.startTime")},
		},
		"completionTime is written once": {
			before: succeeded,
			tweak:  func(pcs *set) { pcs.Status.CompletionTime = at(201) },
			want:   field.ErrorList{invalid("status.completionTime")},
		},

		"completionTime is not dropped": {
			before: succeeded,
			tweak:  func(pcs *set) { pcs.Status.CompletionTime = nil },
			want:   field.ErrorList{invalid(completionPath), required(completionPath)},
		},
		"Running needs a startTime": {
			before: training,
			tweak:  phase(grove.PodCliqueSetRunning),
			want:   field.ErrorList{required("status.startTime")},
		},
		"a set that ran without startTime may go on": {
			before: all(training, phase(grove.PodCliqueSetRunning)),
			tweak:  func(pcs *set) { pcs.Status.Pods = 2 },
		},
		"completionTime comes with the end": {
			before: running,
			tweak:  completed,
			want:   field.ErrorList{invalid(completionPath)},
		},
		"completionTime is not before startTime": {
			before: running,
			tweak:  all(toSucceeded, func(pcs *set) { pcs.Status.CompletionTime = at(99) }),
			want:   field.ErrorList{invalid(completionPath)},
		},
		"completionTime within the second of startTime": {
			before: all(running, func(pcs *set) { pcs.Status.StartTime = ptr.To(metav1.Unix(100, 900)) }),
			tweak:  all(toSucceeded, func(pcs *set) { pcs.Status.CompletionTime = at(100) }),
		},

		// Attempts and restarts.
		"one restart":                        {before: all(running, attempts(0, 1), restarts(1)), tweak: all(attempts(1, 1), restarts(2))},
		"two restarts in one write":          {before: all(running, attempts(0, 1), restarts(1)), tweak: all(attempts(1, 2), restarts(3))},
		"first restart of an unlisted one":   {before: running, tweak: all(attempts(1), restarts(1))},
		"attempt 0 needs no entry":           {before: all(running, attempts(0, 0)), tweak: attempts()},
		"attempt rises in Inference":         {before: attempts(1), tweak: attempts(2)},
		"attempts in Training without one":   {before: all(running, attempts(1), restarts(1)), tweak: attempts(1, 0)},
		"entries in another order":           {before: all(running, attempts(2, 1), restarts(3)), tweak: reverse},
		"entries are compared by index":      {before: all(running, attempts(2, 1), restarts(3)), tweak: all(attempts(1, 2)), want: field.ErrorList{invalid(replicas + "[0].attempt")}},
		"restartCount does not fall":         {before: all(running, attempts(2), restarts(2)), tweak: restarts(1), want: field.ErrorList{invalid(restartsPath), invalid(restartsPath)}},
		"restartCount rises with an attempt": {before: running, tweak: restarts(1), want: field.ErrorList{invalid(restartsPath)}},
		"an attempt rises with restartCount": {before: running, tweak: attempts(1), want: field.ErrorList{invalid(restartsPath)}},
		"restartCount rises by the sum":      {before: running, tweak: all(attempts(1, 1), restarts(1)), want: field.ErrorList{invalid(restartsPath)}},
		"restartCount stays 0 in Inference":  {tweak: all(attempts(1), restarts(1)), want: field.ErrorList{invalid(restartsPath)}},
		"restartCount is not negative":       {tweak: restarts(-1), want: field.ErrorList{invalid(restartsPath), invalid(restartsPath)}},
		"attempt does not fall": {
			before: attempts(2),
			tweak:  attempts(1),
			want:   field.ErrorList{invalid(replicas + "[0].attempt")},
		},
		"attempt is not negative": {
			tweak: attempts(-1),
			want:  field.ErrorList{invalid(replicas + "[0].attempt")},
		},
		"attempt is kept when its replica goes, in Inference": {
			before: attempts(0, 1),
			tweak:  attempts(0),
			want:   field.ErrorList{required(replicas)},
		},
		"attempt is kept in Training": {
			before: all(running, attempts(1), restarts(1)),
			tweak:  attempts(),
			want:   field.ErrorList{required(replicas)},
		},
		"index is not negative": {
			tweak: func(pcs *set) { pcs.Status.ReplicaStatuses = []grove.PodCliqueSetReplicaStatus{{Index: -1}} },
			want:  field.ErrorList{invalid(replicas + "[0].index")},
		},
		"a lower attempt is not hidden behind a second entry": {
			before: attempts(2),
			tweak: func(pcs *set) {
				pcs.Status.ReplicaStatuses = append(pcs.Status.ReplicaStatuses, grove.PodCliqueSetReplicaStatus{Index: 0, Attempt: 1})
			},
			want: field.ErrorList{duplicate(replicas + "[1].index"), invalid(replicas + "[1].attempt")},
		},
		"an attempt rises by one": {
			before: all(running, attempts(1), restarts(1)),
			tweak:  all(attempts(3), restarts(3)),
			want:   field.ErrorList{invalid(replicas + "[0].attempt")},
		},
		"an attempt rises by one in Inference": {
			tweak: attempts(2),
			want:  field.ErrorList{invalid(replicas + "[0].attempt")},
		},
		"the last restart of the budget": {before: all(running, attempts(2), restarts(2)), tweak: all(attempts(3), restarts(3))},
		"restartCount does not rise above the budget": {
			before: all(running, attempts(3), restarts(3)),
			tweak:  all(attempts(4), restarts(4)),
			want:   field.ErrorList{invalid(restartsPath)},
		},
		"without a budget there is no restart": {
			before: all(running, func(pcs *set) { pcs.Spec.TrainingSpec = nil }),
			tweak:  all(attempts(1), restarts(1)),
			want:   field.ErrorList{invalid(restartsPath)},
		},
		"a budget that was lowered does not block": {
			before: all(running, attempts(3), restarts(3), func(pcs *set) { pcs.Spec.TrainingSpec.MaxRestarts = nil }),
			tweak:  conditions(grovev1alpha1.ConditionTypeFailureTarget),
		},
		"no restart after FailureTarget": {
			before: failing,
			tweak:  all(attempts(1), restarts(1)),
			want:   field.ErrorList{forbidden(restartsPath)},
		},
		"no restart with FailureTarget": {
			before: running,
			tweak:  all(attempts(1), restarts(1), conditions(grovev1alpha1.ConditionTypeFailureTarget)),
			want:   field.ErrorList{forbidden(restartsPath)},
		},
		"no restart after the end": {
			before: succeeded,
			tweak:  all(attempts(1), restarts(1)),
			want:   field.ErrorList{forbidden(restartsPath)},
		},
		"no restart with the end": {
			before: running,
			tweak:  all(toSucceeded, attempts(1), restarts(1)),
			want:   field.ErrorList{forbidden(restartsPath)},
		},
		"a count alone is no restart either": {
			before: failing,
			tweak:  restarts(1),
			want:   field.ErrorList{forbidden(restartsPath), invalid(restartsPath)},
		},
		"an attempt alone is no restart either": {
			before: failing,
			tweak:  attempts(1),
			want:   field.ErrorList{forbidden(restartsPath), invalid(restartsPath)},
		},

		// Stages.
		"a stage opens":              {before: stages("a"), tweak: stages("a", "b")},
		"stages in another order":    {before: stages("a", "b"), tweak: stages("b", "a")},
		"stages close in an attempt": {before: all(attempts(1), stages("a", "b")), tweak: attempts(2)},
		"a stage does not close": {
			before: stages("a", "b"),
			tweak:  stages("b"),
			want:   field.ErrorList{invalid(replicas + "[0].openStages")},
		},
		"a stage is not lost with its entry": {
			before: stages("a"),
			tweak:  attempts(),
			want:   field.ErrorList{invalid(replicas + "[0].openStages")},
		},
		"stages go with their replica": {
			before: all(stages("a"), func(pcs *set) { pcs.Spec.Replicas = 0 }),
			tweak:  attempts(),
		},

		// Counts.
		"counts": {tweak: func(pcs *set) {
			status := &pcs.Status
			status.Replicas, status.UpdatedReplicas, status.AvailableReplicas, status.SucceededReplicas = 2, 1, 2, 1
			status.Pods, status.AvailablePods = 4, 3
		}},
		"counts may fall": {
			before: func(pcs *set) { pcs.Status.Replicas, pcs.Status.AvailableReplicas = 2, 2 },
			tweak:  func(pcs *set) { pcs.Status.AvailableReplicas = 0 },
		},
		"counts are not negative": {
			tweak: func(pcs *set) {
				status := &pcs.Status
				status.Replicas, status.UpdatedReplicas, status.AvailableReplicas, status.SucceededReplicas = -1, -1, -1, -1
				status.Pods, status.AvailablePods = -1, -1
			},
			want: field.ErrorList{
				invalid("status.replicas"), invalid("status.updatedReplicas"), invalid("status.availableReplicas"),
				invalid("status.succeededReplicas"), invalid("status.pods"), invalid("status.availablePods"),
			},
		},
		"parts are at most replicas": {
			before: func(pcs *set) { pcs.Status.Replicas = 1 },
			tweak: func(pcs *set) {
				pcs.Status.AvailableReplicas, pcs.Status.UpdatedReplicas, pcs.Status.SucceededReplicas = 2, 2, 2
			},
			want: field.ErrorList{invalid("status.availableReplicas"), invalid("status.updatedReplicas"), invalid("status.succeededReplicas")},
		},
		"parts that were more do not block": {
			before: func(pcs *set) { pcs.Status.Replicas, pcs.Status.AvailableReplicas = 1, 2 },
			tweak:  attempts(1),
		},
		"but no other part may be more": {
			before: func(pcs *set) { pcs.Status.Replicas, pcs.Status.AvailableReplicas = 1, 2 },
			tweak:  func(pcs *set) { pcs.Status.UpdatedReplicas = 2 },
			want:   field.ErrorList{invalid("status.updatedReplicas")},
		},
		"availablePods is at most pods in Training": {
			before: running,
			tweak:  func(pcs *set) { pcs.Status.Pods, pcs.Status.AvailablePods = 2, 3 },
			want:   field.ErrorList{invalid("status.availablePods")},
		},
		"availablePods lags a scale-in in Inference": {
			tweak: func(pcs *set) { pcs.Status.Pods, pcs.Status.AvailablePods = 2, 3 },
		},
	})
}

func withFalse(types ...string) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		pcs.Status.Conditions = nil
		for _, conditionType := range types {
			pcs.Status.Conditions = append(pcs.Status.Conditions, condition(conditionType, metav1.ConditionFalse))
		}
	}
}

func reverse(pcs *grove.PodCliqueSet) {
	list := pcs.Status.ReplicaStatuses
	list[0], list[1] = list[1], list[0]
}
