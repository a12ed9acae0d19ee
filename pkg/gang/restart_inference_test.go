package gang

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

type groupOption func(*grovev1alpha1.PodCliqueScalingGroup)

// groupBreached makes a scaling group say that too few copies are left, for a while.
func groupBreached(lasted time.Duration) groupOption {
	return groupCondition(metav1.ConditionTrue, lasted)
}

func groupCondition(status metav1.ConditionStatus, lasted time.Duration) groupOption {
	return func(scalingGroup *grovev1alpha1.PodCliqueScalingGroup) {
		meta.SetStatusCondition(&scalingGroup.Status.Conditions, metav1.Condition{
			Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: status, Reason: "R", Message: "too few copies", LastTransitionTime: at(-lasted),
		})
	}
}

func groupInAttempt(n int32) groupOption {
	return func(scalingGroup *grovev1alpha1.PodCliqueScalingGroup) { scalingGroup.Status.ObservedAttempt = n }
}

// copyRecycled puts the attempt of a copy on record, and that of the replica in which it was recycled.
func copyRecycled(index, attempt, setAttempt int32) groupOption {
	return func(scalingGroup *grovev1alpha1.PodCliqueScalingGroup) {
		recycledCopy(&scalingGroup.Status, index, attempt, setAttempt)
	}
}

// withGroup adds a scaling group of a replica to what exists.
func (s SetSnapshot) withGroup(name string, copies int32, options ...groupOption) SetSnapshot {
	scalingGroup := &grovev1alpha1.PodCliqueScalingGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       grovev1alpha1.PodCliqueScalingGroupSpec{Replicas: copies, MinAvailable: ptr.To[int32](1)},
	}
	for _, option := range options {
		option(scalingGroup)
	}
	s.Groups[name] = scalingGroup
	return s
}

func terminated(message string) []Event {
	return []Event{{"Warning", EventReplicaTerminated, message}}
}

// service is an inference set with a router, and a scaling group of two copies of a
// leader and a worker.
func service(options ...setOption) *grovev1alpha1.PodCliqueSet {
	return inferenceSet(append([]setOption{
		template("router", 1, 1), template("leader", 1, 1), template("worker", 2, 2), group("g", 2, 1, "leader", "worker"),
	}, options...)...)
}

