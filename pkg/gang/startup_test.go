package gang

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// inOrder lets the cliques of a set start one after the other; those that are named need
// to have succeeded.
func inOrder(succeeded ...string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.StartupPolicy = &grovev1alpha1.StartupPolicy{StartupPolicyOrder: grovev1alpha1.StartupPolicyInOrder}
		if len(succeeded) > 0 {
			pcs.Spec.StartupPolicy.Rules = []grovev1alpha1.StartupPolicyRule{{TargetCliques: succeeded, WaitForCliquesStatus: grovev1alpha1.CliqueStatusSucceeded}}
		}
	}
}

// stages are on record as open in an attempt of a replica.
func stages(index, attempt int32, names ...string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Status.ReplicaStatuses = append(pcs.Status.ReplicaStatuses, grovev1alpha1.PodCliqueSetReplicaStatus{Index: index, Attempt: attempt, OpenStages: names})
	}
}

// three is a set of three stages.
func three(options ...setOption) *grovev1alpha1.PodCliqueSet {
	return trainingSet(append([]setOption{template("a", 2, 1), template("b", 2, 2), template("c", 1, 1), inOrder("a")}, options...)...)
}

func TestOpenStages(t *testing.T) {
	type opened struct {
		Open    []string
		Waiting *grovev1alpha1.WaitingFor
		Events  int
	}
	wait := func(clique, status string, have, want int32) *grovev1alpha1.WaitingFor {
		return &grovev1alpha1.WaitingFor{Clique: clique, Status: status, Have: have, Want: want}
	}
	grouped := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return inferenceSet(append([]setOption{template("a", 1, 1), template("b", 1, 1), group("g", 2, 1, "a"), inOrder()}, options...)...)
	}
	for name, tc := range map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		want     opened
	}{
		"the first is open though nothing exists":  {three(), have{}, opened{[]string{"a"}, wait("a", "Succeeded", 0, 2), 0}},
		"ready is not succeeded":                   {three(), have{"set-0-a": {readyPods(2)}}, opened{[]string{"a"}, wait("a", "Succeeded", 0, 2), 0}},
		"one of two has succeeded":                 {three(), have{"set-0-a": {completed("1")}}, opened{[]string{"a"}, wait("a", "Succeeded", 1, 2), 0}},
		"both have":                                {three(), have{"set-0-a": {completed("0-1")}}, opened{[]string{"a", "b"}, wait("b", "Ready", 0, 2), 1}},
		"what is on record as succeeded stays so":  {three(), have{"set-0-a": {hasSucceeded}}, opened{[]string{"a", "b"}, wait("b", "Ready", 0, 2), 1}},
		"a later one that is there does not count": {three(), have{"set-0-a": {readyPods(2)}, "set-0-b": {readyPods(2)}}, opened{[]string{"a"}, wait("a", "Succeeded", 0, 2), 0}},
		"half ready":                               {three(stages(0, 0, "a", "b")), have{"set-0-a": {hasSucceeded}, "set-0-b": {readyPods(1)}}, opened{[]string{"a", "b"}, wait("b", "Ready", 1, 2), 0}},
		"one is ready and one has finished":        {three(stages(0, 0, "a", "b")), have{"set-0-b": {readyPods(1), completed("0")}}, opened{[]string{"a", "b", "c"}, nil, 1}},
		"the minimum is not enough":                {trainingSet(template("a", 3, 1), template("b", 1, 1), inOrder()), have{"set-0-a": {readyPods(2)}}, opened{[]string{"a"}, wait("a", "Ready", 2, 3), 0}},
		"what is open stays open":                  {three(stages(0, 0, "a", "b", "c")), have{}, opened{[]string{"a", "b", "c"}, nil, 0}},
		"of which it knows nothing yet":            {three(replicaAttempt(0, 1)), have{"set-0-a": {attempt(1), completed("0-1")}}, opened{[]string{"a"}, wait("a", "Succeeded", 0, 2), 0}},
		"a set that fails opens no more":           {three(failingFor("x")), have{"set-0-a": {hasSucceeded}}, opened{[]string{"a"}, wait("a", "Succeeded", 2, 2), 0}},
		"all copies have to be there":              {grouped(), have{"set-0-g-0-a": {readyPods(1)}, "set-0-g-1-a": nil}, opened{[]string{"a"}, wait("a", "Ready", 1, 2), 0}},
		"also those that do not exist yet":         {grouped(), have{"set-0-g-0-a": {readyPods(1)}}, opened{[]string{"a"}, wait("a", "Ready", 1, 2), 0}},
		"all copies are there":                     {grouped(), have{"set-0-g-0-a": {readyPods(1)}, "set-0-g-1-a": {readyPods(1)}}, opened{[]string{"a", "b"}, nil, 1}},
		"a count of before its size changed":       {three(), have{"set-0-a": {completed("0-1"), changedSince}}, opened{[]string{"a"}, wait("a", "Succeeded", 0, 2), 0}},
		"a clique that goes":                       {three(), have{"set-0-a": {completed("0-1"), deleted}}, opened{[]string{"a"}, wait("a", "Succeeded", 0, 2), 0}},
		"a clique of no pods opens nothing":        {grouped(), have{"set-0-g-0-a": {size(0)}, "set-0-g-1-a": {size(0)}}, opened{[]string{"a"}, wait("a", "Ready", 0, 0), 0}},
		"without an order nothing is told":         {trainingSet(template("a", 1, 1), template("b", 1, 1)), have{"set-0-a": {readyPods(1)}}, opened{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, tc.existing)
			replica := observeReplicas(s)[0]
			var got opened
			got.Open, got.Waiting = openStages(s, replica)
			got.Events = len(eventsOfStages(s, replica, got.Open))
			expect(t, "stages", tc.want, got)
		})
	}
}

