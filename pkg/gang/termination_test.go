package gang

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

func onNodeNamed(name string) podOption { return func(p *Pod) { p.Node, p.Scheduled = name, true } }

// dueFor is a terminating pod whose grace period ended a while ago, or ends in a while.
func dueFor(ago time.Duration) podOption {
	return func(p *Pod) {
		p.DeletionRequested, p.DeletionDue = ptr.To(now.Add(-ago-30*time.Second)), now.Add(-ago)
	}
}

func TestPodsStuckTerminating(t *testing.T) {
	type outcome struct {
		Stuck   summary
		Message string
		Next    time.Duration
		Forced  []types.UID
	}
	stuck := func(message string) outcome {
		return outcome{Stuck: isTrue(grovev1alpha1.ReasonPodsTerminating), Message: message}
	}
	forced := func(out outcome, uids ...types.UID) outcome {
		out.Forced = uids
		return out
	}
	next := func(in time.Duration) outcome { return outcome{Next: in} }
	dead := map[string]string{"gone": "is gone", "off": "is out of service"}
	tests := map[string]struct {
		pods []Pod
		dead map[string]string
		want outcome
	}{
		"a pod that stays": {pods: podsOfAll(1, ready, onNodeNamed("n"))},
		// When the grace period ends the node is looked at, and half a minute later people are told.
		"within its grace period":   {pods: pods(podOf(0, ready, dueFor(-20*time.Second), onNodeNamed("n"))), want: next(20 * time.Second)},
		"at its end":                {pods: pods(podOf(0, ready, dueFor(0), onNodeNamed("n"))), want: next(30 * time.Second)},
		"not a second too early":    {pods: pods(podOf(0, ready, dueFor(29*time.Second), onNodeNamed("n"))), want: next(time.Second)},
		"half a minute after it":    {pods: pods(podOf(0, ready, dueFor(30*time.Second), onNodeNamed("n"))), want: stuck("still there 30s after their grace period: pod-0 on node n")},
		"a pod that never ran":      {pods: pods(podOf(0, dueFor(time.Minute))), want: stuck("still there 30s after their grace period: pod-0")},
		"a pod of an older attempt": {pods: pods(podOf(0, dueFor(time.Minute), ofAttempt(0))), want: stuck("still there 30s after their grace period: pod-0")},
		"several, by name, whatever their order": {
			pods: pods(podOf(3, dueFor(time.Minute)), podOf(1, dueFor(time.Minute)), podOf(4, dueFor(time.Minute)), podOf(2, dueFor(time.Minute))),
			want: stuck("still there 30s after their grace period: pod-1; pod-2; pod-3; and 1 more"),
		},
		"one is and another may be": {
			pods: pods(podOf(0, dueFor(time.Minute)), podOf(1, dueFor(10*time.Second))),
			want: func() outcome {
				out := stuck("still there 30s after their grace period: pod-0")
				out.Next = 20 * time.Second
				return out
			}(),
		},

		// Nobody else will say that a pod has ended whose node is dead (D19).
		"on a node that is gone": {
			pods: pods(podOf(0, dueFor(time.Minute), onNodeNamed("gone"))), dead: dead,
			want: forced(stuck("still there 30s after their grace period: pod-0 on node gone, which is gone"), "uid-0"),
		},
		"on a node that is out of service": {
			pods: pods(podOf(0, dueFor(time.Minute), onNodeNamed("off"))), dead: dead,
			want: forced(stuck("still there 30s after their grace period: pod-0 on node off, which is out of service"), "uid-0"),
		},
		"it is forced at the end of its grace period": {
			pods: pods(podOf(0, dueFor(0), onNodeNamed("gone"))), dead: dead, want: forced(next(30*time.Second), "uid-0"),
		},
		"not before": {pods: pods(podOf(0, dueFor(-time.Second), onNodeNamed("gone"))), dead: dead, want: next(time.Second)},
		"a pod whose deletion nobody asked for stays, though its node is dead": {
			pods: pods(podOf(0, ready, onNodeNamed("gone"))), dead: dead,
		},
		"a pod without a node is not on a dead one": {
			pods: pods(podOf(0, dueFor(time.Minute))), dead: dead, want: stuck("still there 30s after their grace period: pod-0"),
		},
		"only those on dead nodes": {
			pods: pods(podOf(0, dueFor(time.Minute), onNodeNamed("gone")), podOf(1, dueFor(time.Minute), onNodeNamed("n")), podOf(2, dueFor(time.Minute), onNodeNamed("off"))), dead: dead,
			want: forced(stuck("still there 30s after their grace period: pod-0 on node gone, which is gone; pod-1 on node n; pod-2 on node off, which is out of service"), "uid-0", "uid-2"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clique := inference(5, minAvailable(1))
			s := snapshotOf(clique, tc.pods)
			// Nothing else is to be done.
			s.Membership.Known = false
			s.DeadNodes = tc.dead
			d := DecideClique(s, now)
			got := outcome{Stuck: conditionOf(d.Status.Conditions, grovev1alpha1.ConditionTypePodsStuckTerminating)}
			if c := meta.FindStatusCondition(d.Status.Conditions, grovev1alpha1.ConditionTypePodsStuckTerminating); c != nil {
				got.Message = c.Message
			}
			if !d.Next.IsZero() {
				got.Next = d.Next.Sub(now)
			}
			for _, pod := range d.ForceDelete {
				got.Forced = append(got.Forced, pod.UID)
			}
			expect(t, "outcome", tc.want, got)
		})
	}
}

