package validation

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestValidatePodCliqueSetAttempts(t *testing.T) {
	const (
		restartsPath = "status.restartCount"
		replicas     = "status.replicaStatuses"
	)
	type set = grove.PodCliqueSet
	running := all(training, setRunning)
	failing := all(running, setConditions(grovev1alpha1.ConditionTypeFailureTarget))
	succeeded := all(running, setSucceeded)

	testUpdate(t, mkPodCliqueSet, ValidatePodCliqueSetStatusUpdate, map[string]updateCase[set]{
		// Attempts and restarts.
		"one restart":                        {before: all(running, setAttempts(0, 1), setRestarts(1)), tweak: all(setAttempts(1, 1), setRestarts(2))},
		"two restarts in one write":          {before: all(running, setAttempts(0, 1), setRestarts(1)), tweak: all(setAttempts(1, 2), setRestarts(3))},
		"first restart of an unlisted one":   {before: running, tweak: all(setAttempts(1), setRestarts(1))},
		"attempt 0 needs no entry":           {before: all(running, setAttempts(0, 0)), tweak: setAttempts()},
		"attempt rises in Inference":         {before: setAttempts(1), tweak: setAttempts(2)},
		"attempts in Training without one":   {before: all(running, setAttempts(1), setRestarts(1)), tweak: setAttempts(1, 0)},
		"entries in another order":           {before: all(running, setAttempts(2, 1), setRestarts(3)), tweak: reverse},
		"entries are compared by index":      {before: all(running, setAttempts(2, 1), setRestarts(3)), tweak: all(setAttempts(1, 2)), want: field.ErrorList{invalid(replicas + "[0].attempt")}},
		"restartCount does not fall":         {before: all(running, setAttempts(2), setRestarts(2)), tweak: setRestarts(1), want: field.ErrorList{invalid(restartsPath), invalid(restartsPath)}},
		"restartCount rises with an attempt": {before: running, tweak: setRestarts(1), want: field.ErrorList{invalid(restartsPath)}},
		"an attempt rises with restartCount": {before: running, tweak: setAttempts(1), want: field.ErrorList{invalid(restartsPath)}},
		"restartCount rises by the sum":      {before: running, tweak: all(setAttempts(1, 1), setRestarts(1)), want: field.ErrorList{invalid(restartsPath)}},
		"restartCount stays 0 in Inference":  {tweak: all(setAttempts(1), setRestarts(1)), want: field.ErrorList{invalid(restartsPath)}},
		"restartCount is not negative":       {tweak: setRestarts(-1), want: field.ErrorList{invalid(restartsPath), invalid(restartsPath)}},
		"attempt does not fall": {
			before: setAttempts(2),
			tweak:  setAttempts(1),
			want:   field.ErrorList{invalid(replicas + "[0].attempt")},
		},
		"attempt is not negative": {
			tweak: setAttempts(-1),
			want:  field.ErrorList{invalid(replicas + "[0].attempt")},
		},
		"attempt is kept when its replica goes, in Inference": {
			before: setAttempts(0, 1),
			tweak:  setAttempts(0),
			want:   field.ErrorList{required(replicas)},
		},
		"attempt is kept in Training": {
			before: all(running, setAttempts(1), setRestarts(1)),
			tweak:  setAttempts(),
			want:   field.ErrorList{required(replicas)},
		},
		"index is not negative": {
			tweak: func(pcs *set) { pcs.Status.ReplicaStatuses = []grove.PodCliqueSetReplicaStatus{{Index: -1}} },
			want:  field.ErrorList{invalid(replicas + "[0].index")},
		},
		"a lower attempt is not hidden behind a second entry": {
			before: setAttempts(2),
			tweak: func(pcs *set) {
				pcs.Status.ReplicaStatuses = append(pcs.Status.ReplicaStatuses, grove.PodCliqueSetReplicaStatus{Index: 0, Attempt: 1})
			},
			want: field.ErrorList{duplicate(replicas + "[1].index"), invalid(replicas + "[1].attempt")},
		},
		"an attempt rises by one": {
			before: all(running, setAttempts(1), setRestarts(1)),
			tweak:  all(setAttempts(3), setRestarts(3)),
			want:   field.ErrorList{invalid(replicas + "[0].attempt")},
		},
		"an attempt rises by one in Inference": {
			tweak: setAttempts(2),
			want:  field.ErrorList{invalid(replicas + "[0].attempt")},
		},
		"the last restart of the budget": {before: all(running, setAttempts(2), setRestarts(2)), tweak: all(setAttempts(3), setRestarts(3))},
		"restartCount does not rise above the budget": {
			before: all(running, setAttempts(3), setRestarts(3)),
			tweak:  all(setAttempts(4), setRestarts(4)),
			want:   field.ErrorList{invalid(restartsPath)},
		},
		"without a budget there is no restart": {
			before: all(running, func(pcs *set) { pcs.Spec.TrainingSpec = nil }),
			tweak:  all(setAttempts(1), setRestarts(1)),
			want:   field.ErrorList{invalid(restartsPath)},
		},
		"a budget that was lowered does not block": {
			before: all(running, setAttempts(3), setRestarts(3), func(pcs *set) { pcs.Spec.TrainingSpec.MaxRestarts = nil }),
			tweak:  setConditions(grovev1alpha1.ConditionTypeFailureTarget),
		},
		"no restart after FailureTarget": {
			before: failing,
			tweak:  all(setAttempts(1), setRestarts(1)),
			want:   field.ErrorList{forbidden(restartsPath)},
		},
		"no restart with FailureTarget": {
			before: running,
			tweak:  all(setAttempts(1), setRestarts(1), setConditions(grovev1alpha1.ConditionTypeFailureTarget)),
			want:   field.ErrorList{forbidden(restartsPath)},
		},
		"no restart after the end": {
			before: succeeded,
			tweak:  all(setAttempts(1), setRestarts(1)),
			want:   field.ErrorList{forbidden(restartsPath)},
		},
		"no restart with the end": {
			before: running,
			tweak:  all(setSucceeded, setAttempts(1), setRestarts(1)),
			want:   field.ErrorList{forbidden(restartsPath)},
		},
		"a count alone is no restart either": {
			before: failing,
			tweak:  setRestarts(1),
			want:   field.ErrorList{forbidden(restartsPath), invalid(restartsPath)},
		},
		"an attempt alone is no restart either": {
			before: failing,
			tweak:  setAttempts(1),
			want:   field.ErrorList{forbidden(restartsPath), invalid(restartsPath)},
		},

		// Stages.
		"a stage opens":              {before: setStages("a"), tweak: setStages("a", "b")},
		"stages in another order":    {before: setStages("a", "b"), tweak: setStages("b", "a")},
		"stages close in an attempt": {before: all(setAttempts(1), setStages("a", "b")), tweak: setAttempts(2)},
		"a stage does not close": {
			before: setStages("a", "b"),
			tweak:  setStages("b"),
			want:   field.ErrorList{invalid(replicas + "[0].openStages")},
		},
		"a stage is not lost with its entry": {
			before: setStages("a"),
			tweak:  setAttempts(),
			want:   field.ErrorList{invalid(replicas + "[0].openStages")},
		},
		"stages go with their replica": {
			before: all(setStages("a"), func(pcs *set) { pcs.Spec.Replicas = 0 }),
			tweak:  setAttempts(),
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
			tweak:  setAttempts(1),
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

func reverse(pcs *grove.PodCliqueSet) {
	list := pcs.Status.ReplicaStatuses
	list[0], list[1] = list[1], list[0]
}
