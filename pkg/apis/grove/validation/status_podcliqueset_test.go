package validation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// What moves the phase, its conditions and its times.
func TestValidatePodCliqueSetStatusUpdate(t *testing.T) {
	const (
		phasePath      = "status.phase"
		conditionsPath = "status.conditions"
		completionPath = "status.completionTime"
	)
	type set = grove.PodCliqueSet
	transition := func(seconds int64) func(*set) {
		return func(pcs *set) {
			pcs.Status.Conditions = []metav1.Condition{{Type: "Any", Status: metav1.ConditionTrue, LastTransitionTime: *at(seconds)}}
		}
	}
	running := all(training, setRunning)
	failing := all(running, setConditions(grovev1alpha1.ConditionTypeFailureTarget))
	failed, succeeded := all(failing, setFailed), all(running, setSucceeded)
	testUpdate(t, mkPodCliqueSet, ValidatePodCliqueSetStatusUpdate, map[string]updateCase[set]{
		"nothing changes": {},
		"metadata is checked": {
			tweak: func(pcs *set) { pcs.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"status of an invalid spec may change": {
			before: func(pcs *set) { pcs.Spec.Replicas = 30000 },
			tweak:  setRunning,
		},

		// Phases.
		"pending":                   {tweak: setPhase(grove.PodCliqueSetPending)},
		"running in Inference":      {tweak: setRunning},
		"running to pending":        {before: running, tweak: setPhase(grove.PodCliqueSetPending)},
		"failure target":            {before: running, tweak: setConditions(grovev1alpha1.ConditionTypeFailureTarget)},
		"failure target to failed":  {before: failing, tweak: setFailed},
		"running to succeeded":      {before: running, tweak: setSucceeded},
		"pending to succeeded":      {before: all(training, setPhase(grove.PodCliqueSetPending)), tweak: setSucceeded},
		"a finished set stays so":   {before: succeeded, tweak: func(pcs *set) { pcs.Status.ObservedGeneration = ptr.To[int64](4) }},
		"False conditions mean no":  {before: training, tweak: withFalse(grovev1alpha1.ConditionTypeFailed, grovev1alpha1.ConditionTypeSucceeded, grovev1alpha1.ConditionTypeFailureTarget)},
		"other conditions are free": {tweak: setConditions(grovev1alpha1.ConditionTypeUpdatePending)},
		"phase is known": {
			tweak: setPhase("Restarting"),
			want:  field.ErrorList{unsupported(phasePath)},
		},
		"Succeeded is final": {
			before: succeeded,
			tweak:  all(setPhase(grove.PodCliqueSetRunning), setConditions()),
			want:   field.ErrorList{invalid(phasePath), invalid(completionPath)},
		},
		"Succeeded does not become Failed": {
			before: succeeded,
			tweak:  setFailed,
			want:   field.ErrorList{invalid(phasePath), invalid(conditionsPath)},
		},
		"Failed is final": {
			before: failed,
			tweak:  all(setPhase(grove.PodCliqueSetRunning), setConditions(grovev1alpha1.ConditionTypeFailureTarget)),
			want:   field.ErrorList{invalid(phasePath), invalid(completionPath)},
		},
		"a finished phase is not dropped": {
			before: succeeded,
			tweak:  all(setPhase(""), setConditions()),
			want:   field.ErrorList{invalid(phasePath), invalid(completionPath)},
		},
		"Running is not emptied": {
			before: running,
			tweak:  setPhase(""),
			want:   field.ErrorList{required(phasePath)},
		},
		"Pending is not emptied": {
			before: all(training, setPhase(grove.PodCliqueSetPending)),
			tweak:  setPhase(""),
			want:   field.ErrorList{required(phasePath)},
		},
		"phase Succeeded needs its condition": {
			before: running,
			tweak:  all(setPhase(grove.PodCliqueSetSucceeded), setCompleted, setAllSucceeded),
			want:   field.ErrorList{invalid(phasePath)},
		},
		"condition Succeeded needs its phase": {
			before: running,
			tweak:  setConditions(grovev1alpha1.ConditionTypeSucceeded),
			want:   field.ErrorList{invalid(phasePath)},
		},
		"phase Failed needs its condition": {
			before: failing,
			tweak:  all(setPhase(grove.PodCliqueSetFailed), setCompleted),
			want:   field.ErrorList{invalid(phasePath)},
		},
		"condition Failed needs its phase": {
			before: failing,
			tweak:  setConditions(grovev1alpha1.ConditionTypeFailureTarget, grovev1alpha1.ConditionTypeFailed),
			want:   field.ErrorList{invalid(phasePath)},
		},
		"Failed needs FailureTarget": {
			before: running,
			tweak:  all(setFailed, setConditions(grovev1alpha1.ConditionTypeFailed)),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"Failed needs FailureTarget of an earlier write": {
			before: running,
			tweak:  setFailed,
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"FailureTarget keeps any reason": {
			before: all(running, setReasons("StartBarrierExpired", "")),
			tweak:  func(pcs *set) { pcs.Status.AvailablePods, pcs.Status.Pods = 1, 2 },
		},
		"the reason of FailureTarget does not change": {
			before: all(running, setReasons("MaxRuntimeExceeded", "")),
			tweak:  setReasons("MaxRestartsExceeded", ""),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"Failed has the reason of FailureTarget": {
			before: all(running, setReasons("MaxRuntimeExceeded", "")),
			tweak:  all(setFailed, setReasons("MaxRuntimeExceeded", "MaxRuntimeExceeded")),
		},
		"Failed has no other reason": {
			before: all(running, setReasons("MaxRuntimeExceeded", "")),
			tweak:  all(setFailed, setReasons("MaxRuntimeExceeded", "MaxRestartsExceeded")),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"Succeeded counts every replica": {
			before: running,
			tweak:  all(setSucceeded, func(pcs *set) { pcs.Status.Replicas, pcs.Status.SucceededReplicas = 2, 2 }),
			want:   field.ErrorList{invalid("status.succeededReplicas")},
		},
		"Succeeded needs every replica": {
			before: all(running, func(pcs *set) { pcs.Spec.Replicas = 2 }),
			tweak:  setSucceeded,
			want:   field.ErrorList{invalid("status.succeededReplicas")},
		},
		"replicas of a set that has succeeded may go": {
			before: succeeded,
			tweak:  func(pcs *set) { pcs.Status.Replicas, pcs.Status.SucceededReplicas = 0, 0 },
		},
		"startup is completed after it was in progress": {
			before: setConditions(grovev1alpha1.ConditionTypeStartupPolicyInProgress),
			tweak:  setConditions(grovev1alpha1.ConditionTypeStartupPolicyCompleted),
		},
		"startup is not in progress and completed": {
			before: setConditions(grovev1alpha1.ConditionTypeStartupPolicyInProgress),
			tweak:  setConditions(grovev1alpha1.ConditionTypeStartupPolicyInProgress, grovev1alpha1.ConditionTypeStartupPolicyCompleted),
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
			tweak:  all(setSucceeded, setConditions(grovev1alpha1.ConditionTypeFailureTarget, grovev1alpha1.ConditionTypeSucceeded)),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"FailureTarget is not dropped": {
			before: failing,
			tweak:  setConditions(),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"FailureTarget does not become False": {
			before: failing,
			tweak:  withFalse(grovev1alpha1.ConditionTypeFailureTarget),
			want:   field.ErrorList{invalid(conditionsPath)},
		},
		"an inference set does not succeed": {
			tweak: setSucceeded,
			want:  field.ErrorList{invalid(phasePath)},
		},
		"an inference set does not fail": {
			tweak: setFailed,
			want:  field.ErrorList{invalid(phasePath), invalid(conditionsPath)},
		},
		"an inference set has no FailureTarget": {
			tweak: setConditions(grovev1alpha1.ConditionTypeFailureTarget),
			want:  field.ErrorList{invalid(phasePath)},
		},
		"a succeeded set has a completionTime": {
			before: running,
			tweak:  all(setSucceeded, func(pcs *set) { pcs.Status.CompletionTime = nil }),
			want:   field.ErrorList{required("status.completionTime")},
		},
		"a failed set has a completionTime": {
			before: failing,
			tweak:  all(setFailed, func(pcs *set) { pcs.Status.CompletionTime = nil }),
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
			tweak:  all(setPhase(grove.PodCliqueSetPending), func(pcs *set) { pcs.Status.StartTime = nil }),
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
			tweak:  setPhase(grove.PodCliqueSetRunning),
			want:   field.ErrorList{required("status.startTime")},
		},
		"a set that ran without startTime may go on": {
			before: all(training, setPhase(grove.PodCliqueSetRunning)),
			tweak:  func(pcs *set) { pcs.Status.Pods = 2 },
		},
		"completionTime comes with the end": {
			before: running,
			tweak:  setCompleted,
			want:   field.ErrorList{invalid(completionPath)},
		},
		"completionTime is not before startTime": {
			before: running,
			tweak:  all(setSucceeded, func(pcs *set) { pcs.Status.CompletionTime = at(99) }),
			want:   field.ErrorList{invalid(completionPath)},
		},
		"completionTime within the second of startTime": {
			before: all(running, func(pcs *set) { pcs.Status.StartTime = ptr.To(metav1.Unix(100, 900)) }),
			tweak:  all(setSucceeded, func(pcs *set) { pcs.Status.CompletionTime = at(100) }),
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

// The functions below make moves of the status of a set.

func setPhase(phase grove.PodCliqueSetPhase) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) { pcs.Status.Phase = phase }
}

func setConditions(types ...string) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		pcs.Status.Conditions = nil
		for _, conditionType := range types {
			pcs.Status.Conditions = append(pcs.Status.Conditions, condition(conditionType, metav1.ConditionTrue))
		}
	}
}

// setReasons gives FailureTarget and Failed, unless empty, their reasons.
func setReasons(failureTarget, failed string) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		pcs.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue, Reason: failureTarget}}
		if failed != "" {
			pcs.Status.Conditions = append(pcs.Status.Conditions, metav1.Condition{Type: grovev1alpha1.ConditionTypeFailed, Status: metav1.ConditionTrue, Reason: failed})
		}
	}
}

// setAttempts gives replicas 0, 1, ... their attempts.
func setAttempts(attempts ...int32) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		pcs.Status.ReplicaStatuses = nil
		for i, attempt := range attempts {
			pcs.Status.ReplicaStatuses = append(pcs.Status.ReplicaStatuses, grove.PodCliqueSetReplicaStatus{Index: int32(i), Attempt: attempt})
		}
	}
}

// setStages opens stages of replica 0.
func setStages(names ...string) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		if len(pcs.Status.ReplicaStatuses) == 0 {
			pcs.Status.ReplicaStatuses = make([]grove.PodCliqueSetReplicaStatus, 1)
		}
		pcs.Status.ReplicaStatuses[0].OpenStages = names
	}
}

func setRestarts(n int32) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) { pcs.Status.RestartCount = n }
}

func setCompleted(pcs *grove.PodCliqueSet) { pcs.Status.CompletionTime = at(200) }

func setAllSucceeded(pcs *grove.PodCliqueSet) {
	pcs.Status.Replicas, pcs.Status.SucceededReplicas = 1, 1
}

func setRunning(pcs *grove.PodCliqueSet) {
	pcs.Status.Phase, pcs.Status.StartTime = grove.PodCliqueSetRunning, at(100)
}

func setFailed(pcs *grove.PodCliqueSet) {
	all(setPhase(grove.PodCliqueSetFailed), setCompleted, setConditions(grovev1alpha1.ConditionTypeFailureTarget, grovev1alpha1.ConditionTypeFailed))(pcs)
}

func setSucceeded(pcs *grove.PodCliqueSet) {
	all(setPhase(grove.PodCliqueSetSucceeded), setCompleted, setAllSucceeded, setConditions(grovev1alpha1.ConditionTypeSucceeded))(pcs)
}
