package gang

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestPodsAreMade(t *testing.T) {
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		want   []int32
	}{
		"all of a new clique":                        {training(3, notCreated), nil, []int32{0, 1, 2}},
		"those that are missing":                     {training(3, notCreated), pods(podOf(1)), []int32{0, 2}},
		"none that exists":                           {training(3), podsOfAll(3), nil},
		"none while the one before it terminates":    {inference(2), pods(podOf(0, terminating), podOf(1)), nil},
		"none that has finished":                     {training(3, notCreated, completed("1")), pods(podOf(0)), []int32{2}},
		"those of a scale-out":                       {inference(4, minAvailable(2), created(2)), podsOfAll(2, ready), []int32{2, 3}},
		"in Inference one that is gone":              {inference(2), pods(podOf(1, ready)), []int32{0}},
		"none of an attempt that is not on record":   {inference(1, func(c *grovev1alpha1.PodClique) { c.Status.ObservedAttempt = 1 }, created(1)), nil, nil},
		"none of a clique that is deleted":           {inference(2, deleted), nil, nil},
		"none of a clique that wants none":           {inference(0), nil, nil},
		"none in Training whose index has failed":    {training(2, failedBefore(0, 1, -time.Hour)), pods(podOf(1, running)), nil},
		"all, though one has failed":                 {training(3, minAvailable(1), notCreated, failedBefore(0, 1, -time.Hour)), nil, []int32{0, 1, 2}},
		"none when the attempt is due to end":        {training(3, notCreated, failedBefore(0, 1, -time.Hour)), nil, nil},
		"none beside a failed pod, while it is kept": {training(1, failedBefore(0, 1, -time.Hour)), pods(podOf(0, failed)), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := DecideClique(snapshotOf(tc.clique, tc.pods), now)
			expect(t, "actions", actions{Create: tc.want}, actionsOf(got))
		})
	}
}

// Members wait for the gang object, surplus pods for the gang's being scheduled, and
// everything of a scaled gang for the base gang (D23).
func TestPodsWaitForTheirGang(t *testing.T) {
	tests := map[string]struct {
		membership Membership
		want       []int32
	}{
		"the gang does not exist":                          {Membership{Scheduled: true, BaseScheduled: true}, nil},
		"members of the base gang are made":                {Membership{Known: true, BaseScheduled: true}, []int32{0, 1}},
		"surplus pods are made when the gang is scheduled": {Membership{Known: true, Scheduled: true, BaseScheduled: true}, []int32{0, 1, 2, 3}},
		"members of a scaled gang wait for the base gang":  {Membership{Known: true}, nil},
		"so do its surplus pods":                           {Membership{Known: true, Scheduled: true}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			snapshot := snapshotOf(training(4, minAvailable(2), notCreated), nil)
			snapshot.Membership = tc.membership
			expect(t, "actions", actions{Create: tc.want}, actionsOf(DecideClique(snapshot, now)))
		})
	}
	// The gang was scheduled while the clique was scaled to 0.
	t.Run("surplus pods of a clique that comes back wait for its members", func(t *testing.T) {
		snapshot := snapshotOf(inference(4, minAvailable(2)), nil)
		snapshot.Membership = free
		expect(t, "actions", actions{Create: []int32{0, 1}}, actionsOf(DecideClique(snapshot, now)))
		snapshot.Pods = pods(podOf(0, scheduled), podOf(1, scheduled))
		expect(t, "actions when they have a node", actions{Create: []int32{2, 3}}, actionsOf(DecideClique(snapshot, now)))
	})
	t.Run("without a minimum all pods are members", func(t *testing.T) {
		snapshot := snapshotOf(training(2, notCreated, func(c *grovev1alpha1.PodClique) { c.Spec.MinAvailable = nil }), nil)
		snapshot.Membership = Membership{Known: true, BaseScheduled: true}
		expect(t, "actions", actions{Create: []int32{0, 1}}, actionsOf(DecideClique(snapshot, now)))
	})
}