// failingFor makes a set fail.
func failingFor(reason string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		meta.SetStatusCondition(&pcs.Status.Conditions, metav1.Condition{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue, Reason: reason})
	}
}

func startup(completed metav1.ConditionStatus, offset time.Duration) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		inProgress := metav1.ConditionTrue
		if completed == metav1.ConditionTrue {
			inProgress = metav1.ConditionFalse
		}
		for conditionType, status := range map[string]metav1.ConditionStatus{
			grovev1alpha1.ConditionTypeStartupPolicyCompleted: completed, grovev1alpha1.ConditionTypeStartupPolicyInProgress: inProgress,
		} {
			meta.SetStatusCondition(&pcs.Status.Conditions, metav1.Condition{Type: conditionType, Status: status, Reason: "R", LastTransitionTime: at(offset)})
		}
	}
}

func TestStartupConditions(t *testing.T) {
	all := stages(0, 0, "a", "b", "c")
	for name, tc := range map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		// inProgress and completed are statuses; empty when the condition is not there.
		inProgress, completed metav1.ConditionStatus
		since                 time.Duration
	}{
		"at first":                        {set: three(), inProgress: "True", completed: "False"},
		"the last one is open":            {set: three(all, startup("False", -time.Hour)), existing: have{"set-0-c": nil}, inProgress: "True", completed: "False", since: -time.Hour},
		"the last one is ready":           {set: three(all, startup("False", -time.Hour)), existing: have{"set-0-c": {readyPods(1)}}, inProgress: "False", completed: "True"},
		"the last one has finished":       {set: three(all), existing: have{"set-0-c": {completed("0")}}, inProgress: "False", completed: "True"},
		"it stays completed":              {set: three(all, startup("True", -time.Hour)), existing: have{"set-0-c": nil}, inProgress: "False", completed: "True", since: -time.Hour},
		"not when a replica begins anew":  {set: three(stages(0, 1, "a"), startup("True", -time.Hour)), inProgress: "True", completed: "False"},
		"nor when one comes":              {set: three(replicas(2), all, startup("True", -time.Hour)), existing: have{"set-0-c": {readyPods(1)}}, inProgress: "True", completed: "False"},
		"a failed set is in no progress":  {set: three(failingFor("x"), startup("False", -time.Hour)), inProgress: "False", completed: "False"},
		"without an order there are none": {set: trainingSet(template("a", 1, 1))},
		"nor with the order AnyOrder said": {set: trainingSet(template("a", 1, 1), func(pcs *grovev1alpha1.PodCliqueSet) {
			pcs.Spec.StartupPolicy = &grovev1alpha1.StartupPolicy{StartupPolicyOrder: grovev1alpha1.StartupPolicyAnyOrder}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			status := DecideSet(setOf(tc.set, tc.existing), now).Status
			for conditionType, want := range map[string]metav1.ConditionStatus{
				grovev1alpha1.ConditionTypeStartupPolicyInProgress: tc.inProgress, grovev1alpha1.ConditionTypeStartupPolicyCompleted: tc.completed,
			} {
				c := meta.FindStatusCondition(status.Conditions, conditionType)
				switch {
				case c == nil && want == "":
				case c == nil || c.Status != want:
					t.Errorf("%s is %+v, wanted %q", conditionType, c, want)
				case tc.since != 0 && c.LastTransitionTime.Time != now.Add(tc.since):
					t.Errorf("%s is so since %s", conditionType, c.LastTransitionTime)
				}
			}
		})
	}
}