func TestGangTerminationInInference(t *testing.T) {
	minute := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return service(append([]setOption{delayed(time.Minute)}, options...)...)
	}
	const long, due = time.Hour, 61 * time.Second
	workerOf0 := func(options ...cliqueOption) have { return have{"set-0-g-0-worker": options} }
	none := ends{Attempts: []int32{0}}
	tests := map[string]struct {
		snapshot SetSnapshot
		want     ends
	}{
		"without a delay nothing is terminated": {
			setOf(service(), allOf(service(), breached(long, "why"))).withGroup("set-0-g", 2, groupBreached(long)), none,
		},
		"a standalone clique whose breach lasts": {
			setOf(minute(), have{"set-0-router": {breached(due, "why")}}),
			ends{
				Attempts: []int32{1}, Confirm: []string{"set-0-router"},
				Events: terminated("replica 0 is made anew (attempt 1): set-0-router: why, for 1m1s"),
			},
		},
		"to the second": {
			setOf(minute(), have{"set-0-router": {breached(due-time.Second, "why")}}), ends{Attempts: []int32{0}, Next: time.Second},
		},
		"a replica that was made anew before": {
			setOf(minute(replicaAttempt(0, 2)), have{"set-0-router": {inAttempt(2), breached(due, "why")}}),
			ends{
				Attempts: []int32{3}, Confirm: []string{"set-0-router"},
				Events: terminated("replica 0 is made anew (attempt 3): set-0-router: why, for 1m1s"),
			},
		},
		"each replica for itself": {
			setOf(minute(replicas(3)), have{"set-0-router": {readyPods(1)}, "set-1-router": {breached(long, "why")}, "set-2-router": {breached(0, "why")}}),
			ends{
				Attempts: []int32{0, 1, 0}, Confirm: []string{"set-1-router"}, Next: due,
				Events: terminated("replica 1 is made anew (attempt 1): set-1-router: why, for 1h0m0s"),
			},
		},
		"a sixth failure is the back-off's": {
			setOf(minute(), have{"set-0-router": {failedBefore(0, 9, 0)}}), none,
		},
		"a member's breach is its group's to judge": {setOf(minute(), workerOf0(breached(long, "why"))), none},
		"also when the group says nothing yet":      {setOf(minute(), workerOf0(breached(long, "why"))).withGroup("set-0-g", 2), none},
		"a group that cannot go on delegates": {
			setOf(minute(), workerOf0(breached(2*time.Minute, "why"))).withGroup("set-0-g", 2, groupBreached(due)),
			ends{
				Attempts: []int32{1}, Confirm: []string{"set-0-g-0-worker"},
				Events: terminated("replica 0 is made anew (attempt 1): scaling group set-0-g: too few copies, for 1m1s; set-0-g-0-worker: why, for 2m0s"),
			},
		},
		"all breached members are looked at": {
			setOf(minute(), have{"set-0-g-0-leader": {breached(long, "a")}, "set-0-g-1-worker": {breached(long, "b")}, "set-0-g-1-leader": {readyPods(1)}}).
				withGroup("set-0-g", 2, groupBreached(due)),
			ends{
				Attempts: []int32{1}, Confirm: []string{"set-0-g-0-leader", "set-0-g-1-worker"},
				Events: terminated("replica 0 is made anew (attempt 1): scaling group set-0-g: too few copies, for 1m1s; set-0-g-0-leader: a, for 1h0m0s"),
			},
		},
		"by the clock of the group": {
			setOf(minute(), workerOf0(breached(long, "why"))).withGroup("set-0-g", 2, groupBreached(10*time.Second)),
			ends{Attempts: []int32{0}, Next: 51 * time.Second},
		},
		"and the delay of the group": {
			setOf(minute(groupDelay("g", 20*time.Second)), workerOf0(breached(long, "why"))).withGroup("set-0-g", 2, groupBreached(10*time.Second)),
			ends{Attempts: []int32{0}, Next: 11 * time.Second},
		},
		"be it longer": {
			setOf(minute(groupDelay("g", 2*time.Hour)), workerOf0(breached(long, "why"))).withGroup("set-0-g", 2, groupBreached(long)),
			ends{Attempts: []int32{0}, Next: time.Hour + time.Second},
		},
		"the first of clique and group to be due counts": {
			setOf(minute(), have{"set-0-router": {breached(20*time.Second, "why")}, "set-0-g-0-worker": {breached(long, "why")}}).
				withGroup("set-0-g", 2, groupBreached(30*time.Second)),
			ends{Attempts: []int32{0}, Next: 31 * time.Second},
		},
		"a group of an attempt before says nothing": {
			setOf(minute(replicaAttempt(0, 1)), workerOf0(inAttempt(1), breached(long, "why"))).withGroup("set-0-g", 2, groupBreached(long)),
			ends{Attempts: []int32{1}},
		},
		"nor does one of a later attempt": {
			setOf(minute(), workerOf0(breached(long, "why"))).withGroup("set-0-g", 2, groupBreached(long), groupInAttempt(1)), none,
		},
		"one of this attempt does": {
			setOf(minute(replicaAttempt(0, 1)), workerOf0(inAttempt(1), breached(long, "why"))).withGroup("set-0-g", 2, groupBreached(long), groupInAttempt(1)),
			ends{
				Attempts: []int32{2}, Confirm: []string{"set-0-g-0-worker"},
				Events: terminated("replica 0 is made anew (attempt 2): scaling group set-0-g: too few copies, for 1h0m0s; set-0-g-0-worker: why, for 1h0m0s"),
			},
		},
		"a group that has enough copies": {
			setOf(minute(), workerOf0(breached(long, "why"))).withGroup("set-0-g", 2, groupCondition(metav1.ConditionFalse, long)), none,
		},
		"a group during an update": {
			setOf(minute(), workerOf0(breached(long, "why"))).withGroup("set-0-g", 2, groupCondition(metav1.ConditionUnknown, long)), none,
		},
		"a group that is deleted": {
			setOf(minute(), workerOf0(breached(long, "why"))).withGroup("set-0-g", 2, groupBreached(long), func(g *grovev1alpha1.PodCliqueScalingGroup) {
				g.DeletionTimestamp = ptr.To(at(0))
			}), none,
		},
		"a group whose members have recovered": {
			setOf(minute(), workerOf0(readyPods(2))).withGroup("set-0-g", 2, groupBreached(long)), none,
		},
		"a group of another replica": {
			setOf(minute(replicas(2)), workerOf0(breached(long, "why"))).withGroup("set-1-g", 2, groupBreached(long)), ends{Attempts: []int32{0, 0}},
		},
		"a copy that was recycled is in an attempt of its own": {
			setOf(minute(), workerOf0(inAttempt(1), breached(long, "why"))).withGroup("set-0-g", 2, groupBreached(due), copyRecycled(0, 1, 0)),
			ends{
				Attempts: []int32{1}, Confirm: []string{"set-0-g-0-worker"},
				Events: terminated("replica 0 is made anew (attempt 1): scaling group set-0-g: too few copies, for 1m1s; set-0-g-0-worker: why, for 1h0m0s"),
			},
		},
		"its breach of before was answered": {
			setOf(minute(), workerOf0(breached(long, "why"))).withGroup("set-0-g", 2, groupBreached(due), copyRecycled(0, 1, 0)), none,
		},
		"a copy that the group does not have any more": {
			setOf(minute(), workerOf0(breached(long, "why"))).withGroup("set-0-g", 0, groupBreached(long)), none,
		},
		"a copy that the group has got since": {
			setOf(minute(), have{"set-0-g-2-worker": {breached(long, "why")}}).withGroup("set-0-g", 3, groupBreached(due)),
			ends{
				Attempts: []int32{1}, Confirm: []string{"set-0-g-2-worker"},
				Events: terminated("replica 0 is made anew (attempt 1): scaling group set-0-g: too few copies, for 1m1s; set-0-g-2-worker: why, for 1h0m0s"),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := DecideSet(tc.snapshot, now)
			got := endsOf(d)
			// In Inference the status tells of replicas that wait; all of these do.
			expect(t, "ends", tc.want, got)
		})
	}
}

// A member that is deleted is not breached any more, and cannot be confirmed: it would hold
// up everything that is decided together with it.
func TestAGroupDoesNotDelegateByADeletedMember(t *testing.T) {
	s := setOf(service(delayed(time.Minute)), have{"set-0-g-0-worker": {breached(time.Hour, "why"), deleted}}).withGroup("set-0-g", 2, groupBreached(time.Hour))
	expect(t, "ends", ends{Attempts: []int32{0}}, endsOf(DecideSet(s, now)))
}