func TestInferenceReplacesWithBackOff(t *testing.T) {
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		want   actions
	}{
		"a failed pod goes once its failure is on record": {
			inference(1, failedBefore(0, 1, -time.Minute)), podsOfAll(1, failed), actions{Delete: []types.UID{"uid-0"}},
		},
		"so does one that exited with 0": {
			inference(1, failedBefore(0, 1, -time.Minute)), podsOfAll(1, succeeded), actions{Delete: []types.UID{"uid-0"}},
		},
		"it is deleted once": {
			inference(1, failedBefore(0, 1, -time.Minute)), podsOfAll(1, failed, terminating), actions{},
		},
		"a pod that runs stays, whatever is on record": {
			inference(1, failedBefore(0, 1, -time.Minute)), podsOfAll(1, running), actions{},
		},
		"the pod after it stays": {
			inference(1, failedBefore(0, 1, -time.Minute)), podsOfAll(1, running, withUID("new")), actions{},
		},
		"also when it has mended the index": {
			inference(1, failedBefore(0, 1, -time.Minute), recovered(0, -time.Second)), podsOfAll(1, ready, withUID("new")), actions{},
		},
		"10 s after the first failure":       {inference(1, failedBefore(0, 1, 0)), nil, actions{Next: 10 * time.Second}},
		"less what has passed":               {inference(1, failedBefore(0, 1, -4*time.Second)), nil, actions{Next: 6 * time.Second}},
		"to the second":                      {inference(1, failedBefore(0, 1, -9*time.Second)), nil, actions{Next: time.Second}},
		"when they have passed, it is made":  {inference(1, failedBefore(0, 1, -10*time.Second)), nil, actions{Create: []int32{0}}},
		"20 s after the second":              {inference(1, failedBefore(0, 2, 0)), nil, actions{Next: 20 * time.Second}},
		"40 s after the third":               {inference(1, failedBefore(0, 3, 0)), nil, actions{Next: 40 * time.Second}},
		"80 s after the fourth":              {inference(1, failedBefore(0, 4, 0)), nil, actions{Next: 80 * time.Second}},
		"160 s after the fifth":              {inference(1, failedBefore(0, 5, 0)), nil, actions{Next: 160 * time.Second}},
		"5 min after the sixth":              {inference(1, failedBefore(0, 6, 0)), nil, actions{Next: 5 * time.Minute}},
		"and not more, however many":         {inference(1, failedBefore(0, 1<<30, 0)), nil, actions{Next: 5 * time.Minute}},
		"each index has a back-off":          {inference(3, failedBefore(0, 3, 0), failedBefore(1, 1, -10*time.Second)), pods(podOf(2)), actions{Create: []int32{1}, Next: 40 * time.Second}},
		"the earliest end is the next look":  {inference(3, failedBefore(0, 1, 0), failedBefore(1, 1, -3*time.Second), failedBefore(2, 2, 0)), nil, actions{Next: 7 * time.Second}},
		"what is not wanted is not awaited":  {inference(1, failedBefore(3, 1, 0)), pods(podOf(0)), actions{}},
		"what still terminates, neither":     {inference(1, failedBefore(0, 1, 0)), podsOfAll(1, failed, terminating), actions{}},
		"a deadline does not hold up others": {inference(2, failedBefore(0, 1, 0)), nil, actions{Create: []int32{1}, Next: 10 * time.Second}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "actions", tc.want, actionsOf(DecideClique(snapshotOf(tc.clique, tc.pods), now)))
		})
	}
}

func TestTrainingAwaitsNoBackOff(t *testing.T) {
	expect(t, "actions", actions{}, actionsOf(DecideClique(snapshotOf(training(1, failedBefore(0, 1, 0)), nil), now)))
}

