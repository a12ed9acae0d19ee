package gang

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
)

func startupType(startup grovev1alpha1.CliqueStartupType) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Template.StartupType = &startup }
}

func startsAfter(clique string, parents ...string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		for i := range pcs.Spec.Template.Cliques {
			if pcs.Spec.Template.Cliques[i].Name == clique {
				pcs.Spec.Template.Cliques[i].Spec.StartsAfter = parents
			}
		}
	}
}

// barrier holds cliques until all of their gang have started, for at most some seconds; 0
// is for ever.
func barrier(seconds int32, targets ...string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.GroupSchedulingConfig = &grovev1alpha1.GroupSchedulingConfig{TargetCliques: targets}
		if seconds > 0 {
			pcs.Spec.GroupSchedulingConfig.TimeoutAfterSeconds = ptr.To(seconds)
		}
	}
}

func startedPods(n int32) cliqueOption {
	return func(c *grovev1alpha1.PodClique) { c.Status.StartedReplicas = n }
}

// changedSince is a clique whose status is of an earlier spec.
func changedSince(c *grovev1alpha1.PodClique) { c.Generation++ }

// entry is what a gate says of a clique.
type entry = grovev1alpha1.StartGateClique

func gateOf(pcs *grovev1alpha1.PodCliqueSet, existing have, before ...entry) GateSnapshot {
	s := setOf(pcs, existing)
	return GateSnapshot{Set: pcs, Cliques: s.Cliques, Groups: s.Groups, Gate: &grovev1alpha1.StartGate{Status: grovev1alpha1.StartGateStatus{Cliques: before}}}
}

// states are the entries of a gate in short: open, expired, waiting, or started at.
func states(status grovev1alpha1.StartGateStatus) string {
	var out []string
	for _, e := range status.Cliques {
		state := "waits"
		switch {
		case e.Open && e.Expired:
			state = "contradicts itself"
		case e.Open:
			state = "open"
		case e.Expired:
			state = "expired"
		case e.FirstStarted != nil:
			state = "runs"
		}
		if (e.Open || e.Expired) != (e.Since != nil) {
			state += " without its time"
		}
		out = append(out, fmt.Sprintf("%s@%d %s", strings.TrimPrefix(e.Name, "set-0-"), e.Attempt, state))
	}
	return strings.Join(out, ", ")
}

