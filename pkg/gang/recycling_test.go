package gang

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// copiesOf is a scaling group of copies of one clique, named by its copy, in Inference
// with a delay of a minute.
func copiesOf(n, minimum int32, cliques ...grovev1alpha1.PodClique) GroupSnapshot {
	for i := range cliques {
		cliques[i].Name = "of-copy-" + cliques[i].Labels["grove.io/podcliquescalinggroup-replica-index"]
	}
	return GroupSnapshot{
		Group: &grovev1alpha1.PodCliqueScalingGroup{
			ObjectMeta: metav1.ObjectMeta{Name: "set-0-g"},
			Spec: grovev1alpha1.PodCliqueScalingGroupSpec{
				Replicas: n, MinAvailable: ptr.To(minimum), CliqueNames: []string{"a"}, WorkloadType: grovev1alpha1.WorkloadTypeInference,
			},
		},
		Cliques: cliques, Parent: ParentActive, TerminationDelay: ptr.To(time.Minute),
	}
}

func (s GroupSnapshot) with(change func(*GroupSnapshot)) GroupSnapshot {
	change(&s)
	return s
}

// recycledBefore puts a recycling of a copy on record.
func (s GroupSnapshot) recycledBefore(index, attempt, setAttempt int32) GroupSnapshot {
	recycledCopy(&s.Group.Status, index, attempt, setAttempt)
	return s
}

// inReplicaAttempt puts the group, and its replica, into an attempt.
func (s GroupSnapshot) inReplicaAttempt(n int32) GroupSnapshot {
	s.SetAttempt, s.Group.Status.ObservedAttempt = n, n
	return s
}

func hasNode(c *grovev1alpha1.PodClique) { allPlaced(c) }

// recycling is what a decision does to the copies of a group. Attempts are written as
// "copy:attempt@attempt of the replica".
type recycling struct {
	Attempts string
	Breach   summary
	Confirm  []string
	Events   []Event
	Next     time.Duration
}

func recyclingOf(d GroupDecision) recycling {
	out := recycling{Events: recyclings(d.Events), Breach: conditionOf(d.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)}
	var attempts []string
	for _, entry := range d.Status.ReplicaAttempts {
		attempts = append(attempts, fmt.Sprintf("%d:%d@%d", entry.Index, entry.Attempt, entry.SetAttempt))
	}
	out.Attempts = strings.Join(attempts, " ")
	for _, clique := range d.Confirm {
		out.Confirm = append(out.Confirm, clique.Name)
	}
	if !d.Next.IsZero() {
		out.Next = d.Next.Sub(now)
	}
	return out
}

// recyclings leaves the events of the group's own breach to TestABreachOfAGroupIsToldOnce.
func recyclings(events []Event) []Event {
	var out []Event
	for _, e := range events {
		if e.Reason == EventReplicaTerminated {
			out = append(out, e)
		}
	}
	return out
}

func copyAnew(index, attempt int32, why string) Event {
	return Event{"Warning", EventReplicaTerminated, fmt.Sprintf("copy %d of scaling group set-0-g is made anew (attempt %d): %s", index, attempt, why)}
}

// updatingGroup is in the middle of an update.
func updatingGroup(s *GroupSnapshot) {
	s.Group.Status.UpdateProgress = &grovev1alpha1.PodCliqueScalingGroupUpdateProgress{PodCliqueSetGenerationHash: "generation"}
}

