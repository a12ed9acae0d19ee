package gang

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

func TestCountersOfASet(t *testing.T) {
	type counters struct{ Replicas, Available, Updated, Succeeded, Pods, AvailablePods int32 }
	withGroup := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return inferenceSet(append([]setOption{template("router", 1, 1), template("worker", 2, 2), group("decode", 3, 2, "worker")}, options...)...)
	}
	idle := []cliqueOption{size(0)}
	tests := map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		sizes    map[string]int32
		want     counters
	}{
		"pods are those that the set wants, created or not": {set: pair(replicas(2)), want: counters{Pods: 6}},
		"a replica exists with its first clique": {
			set: pair(replicas(2)), existing: have{"set-1-launcher": nil}, want: counters{Pods: 6, Replicas: 1},
		},
		"one with a clique missing is not available": {
			set: pair(), existing: have{"set-0-launcher": {readyPods(1)}}, want: counters{Pods: 3, Replicas: 1, AvailablePods: 1},
		},
		"it is available with all its cliques": {
			set: pair(replicas(2)), existing: allOf(pair(), readyPods(2)).but("set-0-launcher", readyPods(1)),
			want: counters{Pods: 6, Replicas: 1, Available: 1, AvailablePods: 3},
		},
		"not with one too few": {
			set: pair(), existing: allOf(pair(), readyPods(1)), want: counters{Pods: 3, Replicas: 1, AvailablePods: 2},
		},
		"pods that have finished are available": {
			set: pair(phase(grovev1alpha1.PodCliqueSetSucceeded)), existing: allOf(pair(), hasSucceeded),
			want: counters{Pods: 3, Replicas: 1, Available: 1, Succeeded: 1, AvailablePods: 3},
		},
		"each replica succeeds by itself": {
			set: pair(replicas(2)), existing: allOf(pair(replicas(2)), hasSucceeded).but("set-1-worker", hasSucceeded, func(c *grovev1alpha1.PodClique) { c.Status.Conditions = nil }),
			want: counters{Pods: 6, Replicas: 2, Available: 2, Succeeded: 1, AvailablePods: 6},
		},
		"it is updated when available, and all its cliques follow the template": {
			set: pair(replicas(3)), existing: allOf(pair(replicas(3)), readyPods(2), updatedPods(2)).
				but("set-1-worker", readyPods(2), updatedPods(1)).but("set-2-worker", readyPods(1), updatedPods(2)),
			want: counters{Pods: 9, Replicas: 3, Available: 2, Updated: 1, AvailablePods: 8},
		},
		"pods of the attempt before are not available": {
			set: pair(), existing: allOf(pair(), readyPods(2), attempt(1)), want: counters{Pods: 3, Replicas: 1},
		},
		"nor are those of a clique that is below its replica's attempt": {
			set: pair(replicaAttempt(0, 2)), existing: allOf(pair(), readyPods(2), inAttempt(2)).but("set-0-worker", readyPods(2), inAttempt(1)),
			want: counters{Pods: 3, Replicas: 1, AvailablePods: 1},
		},
		"a clique of a later attempt than its replica's was recycled with its copy": {
			set: withGroup(replicaAttempt(0, 1)), existing: allOf(withGroup(), readyPods(2), inAttempt(3)),
			want: counters{Pods: 7, Replicas: 1, Available: 1, AvailablePods: 7},
		},
		"a clique that was scaled counts as it is": {
			set: pair(), existing: allOf(pair(), readyPods(1)).but("set-0-worker", size(7), readyPods(5)),
			want: counters{Pods: 8, Replicas: 1, Available: 1, AvailablePods: 6},
		},
		"what its status tells of before a scale-in does not count": {
			set: pair(), existing: allOf(pair(), readyPods(1)).but("set-0-worker", size(1), readyPods(5)),
			want: counters{Pods: 2, Replicas: 1, Available: 1, AvailablePods: 2},
		},
		"a clique that is scaled to nothing is no obstacle": {
			set: pair(), existing: allOf(pair(), readyPods(1)).but("set-0-worker", idle...), want: counters{Pods: 1, Replicas: 1, Available: 1, AvailablePods: 1},
		},
		"of a scaling group the minimum of copies is enough": {
			set: withGroup(), existing: allOf(withGroup(), readyPods(2)).but("set-0-decode-0-worker", readyPods(1)),
			want: counters{Pods: 7, Replicas: 1, Available: 1, AvailablePods: 6},
		},
		"not fewer": {
			set: withGroup(), existing: allOf(withGroup(), readyPods(2)).but("set-0-decode-0-worker").without("set-0-decode-2-worker"),
			want: counters{Pods: 7, Replicas: 1, AvailablePods: 3},
		},
		"a standalone clique beside it is needed": {
			set: withGroup(), existing: allOf(withGroup(), readyPods(2)).but("set-0-router"), want: counters{Pods: 7, Replicas: 1, AvailablePods: 6},
		},
		"a copy is available with all its cliques, and counts once": {
			set: inferenceSet(template("leader", 1, 1), template("worker", 1, 1), group("g", 2, 1, "leader", "worker")),
			existing: have{
				"set-0-g-0-leader": {readyPods(1)}, "set-0-g-0-worker": {readyPods(1)}, "set-0-g-1-leader": nil, "set-0-g-1-worker": nil,
			},
			want: counters{Pods: 4, Replicas: 1, Available: 1, AvailablePods: 2},
		},
		"copies of which each lacks one are none": {
			set: inferenceSet(template("leader", 1, 1), template("worker", 1, 1), group("g", 2, 1, "leader", "worker")),
			existing: have{
				"set-0-g-0-leader": {readyPods(1)}, "set-0-g-0-worker": nil, "set-0-g-1-leader": nil, "set-0-g-1-worker": {readyPods(1)},
			},
			want: counters{Pods: 4, Replicas: 1, AvailablePods: 2},
		},
		"the minimum of copies is one unless the template says more": {
			set: inferenceSet(template("worker", 1, 1), group("g", 2, -1, "worker")), existing: have{"set-0-g-1-worker": {readyPods(1)}},
			want: counters{Pods: 2, Replicas: 1, Available: 1, AvailablePods: 1},
		},
		"a group that was scaled counts as it is": {
			set: withGroup(), sizes: map[string]int32{"set-0-decode": 5},
			existing: allOf(withGroup(), readyPods(2)).but("set-0-decode-3-worker", readyPods(2)),
			want:     counters{Pods: 11, Replicas: 1, Available: 1, AvailablePods: 9},
		},
		"a group that is scaled to nothing is no obstacle": {
			set: withGroup(), sizes: map[string]int32{"set-0-decode": 0}, existing: have{"set-0-router": {readyPods(1)}},
			want: counters{Pods: 1, Replicas: 1, Available: 1, AvailablePods: 1},
		},
		"a replica of groups that are all scaled to nothing is idle, and is there": {
			set:   inferenceSet(template("leader", 1, 1), template("worker", 2, 2), group("a", 1, 1, "leader"), group("b", 1, 1, "worker"), replicas(2)),
			sizes: map[string]int32{"set-0-a": 0, "set-0-b": 0},
			want:  counters{Pods: 3, Replicas: 1, Available: 1, Updated: 1},
		},
		"a group below its minimum needs what it has": {
			set: withGroup(), sizes: map[string]int32{"set-0-decode": 1}, existing: have{"set-0-router": {readyPods(1)}, "set-0-decode-0-worker": {readyPods(2)}},
			want: counters{Pods: 3, Replicas: 1, Available: 1, AvailablePods: 3},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.set.Status.Replicas, tc.set.Status.AvailableReplicas, tc.set.Status.UpdatedReplicas = 9, 9, 9
			tc.set.Status.SucceededReplicas, tc.set.Status.Pods, tc.set.Status.AvailablePods = 9, 9, 9
			s := setOf(tc.set, tc.existing)
			hashed(tc.set, "hash")
			for _, clique := range s.Cliques {
				fromWhatIsUpdated(clique)
			}
			for group, n := range tc.sizes {
				s.Groups[group] = &grovev1alpha1.PodCliqueScalingGroup{Spec: grovev1alpha1.PodCliqueScalingGroupSpec{Replicas: n}}
			}
			got := DecideSet(s, now).Status
			expect(t, "counters", tc.want, counters{
				got.Replicas, got.AvailableReplicas, got.UpdatedReplicas, got.SucceededReplicas, got.Pods, got.AvailablePods,
			})
			expect(t, "selector", ptr.To("app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=set"), got.HPAPodSelector)
		})
	}
}