func TestGatesOfAnOrder(t *testing.T) {
	inOrder := trainingSet(template("a", 2, 1), template("b", 2, 2), template("c", 1, 1), startupType(grovev1alpha1.CliqueStartupTypeInOrder))
	explicit := trainingSet(template("a", 1, 1), template("b", 1, 1), template("c", 1, 1), startupType(grovev1alpha1.CliqueStartupTypeExplicit), startsAfter("c", "a", "b"))
	grouped := inferenceSet(template("router", 1, 1), template("leader", 1, 1), template("worker", 1, 1), group("g", 3, 2, "leader", "worker"),
		startupType(grovev1alpha1.CliqueStartupTypeExplicit), startsAfter("leader", "router"), startsAfter("worker", "leader"))
	tail := inferenceSet(template("leader", 1, 1), template("tail", 1, 1), group("g", 3, 2, "leader"),
		startupType(grovev1alpha1.CliqueStartupTypeInOrder))
	for name, tc := range map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		before   []entry
		want     string
	}{
		"the first does not wait":              {inOrder, allOf(inOrder), nil, "b@0 waits, c@0 waits"},
		"the minimum of the one before":        {inOrder, allOf(inOrder).but("set-0-a", readyPods(1)), nil, "b@0 open, c@0 waits"},
		"a pod that has finished is there":     {inOrder, allOf(inOrder).but("set-0-a", completed("1")), nil, "b@0 open, c@0 waits"},
		"less than its minimum":                {inOrder, allOf(inOrder).but("set-0-b", readyPods(1)), nil, "b@0 waits, c@0 waits"},
		"the one before that is not looked at": {inOrder, allOf(inOrder).but("set-0-b", readyPods(2)), nil, "b@0 waits, c@0 open"},
		"what is open stays so":                {inOrder, allOf(inOrder), []entry{{Name: "set-0-b", Open: true, Since: ptr.To(at(-time.Hour))}}, "b@0 open, c@0 waits"},
		"a clique that is not there":           {inOrder, have{"set-0-b": nil}, nil, "b@0 waits, c@0 waits"},
		"a count of before its size changed":   {inOrder, allOf(inOrder).but("set-0-a", readyPods(2), changedSince), nil, "b@0 waits, c@0 waits"},
		"a clique of no pods opens nothing":    {inOrder, allOf(inOrder).but("set-0-a", size(0)), nil, "b@0 waits, c@0 waits"},
		"all that are named":                   {explicit, allOf(explicit).but("set-0-a", readyPods(1)).but("set-0-b", readyPods(1)), nil, "c@0 open"},
		"not some of them":                     {explicit, allOf(explicit).but("set-0-a", readyPods(1)), nil, "c@0 waits"},
		"within a copy, that of the copy": {
			grouped, allOf(grouped).but("set-0-g-1-leader", readyPods(1)), nil,
			"g-0-leader@0 waits, g-1-leader@0 waits, g-2-leader@0 waits, g-0-worker@0 waits, g-1-worker@0 open, g-2-worker@0 waits",
		},
		"every copy waits for what is outside": {
			grouped, allOf(grouped).but("set-0-router", readyPods(1)), nil,
			"g-0-leader@0 open, g-1-leader@0 open, g-2-leader@0 open, g-0-worker@0 waits, g-1-worker@0 waits, g-2-worker@0 waits",
		},
		"of a group the copies of the base gang":  {tail, allOf(tail).but("set-0-g-0-leader", readyPods(1)).but("set-0-g-1-leader", readyPods(1)), nil, "tail@0 open"},
		"each of them":                            {tail, allOf(tail).but("set-0-g-0-leader", readyPods(1)).but("set-0-g-2-leader", readyPods(1)), nil, "tail@0 waits"},
		"of a group that is scaled to nothing":    {inferenceSet(template("leader", 1, 1), template("tail", 1, 1), group("g", 0, 1, "leader"), startupType(grovev1alpha1.CliqueStartupTypeInOrder)), have{"set-0-tail": nil}, nil, "tail@0 waits"},
		"in the next attempt it begins anew":      {attemptSet(inOrder, 1), allOf(inOrder, inAttempt(1)), []entry{{Name: "set-0-b", Open: true, Since: ptr.To(at(-time.Hour))}}, "b@1 waits, c@1 waits"},
		"pods of the attempt before open nothing": {attemptSet(inOrder, 1), allOf(inOrder, readyPods(2)), nil, "b@1 waits, c@1 waits"},
		"nor those of an attempt that is wanted":  {attemptSet(inOrder, 1), allOf(inOrder, readyPods(2), attempt(1)), nil, "b@1 waits, c@1 waits"},
		"one that is being deleted opens nothing": {inOrder, allOf(inOrder).but("set-0-a", readyPods(2), deleted), nil, "b@0 waits, c@0 waits"},
		"and its own gate goes with it":           {inOrder, allOf(inOrder).but("set-0-b", deleted), []entry{{Name: "set-0-b", Open: true, Since: ptr.To(at(-time.Hour))}}, "c@0 waits"},
		"a set that is older than the gate":       {inOrder, allOf(inOrder, readyPods(2)), []entry{{Name: "set-0-b", Attempt: 1}}, "b@1 waits, c@0 open"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, "gates", tc.want, states(DecideGate(gateOf(tc.set, tc.existing, tc.before...), now).Status))
		})
	}
}

func attemptSet(pcs *grovev1alpha1.PodCliqueSet, n int32) *grovev1alpha1.PodCliqueSet {
	out := pcs.DeepCopy()
	replicaAttempt(0, n)(out)
	return out
}