// What is opened is on record before anything is made of it, at once.
func TestAnOpenedStageIsUrgent(t *testing.T) {
	d := DecideSet(setOf(three(), have{"set-0-a": {hasSucceeded}}), now)
	if !d.Urgent {
		t.Error("it waits for the next second")
	}
	expect(t, "event", "StageOpened: replica 0: clique b starts, since a is Succeeded (2/2)", d.Events[0].Reason+": "+d.Events[0].Message)
}

// The write that restarts a replica closes its stages: what the attempt that ends has come
// to opens nothing in the next.
func TestARestartClosesAllStages(t *testing.T) {
	pcs := three(stages(0, 0, "a", "b", "c"), budget(1, 0), startup("True", -time.Hour))
	d := DecideSet(setOf(pcs, have{"set-0-a": {hasSucceeded}, "set-0-b": {readyPods(2)}, "set-0-c": {breached(0, "x")}}), now)
	if d.Status.RestartCount != 1 {
		t.Fatalf("it is not restarted: %+v", d.Status)
	}
	expect(t, "open stages", []string{"a"}, d.Status.ReplicaStatuses[0].OpenStages)
	if meta.IsStatusConditionTrue(d.Status.Conditions, grovev1alpha1.ConditionTypeStartupPolicyCompleted) {
		t.Error("the order is still completed")
	}
	for _, e := range d.Events {
		if e.Reason == EventStageOpened {
			t.Errorf("it tells %q", e.Message)
		}
	}
}

// A stage that is open and does not get a place is what is waited for, then the stage that
// has to come before the next one.
func TestWhatAStagedReplicaWaitsFor(t *testing.T) {
	gangs := func(names ...string) map[string]*schedulerv1alpha1.PodGang {
		out := map[string]*schedulerv1alpha1.PodGang{}
		for _, name := range names {
			out[name] = gangOf(0, 0, metav1.ConditionFalse, schedulerv1alpha1.ReasonNotEnoughResources, "no GPU")
			out[name].Name = name
		}
		return out
	}
	for name, tc := range map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		gangs    map[string]*schedulerv1alpha1.PodGang
		want     *grovev1alpha1.WaitingFor
	}{
		"the stage":                    {three(), have{"set-0-a": nil}, nil, &grovev1alpha1.WaitingFor{Clique: "a", Status: "Succeeded", Want: 2}},
		"the gang of an open stage":    {three(), have{"set-0-a": nil}, gangs("set-0-a"), &grovev1alpha1.WaitingFor{Status: "NotEnoughResources", Want: 1, Message: "no GPU"}},
		"not the gang of a closed one": {three(), have{"set-0-a": nil}, gangs("set-0-b"), &grovev1alpha1.WaitingFor{Clique: "a", Status: "Succeeded", Want: 2}},
		"the last clique":              {three(stages(0, 0, "a", "b", "c")), have{"set-0-a": {hasSucceeded}, "set-0-b": {readyPods(2)}}, nil, &grovev1alpha1.WaitingFor{Clique: "c", Status: "Ready", Want: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, tc.existing)
			s.Gangs = tc.gangs
			expect(t, "waits for", tc.want, DecideSet(s, now).Status.ReplicaStatuses[0].WaitingFor)
		})
	}
}

