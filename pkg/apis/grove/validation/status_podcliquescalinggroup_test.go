package validation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestValidatePodCliqueScalingGroupStatusUpdate(t *testing.T) {
	type scalingGroup = grove.PodCliqueScalingGroup
	attempts := func(attempts ...grove.ScalingGroupReplicaAttempt) func(*scalingGroup) {
		return func(g *scalingGroup) { g.Status.ReplicaAttempts = attempts }
	}
	observed := func(attempt int32) func(*scalingGroup) {
		return func(g *scalingGroup) { g.Status.ObservedAttempt = attempt }
	}
	transition := func(seconds int64) func(*scalingGroup) {
		return func(g *scalingGroup) {
			g.Status.Conditions = []metav1.Condition{{Type: "Any", Status: metav1.ConditionTrue, LastTransitionTime: *at(seconds)}}
		}
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
		"a copy is recycled":       {before: all(attempts(one), observed(1)), tweak: attempts(grove.ScalingGroupReplicaAttempt{Index: 1, Attempt: 2, SetAttempt: 1})},
		"another copy is recycled": {before: attempts(one), tweak: attempts(grove.ScalingGroupReplicaAttempt{Attempt: 1}, one)},
		"attempt 0 needs no entry": {before: attempts(grove.ScalingGroupReplicaAttempt{Index: 1}), tweak: attempts()},
		"attempt does not fall": {
			before: attempts(grove.ScalingGroupReplicaAttempt{Index: 1, Attempt: 2}),
			tweak:  attempts(one),
			want:   field.ErrorList{invalid("status.replicaAttempts[0].attempt")},
		},
		"attempt is kept when its copy goes": {
			before: attempts(one),
			tweak:  attempts(),
			want:   field.ErrorList{required("status.replicaAttempts")},
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
			want:   field.ErrorList{invalid("status.replicaAttempts[0].attempt"), duplicate("status.replicaAttempts[1].index")},
		},
		"an attempt rises by one": {
			before: attempts(one),
			tweak:  attempts(grove.ScalingGroupReplicaAttempt{Index: 1, Attempt: 3}),
			want:   field.ErrorList{invalid("status.replicaAttempts[0].attempt")},
		},
		"no copy is recycled in Training": {
			before: func(g *scalingGroup) { g.Spec.WorkloadType = grove.WorkloadTypeTraining },
			tweak:  attempts(one),
			want:   field.ErrorList{forbidden("status.replicaAttempts[0].attempt")},
		},
		"what is recorded in Training does not block": {
			before: all(attempts(one), func(g *scalingGroup) { g.Spec.WorkloadType = grove.WorkloadTypeTraining }),
			tweak:  observed(1),
		},
		"setAttempt does not fall": {
			before: all(observed(2), attempts(grove.ScalingGroupReplicaAttempt{Index: 1, Attempt: 1, SetAttempt: 2})),
			tweak:  attempts(grove.ScalingGroupReplicaAttempt{Index: 1, Attempt: 2, SetAttempt: 1}),
			want:   field.ErrorList{invalid("status.replicaAttempts[0].setAttempt")},
		},
		"setAttempt rises only with attempt": {
			before: all(observed(1), attempts(one)),
			tweak:  attempts(grove.ScalingGroupReplicaAttempt{Index: 1, Attempt: 1, SetAttempt: 1}),
			want:   field.ErrorList{invalid("status.replicaAttempts[0].setAttempt")},
		},
		"setAttempt is at most observedAttempt": {
			before: all(observed(1), attempts(one)),
			tweak:  attempts(grove.ScalingGroupReplicaAttempt{Index: 1, Attempt: 2, SetAttempt: 2}),
			want:   field.ErrorList{invalid("status.replicaAttempts[0].setAttempt")},
		},
		"setAttempt is not negative": {
			tweak: attempts(grove.ScalingGroupReplicaAttempt{SetAttempt: -1}),
			want:  field.ErrorList{invalid("status.replicaAttempts[0].setAttempt")},
		},
		"observedAttempt rises": {before: observed(1), tweak: observed(3)},
		"observedAttempt does not fall": {
			before: observed(2),
			tweak:  observed(1),
			want:   field.ErrorList{invalid("status.observedAttempt")},
		},
		"a breach": {tweak: func(g *scalingGroup) {
			g.Status.Conditions = []metav1.Condition{condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionTrue)}
		}},
		"time of a transition does not go back": {
			before: transition(100),
			tweak:  transition(99),
			want:   field.ErrorList{invalid("status.conditions[0].lastTransitionTime")},
		},
		"time of a transition goes on": {before: transition(100), tweak: transition(101)},
		"parts that were more do not block": {
			before: func(g *scalingGroup) { g.Status.Replicas, g.Status.AvailableReplicas = 1, 2 },
			tweak:  observed(1),
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
		"parts are at most replicas": {
			before: func(g *scalingGroup) { g.Status.Replicas = 1 },
			tweak: func(g *scalingGroup) {
				g.Status.AvailableReplicas, g.Status.ScheduledReplicas, g.Status.UpdatedReplicas = 2, 2, 2
			},
			want: field.ErrorList{invalid("status.availableReplicas"), invalid("status.scheduledReplicas"), invalid("status.updatedReplicas")},
		},
	})
}