func TestWhatGoesByTheStateOfTheParent(t *testing.T) {
	// One pod of each kind; the failure is on record.
	all := func() []Pod {
		return pods(podOf(0, ready), podOf(1, succeeded), podOf(2, failed), podOf(3, ready, terminating), podOf(4), podOf(9, ready, withUID("surplus")))
	}
	tests := map[string]struct {
		parent  Parent
		deleted bool
		want    []types.UID
	}{
		"active: the surplus, and what is replaced": {parent: ParentActive, want: []types.UID{"surplus", "uid-2"}},
		"failing: what may still run":               {parent: ParentFailing, want: []types.UID{"surplus", "uid-0", "uid-4"}},
		"finished: what may still run":              {parent: ParentFinished, want: []types.UID{"surplus", "uid-0", "uid-4"}},
		// Its cliques may be orphaned: each one's own deletion says whether it goes along.
		"deleting: nothing":                 {parent: ParentDeleting},
		"the clique is deleted: everything": {parent: ParentActive, deleted: true, want: []types.UID{"surplus", "uid-0", "uid-1", "uid-2", "uid-4"}},
		"with its set":                      {parent: ParentDeleting, deleted: true, want: []types.UID{"surplus", "uid-0", "uid-1", "uid-2", "uid-4"}},
		"below a set that has finished":     {parent: ParentFinished, deleted: true, want: []types.UID{"surplus", "uid-0", "uid-1", "uid-2", "uid-4"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			// Index 5 is a new one: nothing but the parent keeps it from being made.
			clique := training(6, created(5), completed("1"), failedBefore(2, 1, -time.Minute))
			var create []int32
			if tc.parent == ParentActive && !tc.deleted {
				create = []int32{5}
			}
			if tc.deleted {
				deleted(clique)
			}
			snapshot := snapshotOf(clique, all())
			snapshot.Parent, snapshot.TerminationDelay = tc.parent, nil
			expect(t, "actions", actions{Create: create, Delete: tc.want}, actionsOf(DecideClique(snapshot, now)))
		})
	}
}

func TestOldPodsGoWhateverTheParentDoesUnlessItMayOrphan(t *testing.T) {
	gone := []types.UID{"uid-0"}
	for parent, want := range map[Parent][]types.UID{ParentActive: gone, ParentFailing: gone, ParentFinished: gone, ParentDeleting: nil} {
		t.Run(string(parent), func(t *testing.T) {
			snapshot := snapshotOf(training(1, inAttempt(1)), pods(podOf(0, running)))
			snapshot.Parent = parent
			expect(t, "actions", actions{Delete: want}, actionsOf(DecideClique(snapshot, now)))
		})
	}
}

func TestInferenceReplacesNothingBelowAParentThatIsNotActive(t *testing.T) {
	for _, parent := range []Parent{ParentFailing, ParentFinished, ParentDeleting} {
		t.Run(string(parent), func(t *testing.T) {
			snapshot := snapshotOf(inference(2, failedBefore(0, 1, -time.Hour)), podsOfAll(1, failed))
			snapshot.Parent = parent
			expect(t, "actions", actions{}, actionsOf(DecideClique(snapshot, now)))
		})
	}
}

func TestScaleInRemovesTheHighest(t *testing.T) {
	got := DecideClique(snapshotOf(inference(2), podsOfAll(4, ready)), now)
	expect(t, "actions", actions{Delete: []types.UID{"uid-2", "uid-3"}}, actionsOf(got))
}

// What kept pods from being made is told until they are there.
func TestCreationProblemsAreClearedByThePods(t *testing.T) {
	trouble := []cliqueOption{
		condition(grovev1alpha1.ConditionTypeNameConflict, metav1.ConditionTrue, grovev1alpha1.ReasonForeignPod, -time.Hour),
		condition(grovev1alpha1.ConditionTypePodCreationFailed, metav1.ConditionTrue, "Forbidden", -time.Hour),
	}
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		told   bool
	}{
		"a pod is missing":             {training(2, trouble...), pods(podOf(0)), true},
		"all are there":                {training(2, trouble...), podsOfAll(2), false},
		"or have finished":             {training(2, append(trouble, completed("1"))...), pods(podOf(0)), false},
		"a pod above the size is none": {training(1, trouble...), pods(podOf(1)), true},
		"fewer are wanted":             {inference(1, trouble...), pods(podOf(0)), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := DecideClique(snapshotOf(tc.clique, tc.pods), now).Status
			expect(t, "name conflict", tc.told, conditionOf(got.Conditions, grovev1alpha1.ConditionTypeNameConflict) != summary{})
			expect(t, "creation failed", tc.told, conditionOf(got.Conditions, grovev1alpha1.ConditionTypePodCreationFailed) != summary{})
		})
	}
}