func TestGatesOfTheBarrier(t *testing.T) {
	pair := func(seconds int32, targets ...string) *grovev1alpha1.PodCliqueSet {
		return trainingSet(template("a", 2, 2), template("b", 1, 1), barrier(seconds, targets...))
	}
	grouped := inferenceSet(template("a", 1, 1), template("b", 1, 1), group("g", 2, 1, "b"), barrier(0))
	ordered := trainingSet(template("first", 1, 1), template("a", 2, 2), startupType(grovev1alpha1.CliqueStartupTypeInOrder), barrier(60, "a"))
	since := func(name string, offset time.Duration) entry {
		return entry{Name: name, FirstStarted: ptr.To(at(offset))}
	}
	for name, tc := range map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		before   []entry
		want     string
		next     time.Duration
		events   int
	}{
		"nobody has started":                {set: pair(0), existing: allOf(pair(0)), want: "a@0 waits, b@0 waits"},
		"some have":                         {set: pair(0), existing: allOf(pair(0)).but("set-0-a", startedPods(2)), want: "a@0 runs, b@0 runs"},
		"all have":                          {set: pair(0), existing: allOf(pair(0)).but("set-0-a", startedPods(2)).but("set-0-b", startedPods(1)), want: "a@0 open, b@0 open"},
		"ready is not started":              {set: pair(0), existing: allOf(pair(0), readyPods(2)), want: "a@0 waits, b@0 waits"},
		"who is no target does not count":   {set: pair(0, "a"), existing: allOf(pair(0)).but("set-0-a", startedPods(2)), want: "a@0 open"},
		"a clique is not there":             {set: pair(0), existing: have{"set-0-a": {startedPods(2)}}, want: "a@0 runs, b@0 runs"},
		"pods of the attempt before":        {set: attemptSet(pair(0), 1), existing: allOf(pair(0), startedPods(2)), want: "a@1 waits, b@1 waits"},
		"each gang for itself":              {set: grouped, existing: allOf(grouped).but("set-0-a", startedPods(1)).but("set-0-g-0-b", startedPods(1)), want: "a@0 open, g-0-b@0 open, g-1-b@0 waits"},
		"the time runs from the first":      {set: pair(60), existing: allOf(pair(60)).but("set-0-a", startedPods(1)), want: "a@0 runs, b@0 runs", next: 61 * time.Second},
		"from what is on record":            {set: pair(60), existing: allOf(pair(60)).but("set-0-a", startedPods(1)), before: []entry{since("set-0-a", -50*time.Second)}, want: "a@0 runs, b@0 runs", next: 11 * time.Second},
		"it expires for all":                {set: pair(60), existing: allOf(pair(60)).but("set-0-a", startedPods(2)), before: []entry{since("set-0-a", -61*time.Second)}, want: "a@0 expired, b@0 expired", events: 1},
		"also when the first has gone":      {set: pair(60), existing: allOf(pair(60)), before: []entry{since("set-0-a", -61*time.Second)}, want: "a@0 expired, b@0 expired", events: 1},
		"all have started at the last":      {set: pair(60), existing: allOf(pair(60)).but("set-0-a", startedPods(2)).but("set-0-b", startedPods(1)), before: []entry{since("set-0-a", -time.Hour)}, want: "a@0 open, b@0 open"},
		"expired stays so":                  {set: pair(60), existing: allOf(pair(60)).but("set-0-a", startedPods(2)).but("set-0-b", startedPods(1)), before: []entry{{Name: "set-0-a", Expired: true, Since: ptr.To(at(0))}, {Name: "set-0-b", Expired: true, Since: ptr.To(at(0))}}, want: "a@0 expired, b@0 expired"},
		"open stays so, though a pod went":  {set: pair(60), existing: allOf(pair(60)), before: []entry{{Name: "set-0-a", Open: true, Since: ptr.To(at(0))}, {Name: "set-0-b", Open: true, Since: ptr.To(at(0))}}, want: "a@0 open, b@0 open"},
		"a clique that is being deleted":    {set: pair(0), existing: allOf(pair(0)).but("set-0-a", startedPods(2)).but("set-0-b", startedPods(1), deleted), want: "a@0 runs"},
		"its gate goes with it":             {set: pair(60), existing: allOf(pair(60)).but("set-0-b", startedPods(1), deleted), before: []entry{{Name: "set-0-a", Open: true, Since: ptr.To(at(0))}, {Name: "set-0-b", Open: true, Since: ptr.To(at(0))}}, want: "a@0 open"},
		"a new attempt has a new time":      {set: attemptSet(pair(60), 1), existing: allOf(pair(60), inAttempt(1)).but("set-0-a", inAttempt(1), startedPods(1)), before: []entry{since("set-0-a", -time.Hour)}, want: "a@1 runs, b@1 runs", next: 61 * time.Second},
		"a count of before a change":        {set: pair(0), existing: allOf(pair(0)).but("set-0-a", startedPods(2), changedSince).but("set-0-b", startedPods(1)), want: "a@0 runs, b@0 runs"},
		"who was scaled out is not awaited": {set: pair(0), existing: allOf(pair(0)).but("set-0-a", size(4), minAvailable(2), startedPods(2)).but("set-0-b", startedPods(1)), want: "a@0 open, b@0 open"},
		"who was scaled to nothing neither": {set: pair(0), existing: allOf(pair(0)).but("set-0-a", size(0)).but("set-0-b", startedPods(1)), want: "a@0 open, b@0 open"},
		"but nobody opens nothing":          {set: pair(0), existing: allOf(pair(0)).but("set-0-a", size(0)).but("set-0-b", size(0)), want: "a@0 waits, b@0 waits"},
		"a gate that was deleted":           {set: pair(60), existing: allOf(pair(60)).but("set-0-a", wasAvailable).but("set-0-b", wasAvailable), want: "a@0 open, b@0 open"},
		"a gate of another attempt":         {set: attemptSet(pair(60), 1), existing: allOf(pair(60), wasAvailable), want: "a@1 waits, b@1 waits"},
		"what once held an order back":      {set: ordered, existing: allOf(ordered).but("set-0-a", startedPods(1)), before: []entry{since("set-0-a", -50*time.Second)}, want: "a@0 runs", next: 11 * time.Second},
		"an order comes first":              {set: ordered, existing: allOf(ordered).but("set-0-a", startedPods(2)), want: "a@0 waits"},
		"and the time runs after it":        {set: ordered, existing: allOf(ordered).but("set-0-first", readyPods(1)).but("set-0-a", startedPods(1)), want: "a@0 runs", next: 61 * time.Second},
		"both":                              {set: ordered, existing: allOf(ordered).but("set-0-first", readyPods(1)).but("set-0-a", startedPods(2)), want: "a@0 open"},
	} {
		t.Run(name, func(t *testing.T) {
			d := DecideGate(gateOf(tc.set, tc.existing, tc.before...), now)
			expect(t, "gates", tc.want, states(d.Status))
			next := time.Duration(0)
			if !d.Next.IsZero() {
				next = d.Next.Sub(now)
			}
			if next != tc.next || len(d.Events) != tc.events || (len(d.Expired) > 0) != (tc.events > 0) {
				t.Errorf("next in %s, %d events, %d expire", next, len(d.Events), len(d.Expired))
			}
		})
	}
}