func TestStuckPodsAreForcedInEveryState(t *testing.T) {
	pod := podOf(0, running, dueFor(time.Minute), onNodeNamed("gone"))
	for name, change := range map[string]func(*CliqueSnapshot){
		"below an active set":    func(*CliqueSnapshot) {},
		"below one that fails":   func(s *CliqueSnapshot) { s.Parent = ParentFailing },
		"below one that is over": func(s *CliqueSnapshot) { s.Parent = ParentFinished },
		"below one that goes":    func(s *CliqueSnapshot) { s.Parent = ParentDeleting },
		"of a clique that goes":  func(s *CliqueSnapshot) { deleted(s.Clique) },
		"of an older attempt":    func(s *CliqueSnapshot) { inAttempt(1)(s.Clique) },
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(training(1), pods(pod))
			s.DeadNodes = map[string]string{"gone": "is gone"}
			change(&s)
			d := DecideClique(s, now)
			expect(t, "forced", 1, len(d.ForceDelete))
			expect(t, "deleted again", 0, len(d.Delete))
		})
	}
	t.Run("not in a pass that records", func(t *testing.T) {
		s := snapshotOf(training(1, attempt(1)), pods(pod))
		s.DeadNodes = map[string]string{"gone": "is gone"}
		d := DecideClique(s, now)
		expect(t, "record", true, d.Record)
		expect(t, "forced", 0, len(d.ForceDelete))
	})
}

func TestStuckPodsAreToldUntilTheyAreGone(t *testing.T) {
	was := condition(grovev1alpha1.ConditionTypePodsStuckTerminating, metav1.ConditionTrue, grovev1alpha1.ReasonPodsTerminating, -time.Hour)
	got := DecideClique(snapshotOf(inference(1, was), podsOfAll(1, ready)), now)
	expect(t, "condition", summary{}, conditionOf(got.Status.Conditions, grovev1alpha1.ConditionTypePodsStuckTerminating))
	expect(t, "urgent", true, got.Urgent)

	s := setOf(pair(), allOf(pair(), readyPods(2)).but("set-0-worker", readyPods(2), func(c *grovev1alpha1.PodClique) {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
			Type: grovev1alpha1.ConditionTypePodsStuckTerminating, Status: metav1.ConditionTrue, Reason: grovev1alpha1.ReasonPodsTerminating, Message: "pod-0 on node n",
		})
	}))
	told := DecideSet(s, now).Status
	c := meta.FindStatusCondition(told.Conditions, grovev1alpha1.ConditionTypePodsStuckTerminating)
	if c == nil {
		t.Fatal("the set does not tell of it")
	}
	expect(t, "the set tells of it", "set-0-worker: pod-0 on node n", c.Message)
	s.Set.Status = told
	s.Cliques["set-0-worker"].Status.Conditions = nil
	expect(t, "until they are gone", summary{}, conditionOf(DecideSet(s, now).Status.Conditions, grovev1alpha1.ConditionTypePodsStuckTerminating))
}

