package validation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestValidatePodCliqueStatusUpdate(t *testing.T) {
	type clique = grove.PodClique
	status := func(tweak func(*grove.PodCliqueStatus)) func(*clique) {
		return func(c *clique) { tweak(&c.Status) }
	}
	size := func(replicas int32) func(*clique) {
		return func(c *clique) { c.Spec.Replicas = replicas }
	}
	indexes := func(text string) func(*clique) {
		return status(func(s *grove.PodCliqueStatus) { s.CompletedIndexes = text })
	}
	succeeded := func(value metav1.ConditionStatus) func(*clique) {
		return status(func(s *grove.PodCliqueStatus) {
			s.Conditions = []metav1.Condition{condition(grovev1alpha1.ConditionTypeSucceeded, value)}
		})
	}
	failing := func(value metav1.ConditionStatus) func(*clique) {
		return status(func(s *grove.PodCliqueStatus) {
			s.Conditions = []metav1.Condition{condition(grovev1alpha1.ConditionTypeFailureTarget, value)}
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
	breached := func(reason string) func(*clique) {
		return status(func(s *grove.PodCliqueStatus) {
			s.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionTrue, Reason: reason}}
		})
	}
	transition := func(seconds int64) func(*clique) {
		return status(func(s *grove.PodCliqueStatus) {
			s.Conditions = []metav1.Condition{{Type: "Any", Status: metav1.ConditionTrue, LastTransitionTime: *at(seconds)}}
		})
	}
	failedAt := func(index, count int32, seconds int64) grove.FailedIndex {
		return grove.FailedIndex{Index: index, Count: count, LastTime: *at(seconds)}
	}
	many := func(first int32, count int) []grove.FailedIndex {
		var out []grove.FailedIndex
		for i := range int32(count) {
			out = append(out, failedAt(first+i, 1, 100))
		}
		return out
	}
	recovered := func(failed grove.FailedIndex, seconds int64) grove.FailedIndex {
		failed.RecoveredTime = at(seconds)
		return failed
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
		"completedIndexes grow":                  {before: indexes("0"), tweak: indexes("0,2")},
		"completedIndexes stay":                  {before: indexes("0,2")},
		"wasAvailable becomes true":              {tweak: wasAvailable},
		"Succeeded becomes True":                 {before: all(trainingClique, succeeded(metav1.ConditionFalse)), tweak: all(indexes("0-2"), succeeded(metav1.ConditionTrue))},
		"Succeeded may go while it is False":     {before: succeeded(metav1.ConditionFalse), tweak: fresh},
		"a count of failures may start anew":     {before: failed(failedAt(1, 5, 100)), tweak: failed(failedAt(1, 1, 101))},
		"createdAttempt is written":              {before: attempt(1, 1), tweak: created(1)},
		"createdAttempt rises":                   {before: all(attempt(2, 2), created(1)), tweak: created(2)},
		"completedIndexes do not shrink":         {before: indexes("0-3"), tweak: indexes("0-2"), want: field.ErrorList{invalid("status.completedIndexes")}},
		"completedIndexes are not dropped":       {before: indexes("0"), tweak: indexes(""), want: field.ErrorList{invalid("status.completedIndexes")}},
		"completedIndexes are not exchanged":     {before: indexes("0-1"), tweak: indexes("1-2"), want: field.ErrorList{invalid("status.completedIndexes")}},
		"completedIndexes can be read":           {tweak: indexes("0,1"), want: field.ErrorList{invalid("status.completedIndexes")}},
		"completedIndexes do not become no good": {before: indexes("0"), tweak: indexes("junk"), want: field.ErrorList{invalid("status.completedIndexes")}},
		"an attempt at its end stays so":         {before: used},
		"completedIndexes that were no good":     {before: indexes("junk"), tweak: indexes("0-1")},
		"completedIndexes that stay no good":     {before: indexes("junk"), want: field.ErrorList{invalid("status.completedIndexes")}},
		"wasAvailable stays true":                {before: wasAvailable, tweak: fresh, want: field.ErrorList{invalid("status.wasAvailable")}},
		"wasAvailable ends when it is idle":      {before: all(wasAvailable, size(0)), tweak: fresh},
		"it may stay":                            {before: all(wasAvailable, size(0))},
		"wasAvailable stays true at size 1":      {before: all(wasAvailable, size(1)), tweak: fresh, want: field.ErrorList{invalid("status.wasAvailable")}},
		"an idle clique is in no breach": {
			before: all(wasAvailable, size(0), breached(grovev1alpha1.ReasonInsufficientReadyPods)),
			tweak:  status(func(s *grove.PodCliqueStatus) { s.WasAvailable = false }),
			want:   field.ErrorList{invalid("status.conditions")},
		},
		"an idle clique keeps the rest": {
			before: all(used, size(0)),
			tweak:  fresh,
			want:   field.ErrorList{invalid("status.completedIndexes"), invalid("status.conditions")},
		},
		"it is the stored size that is idle": {
			before: used,
			tweak:  all(size(0), fresh),
			want:   field.ErrorList{invalid("status.completedIndexes"), invalid("status.wasAvailable"), invalid("status.conditions")},
		},
		"FailureTarget stays True":          {before: failing(metav1.ConditionTrue), tweak: failing(metav1.ConditionFalse), want: field.ErrorList{invalid("status.conditions")}},
		"FailureTarget is not dropped":      {before: failing(metav1.ConditionTrue), tweak: status(func(s *grove.PodCliqueStatus) { s.Conditions = nil }), want: field.ErrorList{invalid("status.conditions")}},
		"FailureTarget becomes True":        {before: failing(metav1.ConditionFalse), tweak: failing(metav1.ConditionTrue)},
		"Succeeded stays True":              {before: succeeded(metav1.ConditionTrue), tweak: succeeded(metav1.ConditionFalse), want: field.ErrorList{invalid("status.conditions")}},
		"Succeeded is not dropped":          {before: succeeded(metav1.ConditionTrue), tweak: fresh, want: field.ErrorList{invalid("status.conditions")}},
		"Succeeded does not become Unknown": {before: succeeded(metav1.ConditionTrue), tweak: succeeded(metav1.ConditionUnknown), want: field.ErrorList{invalid("status.conditions")}},
		"the spec's attempt alone is no new one": {
			before: used,
			tweak:  fresh,
			want:   field.ErrorList{invalid("status.completedIndexes"), invalid("status.wasAvailable"), invalid("status.conditions"), required("status.failedIndexes")},
		},

		"completedIndexes are below replicas": {
			tweak: indexes("0-3"),
			want:  field.ErrorList{invalid("status.completedIndexes")},
		},
		"completedIndexes of an earlier size stay": {before: indexes("0,7"), tweak: indexes("0-1,7")},
		"completedIndexes of an earlier size are no licence": {
			before: indexes("0,7"),
			tweak:  indexes("0,6-7"),
			want:   field.ErrorList{invalid("status.completedIndexes")},
		},
		"Succeeded needs Training": {
			tweak: all(indexes("0-2"), succeeded(metav1.ConditionTrue)),
			want:  field.ErrorList{invalid("status.conditions")},
		},
		"Succeeded needs every index": {
			before: trainingClique,
			tweak:  all(indexes("0,2"), succeeded(metav1.ConditionTrue)),
			want:   field.ErrorList{invalid("status.conditions")},
		},
		"a breach of what was available":  {before: wasAvailable, tweak: breached(grovev1alpha1.ReasonInsufficientReadyPods)},
		"a breach by failures":            {before: trainingClique, tweak: breached(grovev1alpha1.ReasonPodsFailed)},
		"no breach before it was there":   {before: trainingClique, tweak: breached(grovev1alpha1.ReasonInsufficientReadyPods), want: field.ErrorList{invalid("status.conditions")}},
		"no failures breach in Inference": {tweak: breached(grovev1alpha1.ReasonPodsFailed), want: field.ErrorList{invalid("status.conditions")}},
		"a breach that is there does not block": {
			before: breached(grovev1alpha1.ReasonInsufficientReadyPods),
			tweak:  status(func(s *grove.PodCliqueStatus) { s.Replicas = 1 }),
		},
		"time of a transition does not go back": {
			before: transition(100),
			tweak:  transition(99),
			want:   field.ErrorList{invalid("status.conditions[0].lastTransitionTime")},
		},
		"time of a transition goes on": {before: transition(100), tweak: transition(101)},

		// Failures.
		"an index fails again":        {before: failed(failedAt(1, 1, 100)), tweak: failed(failedAt(1, 2, 100))},
		"another index fails":         {before: failed(failedAt(1, 1, 100)), tweak: failed(failedAt(0, 1, 90), failedAt(1, 1, 100))},
		"an index recovers":           {before: failed(failedAt(1, 1, 100)), tweak: failed(recovered(failedAt(1, 1, 100), 100))},
		"an index fails once more":    {before: failed(recovered(failedAt(1, 1, 100), 100)), tweak: failed(failedAt(1, 2, 101))},
		"failures go with their size": {before: failed(failedAt(1, 1, 100), failedAt(3, 1, 100)), tweak: failed(failedAt(1, 1, 100))},
		"a failure is not forgotten": {
			before: failed(failedAt(1, 1, 100), failedAt(2, 1, 100)),
			tweak:  failed(failedAt(1, 1, 100)),
			want:   field.ErrorList{required("status.failedIndexes")},
		},
		"one that has recovered is not forgotten": {
			before: failed(recovered(failedAt(1, 1, 100), 100)),
			tweak:  failed(),
			want:   field.ErrorList{required("status.failedIndexes")},
		},
		"one that has recovered makes room for another": {
			before: failed(append([]grove.FailedIndex{recovered(failedAt(0, 1, 100), 100)}, many(1, grovev1alpha1.MaxFailedIndexes-1)...)...),
			tweak:  failed(many(1, grovev1alpha1.MaxFailedIndexes)...),
		},
		"one that has not recovered makes none": {
			before: failed(append([]grove.FailedIndex{failedAt(0, 1, 100)}, many(1, grovev1alpha1.MaxFailedIndexes-1)...)...),
			tweak:  failed(many(1, grovev1alpha1.MaxFailedIndexes)...),
			want:   field.ErrorList{required("status.failedIndexes")},
		},
		"the time of a failure does not go back": {
			before: failed(failedAt(1, 1, 100)),
			tweak:  failed(failedAt(1, 2, 99)),
			want:   field.ErrorList{invalid("status.failedIndexes[0].lastTime")},
		},
		"a count does not start anew without a failure": {
			before: failed(failedAt(1, 5, 100)),
			tweak:  failed(failedAt(1, 1, 100)),
			want:   field.ErrorList{invalid("status.failedIndexes[0].count")},
		},
		"a count does not fall to more than 1": {
			before: failed(failedAt(1, 5, 100)),
			tweak:  failed(failedAt(1, 2, 101)),
			want:   field.ErrorList{invalid("status.failedIndexes[0].count")},
		},
		"a count does not fall to 0": {
			before: failed(failedAt(1, 5, 100)),
			tweak:  failed(failedAt(1, 0, 101)),
			want:   field.ErrorList{invalid("status.failedIndexes[0].count")},
		},
		"no index recovers before it fails": {
			before: failed(failedAt(1, 1, 100)),
			tweak:  failed(recovered(failedAt(1, 1, 100), 99)),
			want:   field.ErrorList{invalid("status.failedIndexes[0].recoveredTime")},
		},
		"a recovery that was before does not block": {
			before: failed(recovered(failedAt(1, 1, 100), 99)),
			tweak:  failed(failedAt(0, 1, 100), recovered(failedAt(1, 1, 100), 99)),
		},

		// Attempts.
		"everything starts anew with a higher attempt": {before: used, tweak: all(attempt(2, 2), fresh)},
		"nothing of an old attempt comes along": {
			before: used,
			tweak:  attempt(2, 2),
			want: field.ErrorList{
				invalid("status.completedIndexes"), invalid("status.failedIndexes"), invalid("status.wasAvailable"), invalid("status.conditions"),
			},
		},
		"no breach comes along": {
			before: all(trainingClique, attempt(2, 1), breached(grovev1alpha1.ReasonPodsFailed)),
			tweak:  attempt(2, 2),
			want:   field.ErrorList{invalid("status.conditions")},
		},
		"a clique of nothing is available at once": {
			before: func(c *clique) { c.Spec.Replicas = 0 },
			tweak:  all(attempt(1, 1), wasAvailable),
		},
		"a new attempt that is available": {
			before: attempt(1, 0),
			tweak:  all(attempt(1, 1), wasAvailable, status(func(s *grove.PodCliqueStatus) { s.Replicas, s.ReadyReplicas = 3, 2 })),
		},
		"a new attempt that is not available yet": {
			before: attempt(1, 0),
			tweak:  all(attempt(1, 1), wasAvailable, status(func(s *grove.PodCliqueStatus) { s.Replicas, s.ReadyReplicas = 3, 1 })),
			want:   field.ErrorList{invalid("status.wasAvailable")},
		},
		"an observedAttempt that was more does not block": {before: attempt(1, 2), tweak: wasAvailable},
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
		"createdAttempt is at most observedAttempt": {
			before: attempt(2, 1),
			tweak:  created(2),
			want:   field.ErrorList{invalid("status.createdAttempt")},
		},
		"a createdAttempt that was more does not block": {before: all(attempt(2, 1), created(2)), tweak: wasAvailable},
		"createdAttempt is not negative": {
			tweak: created(-1),
			want:  field.ErrorList{invalid("status.createdAttempt")},
		},

		// Counts.
		"counts": {tweak: status(func(s *grove.PodCliqueStatus) {
			s.Replicas, s.ReadyReplicas, s.RunningReplicas, s.UpdatedReplicas = 3, 2, 3, 1
			s.ScheduledReplicas, s.ScheduleGatedReplicas, s.CreatedReplicas, s.OldReplicas = 3, 0, 3, 5
		})},
		"counts are not negative": {
			tweak: status(func(s *grove.PodCliqueStatus) {
				s.Replicas, s.ReadyReplicas, s.RunningReplicas, s.UpdatedReplicas = -1, -1, -1, -1
				s.ScheduledReplicas, s.ScheduleGatedReplicas, s.CreatedReplicas, s.OldReplicas = -1, -1, -1, -1
				s.StartedReplicas = -1
			}),
			want: field.ErrorList{
				invalid("status.replicas"), invalid("status.readyReplicas"), invalid("status.runningReplicas"),
				invalid("status.updatedReplicas"), invalid("status.scheduledReplicas"),
				invalid("status.scheduleGatedReplicas"), invalid("status.createdReplicas"), invalid("status.oldReplicas"), invalid("status.startedReplicas"),
			},
		},
		"parts are at most replicas": {
			tweak: status(func(s *grove.PodCliqueStatus) {
				s.Replicas, s.ReadyReplicas, s.RunningReplicas, s.UpdatedReplicas = 1, 2, 2, 2
				s.ScheduledReplicas, s.ScheduleGatedReplicas, s.StartedReplicas = 2, 2, 2
			}),
			want: field.ErrorList{
				invalid("status.readyReplicas"), invalid("status.runningReplicas"), invalid("status.updatedReplicas"),
				invalid("status.scheduledReplicas"), invalid("status.scheduleGatedReplicas"), invalid("status.startedReplicas"),
			},
		},
		"parts that were more do not block": {
			before: status(func(s *grove.PodCliqueStatus) { s.ReadyReplicas = 2 }),
			tweak:  wasAvailable,
		},
		"failed indexes": {tweak: failed(grove.FailedIndex{Index: 0, Count: 1}, grove.FailedIndex{Index: 2, Count: 3})},
		"failed indexes are not negative": {
			tweak: failed(grove.FailedIndex{Index: -1, Count: 1}),
			want:  field.ErrorList{invalid("status.failedIndexes[0].index")},
		},
		"counts of failures are not negative": {
			tweak: failed(grove.FailedIndex{Index: 1, Count: -1}),
			want:  field.ErrorList{invalid("status.failedIndexes[0].count"), invalid("status.failedIndexes[0].count")},
		},
		"failed indexes are in order": {
			tweak: failed(grove.FailedIndex{Index: 2, Count: 1}, grove.FailedIndex{Index: 1, Count: 1}),
			want:  field.ErrorList{invalid("status.failedIndexes[1].index")},
		},
		"failed indexes are unique": {
			tweak: failed(grove.FailedIndex{Index: 1, Count: 1}, grove.FailedIndex{Index: 1, Count: 1}),
			want:  field.ErrorList{duplicate("status.failedIndexes[1].index")},
		},
	})
}