// A gang that was scaled to nothing before all of it had started, and is wanted again, has its
// time from the first pod that comes then.
func TestAGangOfNobodyHasNoTime(t *testing.T) {
	pcs := inferenceSet(template("a", 2, 2), template("b", 1, 1), barrier(60))
	idle := allOf(pcs).but("set-0-a", size(0)).but("set-0-b", size(0))
	s := gateOf(pcs, idle, entry{Name: "set-0-a", FirstStarted: ptr.To(at(-50 * time.Second))}, entry{Name: "set-0-b", FirstStarted: ptr.To(at(-50 * time.Second))})
	s.Gate.Status = DecideGate(s, now).Status
	s.Gate.Status = DecideGate(s, now.Add(time.Second)).Status
	expect(t, "while it is idle", "a@0 waits, b@0 waits", states(s.Gate.Status))
	again := gateOf(pcs, allOf(pcs), s.Gate.Status.Cliques...)
	expect(t, "when it is wanted again", "a@0 waits, b@0 waits", states(DecideGate(again, now.Add(time.Hour)).Status))
	again = gateOf(pcs, allOf(pcs).but("set-0-a", startedPods(1)), s.Gate.Status.Cliques...)
	expect(t, "and its first pod has come", "a@0 runs, b@0 runs", states(DecideGate(again, now.Add(time.Hour)).Status))
}