func TestOverdueNodes(t *testing.T) {
	tests := map[string]struct {
		pods []Pod
		want []string
	}{
		"none":                         {},
		"of a pod past its grace":      {pods(podOf(0, dueFor(0), onNodeNamed("a"))), []string{"a"}},
		"not within it":                {pods(podOf(0, dueFor(-time.Nanosecond), onNodeNamed("a"))), nil},
		"not of a pod that stays":      {pods(podOf(0, onNodeNamed("a"))), nil},
		"nor of one without a node":    {pods(podOf(0, dueFor(0))), nil},
		"each once, as they come":      {pods(podOf(0, dueFor(0), onNodeNamed("b")), podOf(1, dueFor(0), onNodeNamed("a")), podOf(2, dueFor(0), onNodeNamed("b"))), []string{"b", "a"}},
		"whatever attempt they are of": {pods(podOf(0, dueFor(0), onNodeNamed("a"), ofAttempt(3))), []string{"a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "nodes", tc.want, OverdueNodes(tc.pods, now)) })
	}
}

// sibling is a clique of the replica; copy is empty for a standalone one.
func sibling(name, copyIndex string, options ...cliqueOption) grovev1alpha1.PodClique {
	clique := training(1)
	clique.Name, clique.UID = name, types.UID(name)
	if copyIndex != "" {
		clique.Labels = map[string]string{labels.ScalingGroup: "g", labels.ScalingGroupReplicaIndex: copyIndex}
	}
	for _, option := range options {
		option(clique)
	}
	return *clique
}

func ofGroup(name string) cliqueOption {
	return func(c *grovev1alpha1.PodClique) { c.Labels[labels.ScalingGroup] = name }
}

func oldPods(n int32) cliqueOption {
	return func(c *grovev1alpha1.PodClique) { c.Status.OldReplicas = n }
}

// No pod of a new attempt is made before all pods of the replica, or of the copy that was
// recycled alone, that are older are gone (D19).
func TestDrained(t *testing.T) {
	// recycledCopy is a group of which a copy was recycled in an attempt of the replica.
	recycledCopy := func(index, attempt, setAttempt int32) map[string]*grovev1alpha1.PodCliqueScalingGroup {
		scalingGroup := &grovev1alpha1.PodCliqueScalingGroup{}
		recycledCopy(&scalingGroup.Status, index, attempt, setAttempt)
		return map[string]*grovev1alpha1.PodCliqueScalingGroup{"g": scalingGroup}
	}
	of := func(all ...grovev1alpha1.PodClique) []grovev1alpha1.PodClique { return all }
	tests := map[string]struct {
		clique   grovev1alpha1.PodClique
		siblings []grovev1alpha1.PodClique
		groups   map[string]*grovev1alpha1.PodCliqueScalingGroup
		attempt  int32
		want     bool
	}{
		"alone": {clique: sibling("a", "", inAttempt(1)), attempt: 1, want: true},
		"its own old pods are not the question": {
			clique: sibling("a", "", inAttempt(1), oldPods(2)), siblings: of(sibling("a", "", inAttempt(1), oldPods(2))), attempt: 1, want: true,
		},
		"the others have none": {clique: sibling("a", "", inAttempt(1)), siblings: of(sibling("b", "", inAttempt(1))), attempt: 1, want: true},
		"another has one":      {clique: sibling("a", "", inAttempt(1)), siblings: of(sibling("b", "", inAttempt(1), oldPods(1))), attempt: 1},
		"another does not know of the attempt": {
			clique: sibling("a", "", inAttempt(1)), siblings: of(sibling("b", "", inAttempt(0))), attempt: 1,
		},
		"another knows of it, and has not looked at its pods": {
			clique: sibling("a", "", inAttempt(1)), siblings: of(sibling("b", "", inAttempt(0), attempt(1))), attempt: 1,
		},
		"one of several": {
			clique: sibling("a", "", inAttempt(1)), siblings: of(sibling("b", "", inAttempt(1)), sibling("c", "", inAttempt(1), oldPods(1))), attempt: 1,
		},
		"members of groups restart with their replica": {
			clique: sibling("a", "", inAttempt(1)), siblings: of(sibling("b", "0", inAttempt(1), oldPods(1))), attempt: 1,
		},
		"and wait for it": {
			clique: sibling("a", "0", inAttempt(1)), siblings: of(sibling("b", "", inAttempt(1), oldPods(1))), attempt: 1,
		},
		"and for other copies": {
			clique: sibling("a", "0", inAttempt(1)), siblings: of(sibling("b", "1", inAttempt(1), oldPods(1))), attempt: 1,
		},
		"a copy that is recycled waits for its own": {
			clique: sibling("a", "1", inAttempt(1)), siblings: of(sibling("b", "1", inAttempt(1), oldPods(1))), groups: recycledCopy(1, 1, 0),
		},
		"also for one that does not know of it": {
			clique: sibling("a", "1", inAttempt(1)), siblings: of(sibling("b", "1")), groups: recycledCopy(1, 1, 0),
		},
		"not for others": {
			clique: sibling("a", "1", inAttempt(1)), siblings: of(sibling("b", "0", oldPods(1)), sibling("c", "", oldPods(1))), groups: recycledCopy(1, 1, 0), want: true,
		},
		"others do not wait for it": {
			clique: sibling("a", "0", inAttempt(1)), siblings: of(sibling("b", "1", inAttempt(2), oldPods(1))), groups: recycledCopy(1, 1, 1), attempt: 1, want: true,
		},
		"nor the standalone ones": {
			clique: sibling("a", "", inAttempt(1)), siblings: of(sibling("b", "1", inAttempt(2), oldPods(1))), groups: recycledCopy(1, 1, 1), attempt: 1, want: true,
		},
		"a recycling of an attempt of the replica before is over": {
			clique: sibling("a", "", inAttempt(1)), siblings: of(sibling("b", "1", inAttempt(2), oldPods(1))), groups: recycledCopy(1, 1, 0), attempt: 1,
		},
		"its attempt counts all the same": {
			clique: sibling("a", "", inAttempt(1)), siblings: of(sibling("b", "1", inAttempt(1))), groups: recycledCopy(1, 1, 0), attempt: 1,
		},
		"and is reached": {
			clique: sibling("a", "", inAttempt(1)), siblings: of(sibling("b", "1", inAttempt(2))), groups: recycledCopy(1, 1, 0), attempt: 1, want: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "drained", tc.want, Drained(&tc.clique, tc.siblings, tc.groups, tc.attempt))
		})
	}
}