// gangOf is a base gang of a replica with a Scheduled condition.
func gangOf(replica, attempt int32, scheduled metav1.ConditionStatus, reason, message string) *schedulerv1alpha1.PodGang {
	podGang := &schedulerv1alpha1.PodGang{ObjectMeta: metav1.ObjectMeta{
		Name: naming.Replica("set", replica), Labels: map[string]string{labels.RestartAttempt: labels.Index(attempt)},
	}}
	podGang.Status.ObservedAttempt = attempt
	if reason != "" {
		meta.SetStatusCondition(&podGang.Status.Conditions, metav1.Condition{
			Type: schedulerv1alpha1.PodGangConditionScheduled, Status: scheduled, Reason: reason, Message: message,
		})
	}
	return podGang
}

// openStage is a stage that was opened in an attempt of a replica.
func openStage(index, attempt int32, name string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Status.ReplicaStatuses = append(pcs.Status.ReplicaStatuses, grovev1alpha1.PodCliqueSetReplicaStatus{Index: index, Attempt: attempt, OpenStages: []string{name}})
	}
}

// again says why pods of a gang that was placed have no node.
func again(podGang *schedulerv1alpha1.PodGang, reason, message string) *schedulerv1alpha1.PodGang {
	podGang.Status.SchedulingConditions = []schedulerv1alpha1.SchedulingCondition{{}, {Reasons: []schedulerv1alpha1.UnschedulableExplanation{{Reason: reason, Message: message}}}}
	return podGang
}