func TestAnExpiredBarrierNamesWhoIsMissing(t *testing.T) {
	pcs := trainingSet(template("a", 2, 2), template("b", 5, 5), barrier(60))
	s := gateOf(pcs, allOf(pcs).but("set-0-b", startedPods(1)), entry{Name: "set-0-b", FirstStarted: ptr.To(at(-2 * time.Minute))})
	atBarrier := func(p *Pod) { p.AtBarrier = true }
	onNode := func(p *Pod) { p.Node = "node-7" }
	for name, tc := range map[string]struct {
		pods map[string][]Pod
		want string
	}{
		"not looked at": {nil, "set-0-a: 0 of 2 pods have started; set-0-b: 1 of 5 pods have started"},
		"looked at, which counts": {
			map[string][]Pod{
				"set-0-a": {podOf(0, atBarrier), podOf(1, terminating)},
				"set-0-b": {podOf(0, onNode), podOf(1, atBarrier), podOf(2, atBarrier, terminating), podOf(4)},
			},
			"set-0-a: 1 of 2 pods have started, missing: pod-1, which is being deleted; " +
				"set-0-b: 1 of 5 pods have started, missing: pod-0 on node-7; pod-2, which is being deleted; the one of index 3, which does not exist; and 1 more",
		},
		"those that wait for a node": {map[string][]Pod{"set-0-a": {podOf(0, atBarrier), podOf(1)}}, "set-0-a: 1 of 2 pods have started, missing: pod-1, which has no node; set-0-b: 1 of 5 pods have started"},
	} {
		t.Run(name, func(t *testing.T) {
			s.Pods = tc.pods
			d := DecideGate(s, now)
			message := "not all pods have started 1m0s after the first has, " + tc.want
			expect(t, "event", "gang set-0: "+message, d.Events[0].Message)
			for _, e := range d.Status.Cliques {
				expect(t, "message of "+e.Name, message, e.Message)
			}
		})
	}
	s.Pods = map[string][]Pod{"set-0-a": podsOfAll(2, atBarrier), "set-0-b": podsOfAll(5, atBarrier)}
	expect(t, "all have started, which no status tells yet", "a@0 open, b@0 open", states(DecideGate(s, now).Status))
}

// Those that wait at the barrier are not what it waits for.
func TestWaitingForAtTheBarrier(t *testing.T) {
	pcs := trainingSet(template("a", 2, 2), template("b", 3, 3), barrier(60))
	s := setOf(pcs, allOf(pcs).but("set-0-a", startedPods(2)).but("set-0-b", startedPods(1)))
	waiting := func() *grovev1alpha1.WaitingFor { return DecideSet(s, now).Status.ReplicaStatuses[0].WaitingFor }
	expect(t, "without a gate", &grovev1alpha1.WaitingFor{Clique: "a", Status: "Ready", Want: 2}, waiting())
	s.Gates = map[string]*grovev1alpha1.StartGate{"set-0": {}}
	expect(t, "at the barrier", &grovev1alpha1.WaitingFor{Clique: "b", Status: "Started", Have: 1, Want: 3}, waiting())
	s.Gates["set-0"].Status.Cliques = []entry{{Name: "set-0-a", Open: true}, {Name: "set-0-b", Open: true}}
	expect(t, "past it", &grovev1alpha1.WaitingFor{Clique: "a", Status: "Ready", Want: 2}, waiting())
}

// The clique that waits for another is not what holds the set up.
func TestWaitingForWhoeverComesFirst(t *testing.T) {
	pcs := trainingSet(template("launcher", 1, 1), template("worker", 2, 2), startupType(grovev1alpha1.CliqueStartupTypeExplicit), startsAfter("launcher", "worker"))
	s := setOf(pcs, allOf(pcs).but("set-0-worker", readyPods(1)))
	s.Gates = map[string]*grovev1alpha1.StartGate{"set-0": {}}
	waiting := func() *grovev1alpha1.WaitingFor { return DecideSet(s, now).Status.ReplicaStatuses[0].WaitingFor }
	expect(t, "while it is held", &grovev1alpha1.WaitingFor{Clique: "worker", Status: "Ready", Have: 1, Want: 2}, waiting())
	s.Cliques["set-0-worker"].Status.ReadyReplicas = 2
	expect(t, "when it is let go", &grovev1alpha1.WaitingFor{Clique: "launcher", Status: "Ready", Want: 1}, waiting())
}