func TestIsCopyHeld(t *testing.T) {
	pcs := inferenceSet(template("z", 1, 1), template("a", 1, 1), template("b", 1, 1), group("g", 2, 1, "b", "a"), inOrder())
	clique := func(options ...cliqueOption) *grovev1alpha1.PodClique {
		return inference(1, append([]cliqueOption{notCreated}, options...)...)
	}
	for name, tc := range map[string]struct {
		clique  string
		members map[string]*grovev1alpha1.PodClique
		attempt int32
		want    bool
	}{
		"the first of the copy":          {"a", map[string]*grovev1alpha1.PodClique{"a": clique(), "b": clique()}, 0, false},
		"the second":                     {"b", map[string]*grovev1alpha1.PodClique{"a": clique(), "b": clique()}, 0, true},
		"the first does not exist":       {"b", map[string]*grovev1alpha1.PodClique{"a": nil, "b": clique()}, 0, true},
		"the first is ready":             {"b", map[string]*grovev1alpha1.PodClique{"a": clique(readyPods(1)), "b": clique()}, 0, false},
		"it was, in another attempt":     {"b", map[string]*grovev1alpha1.PodClique{"a": clique(readyPods(1)), "b": clique()}, 1, true},
		"it wants the attempt only":      {"b", map[string]*grovev1alpha1.PodClique{"a": clique(readyPods(1), attempt(1)), "b": clique()}, 1, true},
		"what has begun goes on":         {"b", map[string]*grovev1alpha1.PodClique{"a": clique(), "b": clique(created(1))}, 0, false},
		"also when its pods are not all": {"b", map[string]*grovev1alpha1.PodClique{"a": clique(), "b": clique(func(c *grovev1alpha1.PodClique) { c.Status.Replicas = 1 })}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsCopyHeld(pcs, tc.clique, tc.members, tc.attempt); got != tc.want {
				t.Errorf("held: %t", got)
			}
		})
	}
}

func TestGangsOfStages(t *testing.T) {
	pcs := inferenceSet(template("a", 1, 1), template("b", 1, 1), group("g", 2, 1, "b"), inOrder())
	var got [][3]string
	for _, e := range ExpectedCliques(pcs, 3, TemplateSizes) {
		got = append(got, [3]string{e.Name, e.Gang, e.BaseGang})
	}
	expect(t, "cliques and gangs", [][3]string{
		{"set-3-a", "set-3-a", "set-3-a"}, {"set-3-g-0-b", "set-3-b", "set-3-b"}, {"set-3-g-1-b", "set-3-g-0-b", "set-3-b"},
	}, got)
}

// One stage that opens is seen though another replica has gone with one that was open.
func TestHaveSameStages(t *testing.T) {
	with := func(replicas ...grovev1alpha1.PodCliqueSetReplicaStatus) *grovev1alpha1.PodCliqueSet {
		return &grovev1alpha1.PodCliqueSet{Status: grovev1alpha1.PodCliqueSetStatus{ReplicaStatuses: replicas}}
	}
	type replica = grovev1alpha1.PodCliqueSetReplicaStatus
	before := with(replica{Index: 0, OpenStages: []string{"a"}}, replica{Index: 1, OpenStages: []string{"a"}})
	for name, tc := range map[string]struct {
		after *grovev1alpha1.PodCliqueSet
		want  bool
	}{
		"the same":                       {before.DeepCopy(), true},
		"another attempt":                {with(replica{Index: 0, Attempt: 1, OpenStages: []string{"a"}}, replica{Index: 1, OpenStages: []string{"a"}}), true},
		"one opens":                      {with(replica{Index: 0, OpenStages: []string{"a", "b"}}, replica{Index: 1, OpenStages: []string{"a"}}), false},
		"one opens and a replica goes":   {with(replica{Index: 0, OpenStages: []string{"a", "b"}}), false},
		"one opens and another does not": {with(replica{Index: 0, OpenStages: []string{"a", "b"}}, replica{Index: 1}), false},
		"all begin anew":                 {with(), false},
	} {
		t.Run(name, func(t *testing.T) { expect(t, "same", tc.want, HaveSameStages(before, tc.after)) })
	}
}