func TestReplicaStatuses(t *testing.T) {
	type statuses = []grovev1alpha1.PodCliqueSetReplicaStatus
	waitFor := func(clique string, have, want int32) *grovev1alpha1.WaitingFor {
		return &grovev1alpha1.WaitingFor{Clique: clique, Status: "Ready", Have: have, Want: want}
	}
	two := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return inferenceSet(append([]setOption{template("a", 2, 2), template("b", 1, 1)}, options...)...)
	}
	grouped := inferenceSet(template("router", 1, 1), template("worker", 2, 2), group("decode", 3, 2, "worker"))
	tests := map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		gangs    []*schedulerv1alpha1.PodGang
		want     statuses
	}{
		"in Training every replica is told of": {
			set: pair(replicas(3)),
			existing: allOf(pair(replicas(3)), hasSucceeded).
				but("set-1-launcher", readyPods(1)).but("set-1-worker", readyPods(2)).
				but("set-2-launcher").but("set-2-worker"),
			want: statuses{
				{Index: 0, Phase: grovev1alpha1.PodCliqueSetSucceeded},
				{Index: 1, Phase: grovev1alpha1.PodCliqueSetRunning},
				{Index: 2, Phase: grovev1alpha1.PodCliqueSetPending, WaitingFor: waitFor("launcher", 0, 1)},
			},
		},
		"in Inference those that wait": {
			set: two(replicas(2)), existing: allOf(two(replicas(2)), readyPods(2)).but("set-1-a", readyPods(1)),
			want: statuses{{Index: 1, Phase: grovev1alpha1.PodCliqueSetRunning, WaitingFor: waitFor("a", 1, 2)}},
		},
		"and those that were restarted": {
			set: two(replicas(2), replicaAttempt(1, 3)), existing: allOf(two(replicas(2)), readyPods(2), inAttempt(3)),
			want: statuses{{Index: 1, Phase: grovev1alpha1.PodCliqueSetRunning, Attempt: 3}},
		},
		"in Inference no replica succeeds": {
			set: two(replicaAttempt(0, 1)), existing: allOf(two(), hasSucceeded, inAttempt(1)),
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetPending, Attempt: 1, WaitingFor: waitFor("a", 0, 2)}},
		},
		"attempts are kept after a scale-in": {
			set: two(replicaAttempt(0, 0), replicaAttempt(5, 2), replicaAttempt(3, 1)), existing: allOf(two(), readyPods(2)),
			want: statuses{{Index: 5, Attempt: 2}, {Index: 3, Attempt: 1}},
		},
		"stages that are open stay so within the attempt": {
			set: two(openStage(0, 1, "a")), existing: allOf(two(), readyPods(2), inAttempt(1)),
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetRunning, Attempt: 1, OpenStages: []string{"a"}}},
		},
		"also of a replica that was never restarted": {
			set: two(openStage(0, 0, "a")), existing: allOf(two(), readyPods(2)),
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetRunning, OpenStages: []string{"a"}}},
		},
		"a restart closes them": {
			set: pair(openStage(0, 0, "launcher"), budget(1, 0)), existing: allOf(pair(), readyPods(2)).but("set-0-worker", breached(0, "x")),
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetPending, Attempt: 1, WaitingFor: waitFor("launcher", 0, 1)}},
		},
		"and taken up at the scale-out": {
			set: two(replicas(2), replicaAttempt(1, 2)), existing: allOf(two(), readyPods(2)),
			want: statuses{{Index: 1, Phase: grovev1alpha1.PodCliqueSetPending, Attempt: 2, WaitingFor: waitFor("a", 0, 2)}},
		},
		"it waits for the first clique that is not available": {
			set: two(), existing: allOf(two(), readyPods(2)).but("set-0-b"),
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetRunning, WaitingFor: waitFor("b", 0, 1)}},
		},
		"created or not": {
			set: two(), existing: have{"set-0-a": {readyPods(2)}},
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetRunning, WaitingFor: waitFor("b", 0, 1)}},
		},
		"pods of a clique below its replica's attempt are not counted": {
			set: two(replicaAttempt(0, 1)), existing: allOf(two(), readyPods(2)),
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetPending, Attempt: 1, WaitingFor: waitFor("a", 0, 2)}},
		},
		"a replica with a spare copy of a group that is not there waits for nothing": {
			set: grouped, existing: allOf(grouped, readyPods(2)).without("set-0-decode-2-worker"), want: nil,
		},
		"it waits for the gang first, in its words": {
			set: two(), existing: allOf(two(), scheduledPods(1)),
			gangs: []*schedulerv1alpha1.PodGang{gangOf(0, 0, metav1.ConditionFalse, schedulerv1alpha1.ReasonNotEnoughResources, "0/4 nodes")},
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetPending, WaitingFor: &grovev1alpha1.WaitingFor{
				Status: schedulerv1alpha1.ReasonNotEnoughResources, Have: 2, Want: 3, Message: "0/4 nodes",
			}}},
		},
		"a gang that says nothing yet waits for pods": {
			set: two(), existing: allOf(two()), gangs: []*schedulerv1alpha1.PodGang{gangOf(0, 0, "", "", "")},
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetPending, WaitingFor: &grovev1alpha1.WaitingFor{
				Status: schedulerv1alpha1.ReasonWaitingForPods, Want: 3,
			}}},
		},
		"a gang counts the cliques that are in it": {
			set: grouped, existing: allOf(grouped, scheduledPods(1)).without("set-0-decode-1-worker"),
			gangs: []*schedulerv1alpha1.PodGang{gangOf(0, 0, metav1.ConditionFalse, "R", "m")},
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetPending, WaitingFor: &grovev1alpha1.WaitingFor{
				Status: "R", Have: 2, Want: 5, Message: "m",
			}}},
		},
		"and of them the pods of this attempt": {
			set: two(replicaAttempt(0, 1)), existing: allOf(two(), scheduledPods(1)).but("set-0-b", scheduledPods(1), inAttempt(1)),
			gangs: []*schedulerv1alpha1.PodGang{gangOf(0, 1, metav1.ConditionFalse, "R", "m")},
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetPending, Attempt: 1, WaitingFor: &grovev1alpha1.WaitingFor{
				Status: "R", Have: 1, Want: 3, Message: "m",
			}}},
		},
		"the gang of another replica says nothing": {
			set: two(), existing: allOf(two()), gangs: []*schedulerv1alpha1.PodGang{gangOf(1, 0, metav1.ConditionFalse, "R", "m")},
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetPending, WaitingFor: waitFor("a", 0, 2)}},
		},
		"nor does a gang of an attempt before": {
			set: two(replicaAttempt(0, 1)), existing: allOf(two(), inAttempt(1)), gangs: []*schedulerv1alpha1.PodGang{gangOf(0, 0, metav1.ConditionFalse, "R", "m")},
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetPending, Attempt: 1, WaitingFor: waitFor("a", 0, 2)}},
		},
		"a gang that was placed waits again, for pods in place of others": {
			set: two(), existing: allOf(two(), runningPods(1)),
			gangs: []*schedulerv1alpha1.PodGang{again(gangOf(0, 0, metav1.ConditionTrue, "Scheduled", "all"), "NotEnoughResources", "0/4 nodes")},
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetRunning, WaitingFor: &grovev1alpha1.WaitingFor{
				Status: "NotEnoughResources", Have: 2, Want: 3, Message: "0/4 nodes",
			}}},
		},
		"when the gang is scheduled, the cliques are what is waited for": {
			set: two(), existing: allOf(two(), runningPods(1)), gangs: []*schedulerv1alpha1.PodGang{gangOf(0, 0, metav1.ConditionTrue, "R", "m")},
			want: statuses{{Index: 0, Phase: grovev1alpha1.PodCliqueSetRunning, WaitingFor: waitFor("a", 0, 2)}},
		},
		"an available replica waits for nothing, whatever its gang says": {
			set: two(), existing: allOf(two(), readyPods(2)), gangs: []*schedulerv1alpha1.PodGang{gangOf(0, 0, metav1.ConditionFalse, "R", "m")}, want: nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, tc.existing)
			for _, podGang := range tc.gangs {
				s.Gangs[podGang.Name] = podGang
			}
			expect(t, "replicas", tc.want, DecideSet(s, now).Status.ReplicaStatuses)
		})
	}
}