// A look at the gate takes nothing away from what else is decided.
func TestACliqueThatGoesStillCountsForItsSet(t *testing.T) {
	pcs := trainingSet(template("a", 1, 1), barrier(0))
	s := setOf(pcs, allOf(pcs))
	deleted(s.Cliques["set-0-a"])
	without := DecideSet(s, now).Status
	s.Gates = map[string]*grovev1alpha1.StartGate{"set-0": {}}
	with := DecideSet(s, now).Status
	expect(t, "pods", without.Pods, with.Pods)
	if without.Pods != 1 {
		t.Errorf("%d pods", without.Pods)
	}
}

func TestWaitTimeout(t *testing.T) {
	pcs := trainingSet(template("a", 1, 1), template("b", 1, 1), template("c", 1, 1), startupType(grovev1alpha1.CliqueStartupTypeExplicit), startsAfter("c", "a"), barrier(60, "b"))
	for clique, want := range map[string]time.Duration{"a": 0, "b": time.Minute, "c": 0} {
		expect(t, clique, want, WaitTimeout(pcs, clique))
	}
	// Its clock starts with what its pods do not see.
	both := trainingSet(template("a", 1, 1), template("b", 1, 1), startupType(grovev1alpha1.CliqueStartupTypeInOrder), barrier(60, "b"))
	expect(t, "a target that waits for others first", time.Duration(0), WaitTimeout(both, "b"))
}

// A copy of the base gang that was recycled after the barrier had expired waits for the
// next attempt, and does not start alone.
func TestARecycledCopyDoesNotPassAnExpiredBarrierAlone(t *testing.T) {
	pcs := inferenceSet(template("a", 1, 1), template("b", 1, 1), group("g", 1, 1, "b"), barrier(60))
	s := gateOf(pcs, allOf(pcs).but("set-0-g-0-b", inAttempt(1), startedPods(1)), entry{Name: "set-0-a", Expired: true, Since: ptr.To(at(0))}, entry{Name: "set-0-g-0-b", Expired: true, Since: ptr.To(at(0))})
	recycled := &grovev1alpha1.PodCliqueScalingGroup{Spec: grovev1alpha1.PodCliqueScalingGroupSpec{Replicas: 1}}
	recycledCopy(&recycled.Status, 0, 1, 0)
	s.Groups = map[string]*grovev1alpha1.PodCliqueScalingGroup{"set-0-g": recycled}
	d := DecideGate(s, now)
	expect(t, "gates", "a@0 expired, g-0-b@1 waits", states(d.Status))
	if !d.Next.IsZero() || len(d.Events) > 0 {
		t.Errorf("next %s, events %v", d.Next, d.Events)
	}
	// Of a gang that is open, the copy alone gathers anew.
	s.Gate.Status.Cliques = []entry{{Name: "set-0-a", Open: true, Since: ptr.To(at(0))}, {Name: "set-0-g-0-b", Open: true, Since: ptr.To(at(0))}}
	expect(t, "gates of an open gang", "a@0 open, g-0-b@1 open", states(DecideGate(s, now).Status))
}

func TestGateFile(t *testing.T) {
	expect(t, "text", "a 3\nc 0\n", GateFile(&grovev1alpha1.StartGateStatus{Cliques: []entry{{Name: "c", Open: true}, {Name: "b", Attempt: 1}, {Name: "a", Attempt: 3, Open: true}, {Name: "d", Expired: true}}}))
	expect(t, "nothing", "", GateFile(&grovev1alpha1.StartGateStatus{}))
}

func TestWaitContainer(t *testing.T) {
	both := trainingSet(template("a", 1, 1), template("b", 1, 1), template("c", 1, 1), startupType(grovev1alpha1.CliqueStartupTypeInOrder), barrier(0, "c"))
	for clique, want := range map[string]string{"a": "", "b": naming.OrderContainer, "c": naming.BarrierContainer} {
		if got := WaitContainer(both, clique); got != want {
			t.Errorf("pods of %s wait in %q", clique, got)
		}
	}
	all := trainingSet(template("a", 1, 1), barrier(0))
	if WaitContainer(all, "a") != naming.BarrierContainer || !NeedsGate(all) || NeedsGate(trainingSet(template("a", 1, 1))) || NeedsGate(trainingSet(template("a", 1, 1), startsAfter("a", "b"))) {
		t.Error("who waits is wrong")
	}
}