func TestCopiesAreRecycled(t *testing.T) {
	enough := isFalse(grovev1alpha1.ReasonSufficientAvailableReplicas)
	tooFew := isTrue(grovev1alpha1.ReasonInsufficientAvailableReplicas)
	const due = 61 * time.Second
	up := func(index string, options ...cliqueOption) grovev1alpha1.PodClique {
		return inCopy(index, append([]cliqueOption{allReady}, options...)...)
	}
	down := func(index string, lasted time.Duration, options ...cliqueOption) grovev1alpha1.PodClique {
		return inCopy(index, append([]cliqueOption{hasNode, wasAvailable, breached(lasted, "why")}, options...)...)
	}
	// coming is a copy that has not been available in its attempt.
	coming := func(index string, options ...cliqueOption) grovev1alpha1.PodClique {
		return inCopy(index, append([]cliqueOption{hasNode}, options...)...)
	}
	one := func() GroupSnapshot { return copiesOf(3, 2, up("0"), down("1", due), up("2")) }
	recycled := recycling{
		Attempts: "1:1@0", Breach: enough, Confirm: []string{"of-copy-1"}, Events: []Event{copyAnew(1, 1, "of-copy-1: why, for 1m1s")},
	}
	kept := recycling{Breach: enough}
	tests := map[string]struct {
		snapshot GroupSnapshot
		want     recycling
	}{
		"all are well":                 {copiesOf(2, 1, up("0"), up("1")), kept},
		"one whose breach lasts":       {one(), recycled},
		"to the second":                {copiesOf(3, 2, up("0"), down("1", due-time.Second), up("2")), recycling{Breach: enough, Next: time.Second}},
		"from the beginning":           {copiesOf(3, 2, up("0"), down("1", 0), up("2")), recycling{Breach: enough, Next: due}},
		"one that has recovered":       {copiesOf(3, 2, up("0"), up("1", condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionFalse, "R", -time.Hour)), up("2")), kept},
		"one of which nothing is sure": {copiesOf(3, 2, up("0"), coming("1", wasAvailable, condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionUnknown, "R", -time.Hour)), up("2")), kept},
		"two at once": {
			copiesOf(4, 2, up("0"), down("1", due), up("2"), down("3", 2*time.Minute)),
			recycling{
				Attempts: "1:1@0 3:1@0", Breach: enough, Confirm: []string{"of-copy-1", "of-copy-3"},
				Events: []Event{copyAnew(1, 1, "of-copy-1: why, for 1m1s"), copyAnew(3, 1, "of-copy-3: why, for 2m0s")},
			},
		},
		"one now and one later": {
			copiesOf(4, 2, up("0"), down("1", due), up("2"), down("3", 10*time.Second)),
			recycling{
				Attempts: "1:1@0", Breach: enough, Confirm: []string{"of-copy-1"}, Events: []Event{copyAnew(1, 1, "of-copy-1: why, for 1m1s")}, Next: 51 * time.Second,
			},
		},
		"one that was recycled before, in an attempt of the replica before": {
			copiesOf(3, 2, up("0", inAttempt(3)), down("1", due, inAttempt(5)), up("2", inAttempt(3))).recycledBefore(1, 2, 0).inReplicaAttempt(3),
			recycling{Attempts: "1:3@3", Breach: enough, Confirm: []string{"of-copy-1"}, Events: []Event{copyAnew(1, 3, "of-copy-1: why, for 1m1s")}},
		},
		"one that was recycled before in this attempt, and was available since": {
			copiesOf(3, 2, up("0"), down("1", due, inAttempt(1)), up("2")).recycledBefore(1, 1, 0),
			recycling{Attempts: "1:2@0", Breach: enough, Confirm: []string{"of-copy-1"}, Events: []Event{copyAnew(1, 2, "of-copy-1: why, for 1m1s")}},
		},
		"attempts of copies that were scaled away are kept": {
			one().recycledBefore(7, 4, 0),
			recycling{Attempts: "7:4@0 1:1@0", Breach: enough, Confirm: []string{"of-copy-1"}, Events: recycled.Events},
		},

		"too few would be left: that is for the set to decide": {
			copiesOf(3, 3, up("0"), down("1", due), up("2")), recycling{Breach: tooFew},
		},
		"two are breached, of which one alone could go": {
			copiesOf(3, 2, up("0"), down("1", due), down("2", 0)), recycling{Breach: tooFew},
		},
		"one still recovers": {
			copiesOf(3, 2, coming("0", inAttempt(1)), down("1", due), up("2")).recycledBefore(0, 1, 0), recycling{Attempts: "0:1@0", Breach: tooFew},
		},
		"also while its cliques do not know of it": {
			copiesOf(3, 2, up("0"), down("1", due), up("2")).recycledBefore(0, 1, 0), recycling{Attempts: "0:1@0", Breach: tooFew},
		},
		"until it has been available": {
			copiesOf(3, 2, up("0", inAttempt(1)), down("1", due), up("2")).recycledBefore(0, 1, 0),
			recycling{Attempts: "0:1@0 1:1@0", Breach: enough, Confirm: []string{"of-copy-1"}, Events: recycled.Events},
		},
		"once": {
			copiesOf(3, 2, coming("0", inAttempt(1), wasAvailable), down("1", due), up("2")).recycledBefore(0, 1, 0),
			recycling{Attempts: "0:1@0 1:1@0", Breach: enough, Confirm: []string{"of-copy-1"}, Events: recycled.Events},
		},
		"one that was recycled in an attempt of the replica before does not recover": {
			copiesOf(3, 2, coming("0", inAttempt(2)), down("1", due, inAttempt(1)), up("2", inAttempt(1))).recycledBefore(0, 1, 0).inReplicaAttempt(1),
			recycling{Attempts: "0:1@0 1:1@1", Breach: enough, Confirm: []string{"of-copy-1"}, Events: recycled.Events},
		},
		"while none is breached, one that recovers is no breach of the group": {
			copiesOf(2, 2, coming("0", inAttempt(1)), up("1")).recycledBefore(0, 1, 0), recycling{Attempts: "0:1@0", Breach: enough},
		},
		"one that was never available is no breach either": {
			copiesOf(3, 2, coming("0"), down("1", due), up("2")), recycled,
		},

		"a breach of an attempt of the copy before": {
			copiesOf(3, 2, up("0"), down("1", due), up("2")).recycledBefore(1, 1, 0), recycling{Attempts: "1:1@0", Breach: enough},
		},
		"one that its clique tells of an attempt before": {
			copiesOf(3, 2, up("0"), down("1", due, attempt(1)), up("2")).recycledBefore(1, 1, 0), recycling{Attempts: "1:1@0", Breach: enough},
		},
		"a breach of a clique that is deleted": {copiesOf(3, 2, up("0"), down("1", due, deleted), up("2")), kept},
		"a breach of a copy that was scaled away": {
			copiesOf(2, 1, up("0"), up("1"), down("2", due)), kept,
		},

		"without a delay": {one().with(func(s *GroupSnapshot) { s.TerminationDelay = nil }), kept},
		"without a delay a breach of the group is told all the same": {
			copiesOf(2, 2, up("0"), down("1", due)).with(func(s *GroupSnapshot) { s.TerminationDelay = nil }), recycling{Breach: tooFew},
		},
		"in Training":                 {one().with(func(s *GroupSnapshot) { s.Group.Spec.WorkloadType = grovev1alpha1.WorkloadTypeTraining }), kept},
		"below a set that fails":      {one().with(func(s *GroupSnapshot) { s.Parent = ParentFailing }), kept},
		"below a set that is over":    {one().with(func(s *GroupSnapshot) { s.Parent = ParentFinished }), kept},
		"below a set that is deleted": {one().with(func(s *GroupSnapshot) { s.Parent = ParentDeleting }), kept},
		"during an update":            {one().with(updatingGroup), kept},
		"during an update of too many": {
			copiesOf(2, 2, up("0"), down("1", due)).with(updatingGroup),
			recycling{Breach: summary{metav1.ConditionUnknown, grovev1alpha1.ReasonUpdateInProgress}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.snapshot.Group.DeepCopy()
			d := DecideGroup(tc.snapshot, now)
			expect(t, "recycling", tc.want, recyclingOf(d))
			expect(t, "the group that was read", before, tc.snapshot.Group)
			if len(d.Events) == 0 {
				return
			}
			// Read back, the same breaches lead to nothing more.
			tc.snapshot.Group.Status = d.Status
			again := recyclingOf(DecideGroup(tc.snapshot, now))
			expect(t, "attempts after the next pass", tc.want.Attempts, again.Attempts)
			expect(t, "events of the next pass", []Event(nil), again.Events)
		})
	}
}