func TestAtTheEndNothingIsWaitedFor(t *testing.T) {
	// worker is short of a pod, so that the replica would wait for it.
	for name, tc := range map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
	}{
		"Failed":    {pair(failureTarget("why")), allOf(pair(), breached(0, "x"))},
		"Succeeded": {pair(), allOf(pair(), hasSucceeded).but("set-0-worker", hasSucceeded, completed(""))},
	} {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, tc.existing)
			s.NoActivePods = true
			got := DecideSet(s, now).Status
			expect(t, "phase", name, string(got.Phase))
			for _, replica := range got.ReplicaStatuses {
				expect(t, "waiting for", (*grovev1alpha1.WaitingFor)(nil), replica.WaitingFor)
				expect(t, "phase of the replica", name, string(replica.Phase))
			}
			expect(t, "replicas told of", 1, len(got.ReplicaStatuses))
		})
	}
}

// A replica that has succeeded stays so, though another one fails the set.
func TestReplicasKeepTheirOwnEnd(t *testing.T) {
	s := setOf(pair(replicas(2), failureTarget("why")), allOf(pair(), hasSucceeded).but("set-1-worker", breached(0, "x")))
	s.NoActivePods = true
	expect(t, "replicas", []grovev1alpha1.PodCliqueSetReplicaStatus{
		{Index: 0, Phase: grovev1alpha1.PodCliqueSetSucceeded}, {Index: 1, Phase: grovev1alpha1.PodCliqueSetFailed},
	}, DecideSet(s, now).Status.ReplicaStatuses)
}