// An expired barrier ends the attempt, once however many cliques it holds, whatever the
// delay is; in Inference after a while that grows.
func TestAnExpiredBarrierEndsTheAttempt(t *testing.T) {
	expired := func(offset time.Duration, n int32) []entry {
		return []entry{{Name: "set-0-a", Attempt: n, Expired: true, Since: ptr.To(at(offset))}, {Name: "set-0-b", Attempt: n, Expired: true, Since: ptr.To(at(offset))}}
	}
	training := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return trainingSet(append([]setOption{template("a", 1, 1), template("b", 1, 1), barrier(60), func(pcs *grovev1alpha1.PodCliqueSet) {
			pcs.Spec.TrainingSpec = &grovev1alpha1.TrainingSpec{MaxRestarts: ptr.To[int32](1)}
		}}, options...)...)
	}
	inference := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return inferenceSet(append([]setOption{template("a", 1, 1), template("b", 1, 1), barrier(60)}, options...)...)
	}
	for name, tc := range map[string]struct {
		set     *grovev1alpha1.PodCliqueSet
		entries []entry
		attempt int32
		restart int32
		failing bool
		next    time.Duration
	}{
		"in Training at once":               {set: training(), entries: expired(0, 0), attempt: 1, restart: 1},
		"one restart is not enough":         {set: training(replicaAttempt(0, 1), budget(1, 1)), entries: expired(0, 1), attempt: 1, restart: 1, failing: true},
		"that of the attempt before":        {set: training(replicaAttempt(0, 1), budget(1, 1)), entries: expired(0, 0), attempt: 1, restart: 1},
		"in Inference after ten seconds":    {set: inference(), entries: expired(-11*time.Second, 0), attempt: 1},
		"not before":                        {set: inference(), entries: expired(-5*time.Second, 0), next: 6 * time.Second},
		"the next time after twice as long": {set: inference(replicaAttempt(0, 1)), entries: expired(-11*time.Second, 1), attempt: 1, next: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, allOf(tc.set, inAttempt(ReplicaAttempt(tc.set, 0))))
			s.Gates = map[string]*grovev1alpha1.StartGate{"set-0": {Status: grovev1alpha1.StartGateStatus{Cliques: tc.entries}}}
			d := DecideSet(s, now)
			attempt, next := int32(0), time.Duration(0)
			if len(d.Status.ReplicaStatuses) > 0 {
				attempt = d.Status.ReplicaStatuses[0].Attempt
			}
			if !d.Next.IsZero() {
				next = d.Next.Sub(now)
			}
			if attempt != tc.attempt || d.Status.RestartCount != tc.restart || isFailing(&d.Status) != tc.failing || next != tc.next {
				t.Errorf("attempt %d, %d restarts, failing %t, next in %s", attempt, d.Status.RestartCount, isFailing(&d.Status), next)
			}
		})
	}
}

// A copy that is a gang of its own is made anew by its group; one of the base gang is not.
func TestAnExpiredBarrierOfACopy(t *testing.T) {
	for _, tc := range []struct {
		copyIndex int32
		want      int32
	}{{0, 0}, {1, 1}} {
		member := inCopy(fmt.Sprint(tc.copyIndex))
		s := copiesOf(2, 1, member)
		s.Gate = &grovev1alpha1.StartGate{Status: grovev1alpha1.StartGateStatus{Cliques: []entry{{Name: fmt.Sprint("of-copy-", tc.copyIndex), Expired: true, Since: ptr.To(at(-time.Minute))}}}}
		d := DecideGroup(s, now)
		if got := CopyAttempt(&grovev1alpha1.PodCliqueScalingGroup{Status: d.Status}, tc.copyIndex); got != tc.want || d.Recycled != (tc.want > 0) || len(d.Events) != int(tc.want) {
			t.Errorf("copy %d: attempt %d, recycled %t, %d events", tc.copyIndex, got, d.Recycled, len(d.Events))
		}
	}
}