func TestRestartTogether(t *testing.T) {
	scalingGroup := &grovev1alpha1.PodCliqueScalingGroup{}
	recycledCopy(&scalingGroup.Status, 1, 1, 2)
	recycledCopy(&scalingGroup.Status, 2, 1, 2)
	recycledCopy(&scalingGroup.Status, 3, 0, 2)
	groups := map[string]*grovev1alpha1.PodCliqueScalingGroup{"g": scalingGroup}
	tests := map[string]struct {
		a, b    grovev1alpha1.PodClique
		attempt int32
		want    bool
	}{
		"two standalone cliques":                      {sibling("a", ""), sibling("b", ""), 2, true},
		"a standalone one and a member":               {sibling("a", ""), sibling("b", "0"), 2, true},
		"two copies":                                  {sibling("a", "0"), sibling("b", "4"), 2, true},
		"two members of a recycled copy":              {sibling("a", "1"), sibling("b", "1"), 2, true},
		"two recycled copies":                         {sibling("a", "1"), sibling("b", "2"), 2, false},
		"a recycled copy and another one":             {sibling("a", "1"), sibling("b", "0"), 2, false},
		"a recycled copy and a standalone clique":     {sibling("a", "1"), sibling("b", ""), 2, false},
		"a copy that was recycled in another attempt": {sibling("a", "1"), sibling("b", ""), 3, true},
		"a copy on record that was not recycled":      {sibling("a", "3"), sibling("b", ""), 2, true},
		"a copy of another group of the same index":   {sibling("a", "1", ofGroup("other")), sibling("b", "1"), 2, false},
		"copies of a group of which nothing is known": {sibling("a", "1", ofGroup("other")), sibling("b", ""), 2, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "together", tc.want, RestartTogether(&tc.a, &tc.b, groups, tc.attempt))
			expect(t, "the other way round", tc.want, RestartTogether(&tc.b, &tc.a, groups, tc.attempt))
		})
	}
	a := sibling("a", "1")
	expect(t, "wanted attempt", int32(3), WantedAttempt(&a, groups, 2))
	a = sibling("a", "")
	expect(t, "wanted attempt of a standalone clique", int32(2), WantedAttempt(&a, groups, 2))
}