func TestInferenceTellsOfFiftyReplicas(t *testing.T) {
	pcs := inferenceSet(replicas(70), template("a", 1, 1), replicaAttempt(10, 1), replicaAttempt(65, 2))
	var got []int32
	for _, replica := range DecideSet(setOf(pcs, nil), now).Status.ReplicaStatuses {
		got = append(got, replica.Index)
	}
	// The first fifty, and what must not be forgotten.
	expect(t, "replicas", append(indexesBelow(50), 65), got)

	pcs.Spec.WorkloadType = grovev1alpha1.WorkloadTypeTraining
	expect(t, "in Training", 70, len(DecideSet(setOf(pcs, nil), now).Status.ReplicaStatuses))
}

func TestUrgentOfASet(t *testing.T) {
	// settle is a set after a pass.
	settle := func(s SetSnapshot) SetSnapshot {
		s.Set = s.Set.DeepCopy()
		s.Set.Status = DecideSet(s, now.Add(-time.Hour)).Status
		return s
	}
	big := func() *grovev1alpha1.PodCliqueSet { return inferenceSet(template("a", 4, 2)) }
	gangSays := func(s SetSnapshot, scheduled metav1.ConditionStatus, reason, message string) SetSnapshot {
		podGang := gangOf(0, 0, scheduled, reason, message)
		s.Gangs = map[string]*schedulerv1alpha1.PodGang{podGang.Name: podGang}
		return s
	}
	tests := map[string]struct {
		before, after SetSnapshot
		want          [2]bool // changed, urgent
	}{
		"nothing": {setOf(big(), allOf(big(), readyPods(3))), setOf(big(), allOf(big(), readyPods(3))), [2]bool{false, false}},
		"one more pod is available": {
			setOf(big(), allOf(big(), readyPods(3))), setOf(big(), allOf(big(), readyPods(4))), [2]bool{true, false},
		},
		"one more pod of those that are waited for": {
			setOf(big(), allOf(big(), runningPods(4))), setOf(big(), allOf(big(), runningPods(4), func(c *grovev1alpha1.PodClique) { c.Status.ReadyReplicas = 1 })), [2]bool{true, false},
		},
		"the scheduler finds other words": {
			gangSays(setOf(big(), allOf(big())), metav1.ConditionFalse, "R", "0/4 nodes"),
			gangSays(setOf(big(), allOf(big())), metav1.ConditionFalse, "R", "0/5 nodes"), [2]bool{true, false},
		},
		"the scheduler finds another reason": {
			gangSays(setOf(big(), allOf(big())), metav1.ConditionFalse, "R", "m"),
			gangSays(setOf(big(), allOf(big())), metav1.ConditionFalse, "S", "m"), [2]bool{true, true},
		},
		"the first pod runs": {
			setOf(big(), allOf(big(), scheduledPods(4))), setOf(big(), allOf(big(), scheduledPods(4), func(c *grovev1alpha1.PodClique) { c.Status.RunningReplicas = 1 })), [2]bool{true, true},
		},
		"the replica is available": {
			setOf(big(), allOf(big(), readyPods(1))), setOf(big(), allOf(big(), readyPods(2))), [2]bool{true, true},
		},
		"a clique is scaled": {
			setOf(big(), allOf(big(), readyPods(3))), setOf(big(), allOf(big(), readyPods(3), size(5))), [2]bool{true, true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.after.Set = settle(tc.before).Set
			got := DecideSet(tc.after, now)
			expect(t, "changed, urgent", tc.want, [2]bool{got.Changed, got.Urgent})
		})
	}
}