// A copy is breached since the first of its cliques is, and all of them are looked at.
func TestACopyIsBreachedSinceItsFirstClique(t *testing.T) {
	clique := func(name string, lasted time.Duration) grovev1alpha1.PodClique {
		out := inCopy("1", wasAvailable, breached(lasted, "why"))
		out.Name = name
		return out
	}
	for name, order := range map[string][]grovev1alpha1.PodClique{
		"the first is listed first": {clique("a", 90*time.Second), clique("b", time.Second)},
		"the first is listed last":  {clique("b", time.Second), clique("a", 90*time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			s := copiesOf(2, 1)
			s.Group.Spec.CliqueNames = []string{"a", "b"}
			s.Cliques = append(s.Cliques[:0:0], order...)
			s.Cliques = append(s.Cliques, inCopy("0", allReady), inCopy("0", allReady))
			early := recyclingOf(DecideGroup(s, now.Add(-30*time.Second)))
			expect(t, "next, of a minute", time.Second-30*time.Second, early.Next)
			got := recyclingOf(DecideGroup(s, now))
			expect(t, "attempts", "1:1@0", got.Attempts)
			expect(t, "looked at", []string{order[0].Name, order[1].Name}, got.Confirm)
		})
	}
}

// What the group's condition tells belongs to an attempt of the replica: the clock of a
// breach that outlives it would end the new attempt with the age of the old one.
func TestAGroupStartsAnewWithItsReplica(t *testing.T) {
	withBreach := func(s GroupSnapshot) GroupSnapshot {
		groupBreached(time.Hour)(s.Group)
		return s
	}
	type outcome struct {
		Observed int32
		Breach   summary
		Message  string
		Since    time.Duration
		Attempts string
	}
	of := func(d GroupDecision) outcome {
		c := meta.FindStatusCondition(d.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
		return outcome{d.Status.ObservedAttempt, summary{c.Status, c.Reason}, c.Message, c.LastTransitionTime.Sub(now), recyclingOf(d).Attempts}
	}
	never := isFalse(grovev1alpha1.ReasonNeverAvailable)
	tooFew := isTrue(grovev1alpha1.ReasonInsufficientAvailableReplicas)
	old := inCopy("0", wasAvailable, breached(time.Hour, "why"))

	s := withBreach(copiesOf(1, 1, old)).recycledBefore(0, 0, 0)
	expect(t, "the same attempt", outcome{0, tooFew, "0 of 1 copies are available, at least 1 are needed: 1 breached, 0 recovering", -time.Hour, "0:0@0"}, of(DecideGroup(s, now)))

	s.SetAttempt = 1
	first := DecideGroup(s, now)
	expect(t, "the next attempt, of which the clique knows nothing", outcome{1, never, "0 of 1 copies are available, at least 1 are needed", 0, "0:0@0"}, of(first))

	s.Cliques[0] = inCopy("0", inAttempt(1), wasAvailable, breached(0, "why"))
	expect(t, "the next attempt, which is breached as well", outcome{1, tooFew, "0 of 1 copies are available, at least 1 are needed: 1 breached, 0 recovering", 0, "0:0@0"}, of(DecideGroup(s, now)))

	s.Group = s.Group.DeepCopy()
	s.Group.Status = first.Status
	s.SetAttempt, s.Cliques[0] = 0, old
	stale := DecideGroup(s, now.Add(time.Minute))
	expect(t, "a set that is older than what is on record", GroupDecision{Status: first.Status}, stale)
}

// A copy that was recycled and then scaled away goes on where it stopped.
func TestAttemptsOfCopiesSurviveAScaleIn(t *testing.T) {
	s := copiesOf(1, 1, inCopy("0", allReady)).recycledBefore(1, 3, 0)
	scaledIn := DecideGroup(s, now)
	expect(t, "after scale-in", "1:3@0", recyclingOf(scaledIn).Attempts)
	s = copiesOf(2, 1, inCopy("0", allReady), inCopy("1", inAttempt(3), wasAvailable, breached(time.Hour, "why")))
	s.Group.Status = scaledIn.Status
	expect(t, "after scale-out", "1:4@0", recyclingOf(DecideGroup(s, now)).Attempts)
}

// breachedBefore is a group that is on record as breached, whose copies are these now.
func breachedBefore(cliques ...grovev1alpha1.PodClique) func(*GroupSnapshot) {
	return func(s *GroupSnapshot) {
		s.Cliques = cliques
		setCondition(&s.Group.Status.Conditions, 1, now.Add(-time.Minute), grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionTrue, "R", "")
	}
}

func TestABreachOfAGroupIsToldOnce(t *testing.T) {
	tooFew := func() GroupSnapshot {
		return copiesOf(2, 2, inCopy("0", allReady), inCopy("1", hasNode, wasAvailable, breached(time.Second, "why")))
	}
	tests := map[string]struct {
		change func(*GroupSnapshot)
		want   []Event
	}{
		"when it is seen": {
			func(*GroupSnapshot) {},
			[]Event{{"Warning", EventMinAvailableBreached, "scaling group set-0-g: 1 of 2 copies are available, at least 2 are needed: 1 breached, 0 recovering"}},
		},
		"not in Training, where its cliques tell of theirs": {func(s *GroupSnapshot) { s.Group.Spec.WorkloadType = grovev1alpha1.WorkloadTypeTraining }, nil},
		"not below a set that is deleted":                   {func(s *GroupSnapshot) { s.Parent = ParentDeleting }, nil},
		"not while enough copies are left":                  {func(s *GroupSnapshot) { s.Group.Spec.MinAvailable = ptr.To[int32](1) }, nil},
		"not during an update":                              {updatingGroup, nil},
		"when it ends": {
			breachedBefore(inCopy("0", allReady), inCopy("1", allReady)),
			[]Event{{"Normal", EventMinAvailableRestored, "scaling group set-0-g: 2 of 2 copies are available, at least 2 are needed, after a breach of 1m0s"}},
		},
		"not when a new attempt ends it": {func(s *GroupSnapshot) {
			breachedBefore(inCopy("0", allReady, inAttempt(1)), inCopy("1", allReady, inAttempt(1)))(s)
			s.SetAttempt = 1
		}, nil},
		"nor when its members are known to be in one": {breachedBefore(inCopy("0", inAttempt(1)), inCopy("1", inAttempt(1))), nil},
		"nor when it is scaled to nothing": {func(s *GroupSnapshot) {
			breachedBefore()(s)
			s.Group.Spec.Replicas = 0
		}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := tooFew()
			tc.change(&s)
			d := DecideGroup(s, now)
			expect(t, "events", tc.want, d.Events)
			s.Group.Status = d.Status
			expect(t, "events of the next pass", []Event(nil), DecideGroup(s, now).Events)
		})
	}
}
