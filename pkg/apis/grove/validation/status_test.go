package validation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func at(seconds int64) *metav1.Time { return ptr.To(metav1.Unix(seconds, 0)) }

func TestValidatePodCliqueSetStatusUpdate(t *testing.T) {
	const (
		phasePath      = "status.phase"
		conditionsPath = "status.conditions"
		restartsPath   = "status.restartCount"
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
	restarts := func(n int32) func(*set) {
		return func(pcs *set) { pcs.Status.RestartCount = n }
	}
	running := all(training, phase(grove.PodCliqueSetRunning), func(pcs *set) { pcs.Status.StartTime = at(100) })
	failing := all(running, conditions(grovev1alpha1.ConditionTypeFailureTarget))
	toFailed := all(phase(grove.PodCliqueSetFailed), completed, conditions(grovev1alpha1.ConditionTypeFailureTarget, grovev1alpha1.ConditionTypeFailed))
	toSucceeded := all(phase(grove.PodCliqueSetSucceeded), completed, conditions(grovev1alpha1.ConditionTypeSucceeded))
	failed, succeeded := all(failing, toFailed), all(running, toSucceeded)

	testUpdate(t, mkPodCliqueSet, ValidatePodCliqueSetStatusUpdate, map[string]updateCase[set]{
		"nothing changes": {},
		"metadata is checked": {
			tweak: func(pcs *set) { pcs.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"status of an invalid spec may change": {
			before: func(pcs *set) { pcs.Spec.Replicas = 30000 },
			tweak:  phase(grove.PodCliqueSetRunning),
		},

		// Phases.
		"pending":                   {tweak: phase(grove.PodCliqueSetPending)},
		"running in Inference":      {tweak: phase(grove.PodCliqueSetRunning)},
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
			want:   field.ErrorList{invalid(phasePath)},
		},
		"Succeeded does not become Failed": {
			before: succeeded,
			tweak:  toFailed,
			want:   field.ErrorList{invalid(phasePath)},
		},
		"Failed is final": {
			before: failed,
			tweak:  all(phase(grove.PodCliqueSetRunning), conditions(grovev1alpha1.ConditionTypeFailureTarget)),
			want:   field.ErrorList{invalid(phasePath)},
		},
		"a finished phase is not dropped": {
			before: succeeded,
			tweak:  all(phase(""), conditions()),
			want:   field.ErrorList{invalid(phasePath)},
		},
		"phase Succeeded needs its condition": {
			before: running,
			tweak:  all(phase(grove.PodCliqueSetSucceeded), completed),
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
			want:  field.ErrorList{invalid(phasePath)},
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
			tweak:  func(pcs *set) { pcs.Status.StartTime = nil },
			want:   field.ErrorList{invalid("status.startTime")},
		},
		"completionTime is written once": {
			before: succeeded,
			tweak:  func(pcs *set) { pcs.Status.CompletionTime = at(201) },
			want:   field.ErrorList{invalid("status.completionTime")},
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
			want: field.ErrorList{duplicate(replicas + "[1].index")},
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
		"availableReplicas is at most replicas": {
			before: func(pcs *set) { pcs.Status.Replicas = 1 },
			tweak:  func(pcs *set) { pcs.Status.AvailableReplicas = 2 },
			want:   field.ErrorList{invalid("status.availableReplicas")},
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

func TestValidatePodCliqueStatusUpdate(t *testing.T) {
	type clique = grove.PodClique
	status := func(tweak func(*grove.PodCliqueStatus)) func(*clique) {
		return func(c *clique) { tweak(&c.Status) }
	}
	indexes := func(text string) func(*clique) {
		return status(func(s *grove.PodCliqueStatus) { s.CompletedIndexes = text })
	}
	succeeded := func(value metav1.ConditionStatus) func(*clique) {
		return status(func(s *grove.PodCliqueStatus) {
			s.Conditions = []metav1.Condition{condition(grovev1alpha1.ConditionTypeSucceeded, value)}
		})
	}
	attempt := func(spec, observed int32) func(*clique) {
		return func(c *clique) { c.Spec.Attempt, c.Status.ObservedAttempt = spec, observed }
	}
	created := func(attempt int32) func(*clique) {
		return status(func(s *grove.PodCliqueStatus) { s.CreatedAttempt = &attempt })
	}
	failed := func(indexes ...grove.FailedIndex) func(*clique) {
		return status(func(s *grove.PodCliqueStatus) { s.FailedIndexes = indexes })
	}
	wasAvailable := status(func(s *grove.PodCliqueStatus) { s.WasAvailable = true })
	fresh := status(func(s *grove.PodCliqueStatus) {
		s.CompletedIndexes, s.WasAvailable, s.Conditions, s.FailedIndexes = "", false, nil, nil
	})
	// used is a clique that has come to its end in attempt 1 of a spec that has gone on to 2.
	used := all(trainingClique, attempt(2, 1), indexes("0-2"), wasAvailable, succeeded(metav1.ConditionTrue), created(1), failed(grove.FailedIndex{Index: 1, Count: 2}))

	testUpdate(t, mkPodClique, ValidatePodCliqueStatusUpdate, map[string]updateCase[clique]{
		"nothing changes": {},
		"metadata is checked": {
			tweak: func(c *clique) { c.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"status of an invalid spec may change": {before: func(c *clique) { c.Spec.Replicas = 30000 }, tweak: wasAvailable},

		// Within an attempt.
		"completedIndexes grow":                  {before: indexes("0,2"), tweak: indexes("0-2,7")},
		"completedIndexes stay":                  {before: indexes("0-3,7")},
		"wasAvailable becomes true":              {tweak: wasAvailable},
		"Succeeded becomes True":                 {before: succeeded(metav1.ConditionFalse), tweak: succeeded(metav1.ConditionTrue)},
		"Succeeded may go while it is False":     {before: succeeded(metav1.ConditionFalse), tweak: fresh},
		"a count of failures may start anew":     {before: failed(grove.FailedIndex{Index: 1, Count: 5}), tweak: failed(grove.FailedIndex{Index: 1, Count: 1})},
		"createdAttempt is written":              {before: attempt(1, 1), tweak: created(1)},
		"createdAttempt rises":                   {before: all(attempt(2, 2), created(1)), tweak: created(2)},
		"completedIndexes do not shrink":         {before: indexes("0-3"), tweak: indexes("0-2"), want: field.ErrorList{invalid("status.completedIndexes")}},
		"completedIndexes are not dropped":       {before: indexes("0"), tweak: indexes(""), want: field.ErrorList{invalid("status.completedIndexes")}},
		"completedIndexes are not exchanged":     {before: indexes("0-2"), tweak: indexes("1-4"), want: field.ErrorList{invalid("status.completedIndexes")}},
		"completedIndexes can be read":           {tweak: indexes("0,1"), want: field.ErrorList{invalid("status.completedIndexes")}},
		"completedIndexes do not become no good": {before: indexes("0"), tweak: indexes("junk"), want: field.ErrorList{invalid("status.completedIndexes")}},
		"an attempt at its end stays so":         {before: used},
		"completedIndexes that were no good":     {before: indexes("junk"), tweak: indexes("0-1")},
		"completedIndexes that stay no good":     {before: indexes("junk"), want: field.ErrorList{invalid("status.completedIndexes")}},
		"wasAvailable stays true":                {before: wasAvailable, tweak: fresh, want: field.ErrorList{invalid("status.wasAvailable")}},
		"Succeeded stays True":                   {before: succeeded(metav1.ConditionTrue), tweak: succeeded(metav1.ConditionFalse), want: field.ErrorList{invalid("status.conditions")}},
		"Succeeded is not dropped":               {before: succeeded(metav1.ConditionTrue), tweak: fresh, want: field.ErrorList{invalid("status.conditions")}},
		"Succeeded does not become Unknown":      {before: succeeded(metav1.ConditionTrue), tweak: succeeded(metav1.ConditionUnknown), want: field.ErrorList{invalid("status.conditions")}},
		"the spec's attempt alone is no new one": {
			before: used,
			tweak:  fresh,
			want:   field.ErrorList{invalid("status.completedIndexes"), invalid("status.wasAvailable"), invalid("status.conditions")},
		},

		// Attempts.
		"everything starts anew with a higher attempt": {before: used, tweak: all(attempt(2, 2), fresh)},
		"observedAttempt is at most spec.attempt": {
			tweak: attempt(1, 2),
			want:  field.ErrorList{invalid("status.observedAttempt")},
		},
		"observedAttempt does not fall": {
			before: attempt(2, 2),
			tweak:  attempt(2, 1),
			want:   field.ErrorList{invalid("status.observedAttempt")},
		},
		"observedAttempt is not negative": {
			tweak: attempt(0, -1),
			want:  field.ErrorList{invalid("status.observedAttempt")},
		},
		"createdAttempt is not dropped": {
			before: created(0),
			tweak:  status(func(s *grove.PodCliqueStatus) { s.CreatedAttempt = nil }),
			want:   field.ErrorList{required("status.createdAttempt")},
		},
		"createdAttempt is not dropped by a new attempt": {
			before: used,
			tweak:  all(attempt(2, 2), fresh, status(func(s *grove.PodCliqueStatus) { s.CreatedAttempt = nil })),
			want:   field.ErrorList{required("status.createdAttempt")},
		},
		"createdAttempt does not fall": {
			before: all(attempt(2, 2), created(2)),
			tweak:  created(1),
			want:   field.ErrorList{invalid("status.createdAttempt")},
		},
		"createdAttempt is not negative": {
			tweak: created(-1),
			want:  field.ErrorList{invalid("status.createdAttempt")},
		},

		// Counts.
		"counts": {tweak: status(func(s *grove.PodCliqueStatus) {
			s.Replicas, s.ReadyReplicas, s.RunningReplicas, s.UpdatedReplicas = 3, 2, 3, 1
			s.ScheduledReplicas, s.ScheduleGatedReplicas, s.CreatedReplicas = 3, 0, 3
		})},
		"counts are not negative": {
			tweak: status(func(s *grove.PodCliqueStatus) {
				s.Replicas, s.ReadyReplicas, s.RunningReplicas, s.UpdatedReplicas = -1, -1, -1, -1
				s.ScheduledReplicas, s.ScheduleGatedReplicas, s.CreatedReplicas = -1, -1, -1
			}),
			want: field.ErrorList{
				invalid("status.replicas"), invalid("status.readyReplicas"), invalid("status.runningReplicas"),
				invalid("status.updatedReplicas"), invalid("status.scheduledReplicas"),
				invalid("status.scheduleGatedReplicas"), invalid("status.createdReplicas"),
			},
		},
		"failed indexes": {tweak: failed(grove.FailedIndex{Index: 0, Count: 1}, grove.FailedIndex{Index: 2, Count: 3})},
		"failed indexes are not negative": {
			tweak: failed(grove.FailedIndex{Index: -1, Count: 1}),
			want:  field.ErrorList{invalid("status.failedIndexes[0].index")},
		},
		"counts of failures are not negative": {
			tweak: failed(grove.FailedIndex{Index: 1, Count: -1}),
			want:  field.ErrorList{invalid("status.failedIndexes[0].count")},
		},
		"failed indexes are unique": {
			tweak: failed(grove.FailedIndex{Index: 1, Count: 1}, grove.FailedIndex{Index: 1, Count: 1}),
			want:  field.ErrorList{duplicate("status.failedIndexes[1].index")},
		},
	})
}

func TestValidatePodCliqueScalingGroupStatusUpdate(t *testing.T) {
	type scalingGroup = grove.PodCliqueScalingGroup
	attempts := func(attempts ...grove.ScalingGroupReplicaAttempt) func(*scalingGroup) {
		return func(g *scalingGroup) { g.Status.ReplicaAttempts = attempts }
	}
	one := grove.ScalingGroupReplicaAttempt{Index: 1, Attempt: 1}
	testUpdate(t, mkPodCliqueScalingGroup, ValidatePodCliqueScalingGroupStatusUpdate, map[string]updateCase[scalingGroup]{
		"nothing changes": {},
		"metadata is checked": {
			tweak: func(g *scalingGroup) { g.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"status of an invalid spec may change": {
			before: func(g *scalingGroup) { g.Spec.Replicas = 30000 },
			tweak:  func(g *scalingGroup) { g.Status.Replicas = 1 },
		},
		"a copy is recycled":       {before: attempts(one), tweak: attempts(grove.ScalingGroupReplicaAttempt{Index: 1, Attempt: 2, SetAttempt: 1})},
		"another copy is recycled": {before: attempts(one), tweak: attempts(grove.ScalingGroupReplicaAttempt{Attempt: 1}, one)},
		"attempt 0 needs no entry": {before: attempts(grove.ScalingGroupReplicaAttempt{Index: 1}), tweak: attempts()},
		"attempt does not fall": {
			before: attempts(grove.ScalingGroupReplicaAttempt{Index: 1, Attempt: 2}),
			tweak:  attempts(one),
			want:   field.ErrorList{invalid("status.replicaAttempts[1]")},
		},
		"attempt is kept when its copy goes": {
			before: attempts(one),
			tweak:  attempts(),
			want:   field.ErrorList{invalid("status.replicaAttempts[1]")},
		},
		"attempt is not negative": {
			tweak: attempts(grove.ScalingGroupReplicaAttempt{Attempt: -1}),
			want:  field.ErrorList{invalid("status.replicaAttempts[0].attempt")},
		},
		"index is not negative": {
			tweak: attempts(grove.ScalingGroupReplicaAttempt{Index: -1}),
			want:  field.ErrorList{invalid("status.replicaAttempts[0].index")},
		},
		"a lower attempt is not hidden before a second entry": {
			before: attempts(one),
			tweak:  attempts(grove.ScalingGroupReplicaAttempt{Index: 1}, one),
			want:   field.ErrorList{duplicate("status.replicaAttempts[1].index")},
		},
		"counts": {tweak: func(g *scalingGroup) {
			g.Status.Replicas, g.Status.ScheduledReplicas, g.Status.AvailableReplicas, g.Status.UpdatedReplicas = 3, 3, 3, 1
		}},
		"counts are not negative": {
			tweak: func(g *scalingGroup) {
				g.Status.Replicas, g.Status.ScheduledReplicas, g.Status.AvailableReplicas, g.Status.UpdatedReplicas = -1, -1, -1, -1
			},
			want: field.ErrorList{
				invalid("status.replicas"), invalid("status.scheduledReplicas"),
				invalid("status.availableReplicas"), invalid("status.updatedReplicas"),
			},
		},
		"availableReplicas is at most replicas": {
			before: func(g *scalingGroup) { g.Status.Replicas = 1 },
			tweak:  func(g *scalingGroup) { g.Status.AvailableReplicas = 2 },
			want:   field.ErrorList{invalid("status.availableReplicas")},
		},
	})
}
