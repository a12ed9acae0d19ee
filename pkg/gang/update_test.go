package gang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// madeFrom is a clique that has a template, and of which all pods have been made from it.
func madeFrom(hash string) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		takes(hash)(c)
		c.Status.CurrentPodTemplateHash = ptr.To(hash)
	}
}

// takes is a clique that makes new pods from a template.
func takes(hash string) cliqueOption {
	return func(c *grovev1alpha1.PodClique) { metav1.SetMetaDataLabel(&c.ObjectMeta, labels.PodTemplateHash, hash) }
}

// updating is a clique whose update to a template is in course, and began with Ready pods.
func updating(hash string, ready int32, began time.Duration) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		takes(hash)(c)
		c.Status.UpdateProgress = &grovev1alpha1.PodCliqueUpdateProgress{PodTemplateHash: hash, ReadyReplicas: ready, UpdateStartedAt: at(began)}
	}
}

// fromWhatIsUpdated has a clique that counts fewer updated pods than it needs make them from
// the template before.
func fromWhatIsUpdated(c *grovev1alpha1.PodClique) {
	if c.Status.UpdatedReplicas < effectiveMinAvailable(&c.Spec) {
		madeFrom("before")(c)
	}
}

// hashed gives all cliques of a set's template a hash, and the set the same.
func hashed(pcs *grovev1alpha1.PodCliqueSet, hash string) {
	pcs.Status.CurrentGenerationHash = ptr.To(hash)
	pcs.Status.CliqueHashes = nil
	for _, clique := range pcs.Spec.Template.Cliques {
		pcs.Status.CliqueHashes = append(pcs.Status.CliqueHashes, grovev1alpha1.CliqueHash{Name: clique.Name, Hash: hash})
	}
}

var due = CliqueTurn{Due: true, MaxUnavailable: 1, PodTemplateHash: "new", GenerationHash: "new"}

func oldPod(index int32, options ...podOption) Pod {
	return podOf(index, append([]podOption{fromTemplate("old"), withUID(types.UID("old-" + labels.Index(index)))}, options...)...)
}

func newPod(index int32, options ...podOption) Pod {
	return podOf(index, append([]podOption{fromTemplate("new")}, options...)...)
}

func TestWhichPodsAnUpdateReplaces(t *testing.T) {
	inCourse := updating("new", 3, -time.Minute)
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		turn   func(*CliqueTurn)
		known  bool
		want   []types.UID
	}{
		"the first, when all are Ready":              {inference(3, inCourse), pods(oldPod(0, ready), oldPod(1, ready), oldPod(2, ready)), nil, true, []types.UID{"old-0"}},
		"as many as may be away":                     {inference(3, inCourse), pods(oldPod(0, ready), oldPod(1, ready), oldPod(2, ready)), func(c *CliqueTurn) { c.MaxUnavailable = 2 }, true, []types.UID{"old-0", "old-1"}},
		"none while the one before is not Ready":     {inference(3, inCourse), pods(newPod(0, running), oldPod(1, ready), oldPod(2, ready)), nil, true, nil},
		"none while the one before is going":         {inference(3, inCourse), pods(oldPod(0, ready, terminating), oldPod(1, ready), oldPod(2, ready)), nil, true, nil},
		"none while the one before is not there":     {inference(3, inCourse), pods(oldPod(1, ready), oldPod(2, ready)), nil, true, nil},
		"the next when it is Ready":                  {inference(3, inCourse), pods(newPod(0, ready), oldPod(1, ready), oldPod(2, ready)), nil, true, []types.UID{"old-1"}},
		"at once those that are not Ready":           {inference(3, inCourse), pods(oldPod(0, ready), oldPod(1, running), oldPod(2)), nil, true, []types.UID{"old-1", "old-2"}},
		"one that has ended":                         {inference(3, inCourse, minAvailable(1)), pods(newPod(0, ready), newPod(1, ready), oldPod(2, failed)), nil, true, []types.UID{"old-2"}},
		"not one that is Ready and once failed":      {inference(2, inCourse, failedBefore(0, 3, -time.Hour)), pods(oldPod(0, ready), newPod(1, running)), nil, true, nil},
		"none before it is on record":                {inference(1, takes("new"), updatedBefore("new")), pods(oldPod(0, ready)), nil, true, nil},
		"none of a template that is not the newest":  {inference(1, updating("old", 1, -time.Minute), takes("old")), pods(podOf(0, ready, fromTemplate("older"))), func(c *CliqueTurn) { c.Due = false }, true, nil},
		"none when it is not its turn":               {inference(1, inCourse), pods(oldPod(0, ready)), func(c *CliqueTurn) { c.Due = false }, true, nil},
		"none without a gang that knows the new one": {inference(1, inCourse), pods(oldPod(0, ready)), nil, false, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(tc.clique, tc.pods)
			s.Turn, s.Membership.Known = due, tc.known
			if tc.turn != nil {
				tc.turn(&s.Turn)
			}
			d := DecideClique(s, now)
			if d.Record {
				// An end that was recorded, or the beginning of an update.
				s.Clique = s.Clique.DeepCopy()
				s.Clique.Status = d.Status
				if expect(t, "deleted by the pass that records", 0, len(d.Delete)); tc.want == nil {
					return
				}
				d = DecideClique(s, now)
			}
			expect(t, "deleted", tc.want, actionsOf(d).Delete)
		})
	}
}

// updatedBefore is a clique whose update to a template has ended.
func updatedBefore(hash string) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		updating(hash, 1, -time.Hour)(c)
		c.Status.UpdateProgress.UpdateEndedAt = ptr.To(at(-time.Minute))
	}
}

func TestAnUpdateOfACliqueBeginsAndEnds(t *testing.T) {
	type progress struct {
		Hash  string
		Ready int32
		Ended bool
	}
	tests := map[string]struct {
		clique  *grovev1alpha1.PodClique
		pods    []Pod
		turn    CliqueTurn
		want    *progress
		records bool
		// current is the template that all pods follow.
		current string
	}{
		"it begins with how many are Ready": {inference(3, madeFrom("old"), takes("new")), pods(oldPod(0, ready), oldPod(1, ready), oldPod(2)), due, &progress{"new", 2, false}, true, "old"},
		"not before its turn":               {inference(1, madeFrom("old"), takes("new")), pods(oldPod(0, ready)), CliqueTurn{PodTemplateHash: "new"}, nil, false, "old"},
		"not while all pods follow":         {inference(1, madeFrom("new")), pods(newPod(0, ready)), due, nil, false, "new"},
		"it goes on while a pod is old":     {inference(2, madeFrom("old"), updating("new", 2, 0)), pods(newPod(0, ready), oldPod(1, ready)), due, &progress{"new", 2, false}, false, "old"},
		"and while an old one is going":     {inference(1, madeFrom("old"), updating("new", 0, 0)), pods(oldPod(0, ready, terminating)), due, &progress{"new", 0, false}, false, "old"},
		"and while fewer are Ready than before": {
			inference(2, madeFrom("old"), updating("new", 2, 0)), pods(newPod(0, ready), newPod(1, running)), due, &progress{"new", 2, false}, false, "old",
		},
		"it ends when as many are Ready":  {inference(2, madeFrom("old"), updating("new", 1, 0)), pods(newPod(0, ready), newPod(1, running)), due, &progress{"new", 1, true}, false, "new"},
		"though the clique was scaled in": {inference(1, madeFrom("old"), updating("new", 2, 0)), pods(newPod(0, ready)), due, &progress{"new", 2, true}, false, "new"},
		"it begins anew with another template, and what was Ready at first": {
			inference(3, madeFrom("old"), updating("middle", 3, 0), takes("new")), pods(oldPod(0, ready), podOf(1, ready, fromTemplate("middle")), newPod(2)), due, &progress{"new", 3, false}, true, "old",
		},
		"it waits until somebody has decided about another template": {
			inference(1, madeFrom("old"), updating("middle", 1, 0)), pods(oldPod(0, ready)), CliqueTurn{PodTemplateHash: "new"}, &progress{"middle", 1, false}, false, "old",
		},
		"it ends when nobody updates any more": {
			inference(2, madeFrom("old"), updating("new", 2, 0)), pods(newPod(0, ready), oldPod(1, ready)), CliqueTurn{PodTemplateHash: "new", Over: true}, &progress{"new", 2, true}, false, "old",
		},
		"pods of an earlier template come up once more": {
			inference(2, madeFrom("new"), updatedBefore("new")), pods(newPod(0, ready), oldPod(1, ready)), CliqueTurn{PodTemplateHash: "new", Over: true}, &progress{"new", 1, true}, false, "old",
		},
		"it ends with the attempt, whose pods are all made anew": {
			inference(2, madeFrom("old"), updating("new", 2, 0), attempt(1)), pods(oldPod(0, ready)), due, &progress{"new", 2, true}, true, "old",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(tc.clique, tc.pods)
			s.Turn = tc.turn
			d := DecideClique(s, now)
			expect(t, "records", tc.records, d.Record)
			var got *progress
			if p := d.Status.UpdateProgress; p != nil {
				got = &progress{p.PodTemplateHash, p.ReadyReplicas, p.UpdateEndedAt != nil}
			}
			expect(t, "progress", tc.want, got)
			expect(t, "all pods follow", tc.current, ptr.Deref(d.Status.CurrentPodTemplateHash, ""))
		})
	}
}

// What failed of an earlier template says nothing about the new one, which may mend it.
func TestANewTemplateDoesNotWaitForTheBackoffOfTheOld(t *testing.T) {
	for name, tc := range map[string]struct {
		failed time.Duration
		want   []int32
	}{
		"it failed before the update": {-2 * time.Minute, []int32{0}},
		"it failed since":             {-time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(inference(1, updating("new", 0, -time.Minute), failedBefore(0, 9, tc.failed)), nil)
			s.Turn = due
			expect(t, "made", tc.want, DecideClique(s, now).Create)
		})
	}
}

// What failed may have no pod by the time that a new template comes: it is replaced by its turn,
// like a pod that is there and not Ready.
func TestANewTemplateDoesNotWaitThoughNoPodOfTheOldIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		turn   CliqueTurn
		want   []int32
	}{
		"its only pod failed":           {inference(1, madeFrom("old"), takes("new"), failedBefore(0, 9, -time.Second)), nil, due, []int32{0}},
		"the others were made from it":  {inference(2, madeFrom("old"), takes("new"), failedBefore(1, 9, -time.Second)), pods(newPod(0, ready)), due, []int32{1}},
		"it fails again":                {inference(1, madeFrom("new"), updatedBefore("new"), failedBefore(0, 9, -time.Second)), nil, due, nil},
		"the template has not changed":  {inference(1, madeFrom("new"), failedBefore(0, 9, -time.Second)), nil, due, nil},
		"its turn has not come":         {inference(1, madeFrom("old"), failedBefore(0, 9, -time.Second)), nil, CliqueTurn{PodTemplateHash: "new"}, nil},
		"its first template is changed": {inference(1, madeFrom("old"), takes("new"), failedBefore(0, 1, -time.Second), notCreated), nil, due, []int32{0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(tc.clique, tc.pods)
			s.Turn = tc.turn
			d := DecideClique(s, now)
			for range 3 {
				if !d.Record {
					break
				}
				s.Clique = s.Clique.DeepCopy()
				s.Clique.Status = d.Status
				d = DecideClique(s, now)
			}
			expect(t, "made", tc.want, d.Create)
		})
	}
}

func TestWhichCopiesAnUpdateReplaces(t *testing.T) {
	turn := GroupTurn{Due: true, MaxUnavailable: 1, GenerationHash: "new", TemplateHashes: map[string]string{"set-0-worker": "new"}}
	one := func(index string, options ...cliqueOption) grovev1alpha1.PodClique {
		return *inference(1, append([]cliqueOption{inGroupCopy(index)}, options...)...)
	}
	up, down := []cliqueOption{readyPods(1), madeFrom("old")}, []cliqueOption{madeFrom("old")}
	done := []cliqueOption{readyPods(1), madeFrom("new")}
	began := func(hash string, current ...int32) *grovev1alpha1.PodCliqueScalingGroupUpdateProgress {
		return &grovev1alpha1.PodCliqueScalingGroupUpdateProgress{
			PodCliqueSetGenerationHash: hash, ReadyReplicaIndicesSelectedToUpdate: &grovev1alpha1.ReplicaIndicesSelectedToUpdate{Updating: current},
		}
	}
	type outcome struct {
		Updating, Completed []int32
		Ended               bool
		Members, Updated    int32
	}
	tests := map[string]struct {
		copies   []grovev1alpha1.PodClique
		progress *grovev1alpha1.PodCliqueScalingGroupUpdateProgress
		turn     func(*GroupTurn)
		want     *outcome
	}{
		"the first":                        {[]grovev1alpha1.PodClique{one("0", up...), one("1", up...)}, nil, nil, &outcome{[]int32{0}, nil, false, 2, 0}},
		"two when two may be away":         {[]grovev1alpha1.PodClique{one("0", up...), one("1", up...), one("2", up...)}, nil, func(g *GroupTurn) { g.MaxUnavailable = 2 }, &outcome{[]int32{0, 1}, nil, false, 3, 0}},
		"those that are not available":     {[]grovev1alpha1.PodClique{one("0", up...), one("1", down...), one("2", down...)}, nil, nil, &outcome{[]int32{1, 2}, nil, false, 3, 0}},
		"no other while one is in turn":    {[]grovev1alpha1.PodClique{one("0", up...), one("1", up...)}, began("new", 0), nil, &outcome{[]int32{0}, nil, false, 2, 0}},
		"the next when it is done":         {[]grovev1alpha1.PodClique{one("0", done...), one("1", up...)}, began("new", 0), nil, &outcome{[]int32{1}, []int32{0}, false, 2, 1}},
		"none while a done one is away":    {[]grovev1alpha1.PodClique{one("0", madeFrom("new")), one("1", up...)}, began("new", 0), nil, &outcome{nil, []int32{0}, false, 2, 1}},
		"the end":                          {[]grovev1alpha1.PodClique{one("0", done...), one("1", done...)}, began("new", 1), nil, &outcome{nil, []int32{1}, true, 2, 2}},
		"another template, the same first": {[]grovev1alpha1.PodClique{one("0", up...), one("1", up...)}, began("middle", 1), nil, &outcome{[]int32{1}, nil, false, 2, 0}},
		"not its turn":                     {[]grovev1alpha1.PodClique{one("0", up...)}, nil, func(g *GroupTurn) { g.Due = false }, nil},
		"nobody updates any more":          {[]grovev1alpha1.PodClique{one("0", up...)}, began("new", 0), func(g *GroupTurn) { g.Due, g.Over = false, true }, &outcome{[]int32{0}, nil, true, 1, 0}},
		"a copy that is scaled in":         {[]grovev1alpha1.PodClique{one("0", up...)}, began("new", 3), nil, &outcome{[]int32{0}, nil, false, 1, 0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := GroupSnapshot{
				Group: &grovev1alpha1.PodCliqueScalingGroup{
					ObjectMeta: metav1.ObjectMeta{Name: "set-0-g"},
					Spec:       grovev1alpha1.PodCliqueScalingGroupSpec{Replicas: int32(len(tc.copies)), MinAvailable: ptr.To[int32](1), CliqueNames: []string{"worker"}},
					Status:     grovev1alpha1.PodCliqueScalingGroupStatus{UpdateProgress: tc.progress},
				},
				Cliques: tc.copies, Parent: ParentActive, Turn: turn,
			}
			if tc.turn != nil {
				tc.turn(&s.Turn)
			}
			before := s.Group.DeepCopy()
			status := DecideGroup(s, now).Status
			expect(t, "what was read", before, s.Group)
			var got *outcome
			if p := status.UpdateProgress; p != nil {
				got = &outcome{
					p.ReadyReplicaIndicesSelectedToUpdate.Updating, p.ReadyReplicaIndicesSelectedToUpdate.Completed, p.UpdateEndedAt != nil,
					p.TotalPodCliquesCount, p.UpdatedPodCliquesCount,
				}
			}
			expect(t, "progress", tc.want, got)
			s.Group.Status = status
			if diff := cmp.Diff(status, DecideGroup(s, now).Status); diff != "" && tc.want != nil && !tc.want.Ended && tc.want.Updating != nil {
				t.Errorf("the next pass changes it again (-first +second):\n%s", diff)
			}
		})
	}
}

func inGroupCopy(index string) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		metav1.SetMetaDataLabel(&c.ObjectMeta, labels.ScalingGroupReplicaIndex, index)
		metav1.SetMetaDataLabel(&c.ObjectMeta, labels.ScalingGroup, "set-0-g")
	}
}

// inProgress is an update of the set to a template, with the turn of a replica.
func inProgress(hash string, replica int32, wasAvailable bool) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Status.UpdateProgress = &grovev1alpha1.PodCliqueSetUpdateProgress{
			PodCliqueSetGenerationHash: hash, UpdateStartedAt: at(-time.Minute),
			CurrentlyUpdating: []grovev1alpha1.PodCliqueSetReplicaUpdateProgress{{ReplicaIndex: replica, UpdateStartedAt: at(-time.Minute), WasAvailable: wasAvailable}},
		}
	}
}

func strategy(kind grovev1alpha1.UpdateStrategyType) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.UpdateStrategy = &grovev1alpha1.PodCliqueSetUpdateStrategy{Type: kind}
	}
}

func TestWhoseTurnItIs(t *testing.T) {
	set := func(n int32, options ...setOption) *grovev1alpha1.PodCliqueSet {
		pcs := inferenceSet(append([]setOption{template("worker", 1, 1), replicas(n)}, options...)...)
		hashed(pcs, "new")
		return pcs
	}
	up, unscheduled := []cliqueOption{readyPods(1), scheduledPods(1), madeFrom("old")}, []cliqueOption{madeFrom("old")}
	lacking := []cliqueOption{scheduledPods(1), madeFrom("old"), condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionTrue, "R", -time.Minute)}
	done := []cliqueOption{readyPods(1), scheduledPods(1), madeFrom("new")}
	away := []cliqueOption{scheduledPods(1), madeFrom("new")}
	type outcome struct {
		Hash           string
		Turn           int32
		Started, Ended bool
		Events         []string
		Pending        summary
	}
	const nobody = int32(-1)
	rolling := isTrue(grovev1alpha1.ReasonRollingUpdate)
	follow := isFalse(grovev1alpha1.ReasonPodsFollowTemplate)
	tests := map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		want     outcome
	}{
		"nobody's while all follow":      {set(2), have{"set-0-worker": done, "set-1-worker": done}, outcome{"", nobody, false, false, nil, follow}},
		"nobody's before anything is":    {set(2), nil, outcome{"", nobody, false, false, nil, follow}},
		"the first":                      {set(2), have{"set-0-worker": up, "set-1-worker": up}, outcome{"new", 0, true, false, []string{EventUpdateStarted}, rolling}},
		"one that lacks pods before it":  {set(2), have{"set-0-worker": up, "set-1-worker": lacking}, outcome{"new", 1, true, false, []string{EventUpdateStarted}, rolling}},
		"one without a node before both": {set(3), have{"set-0-worker": up, "set-1-worker": lacking, "set-2-worker": unscheduled}, outcome{"new", 2, true, false, []string{EventUpdateStarted}, rolling}},
		"the same until it is done":      {set(2, inProgress("new", 1, true)), have{"set-0-worker": up, "set-1-worker": up}, outcome{"new", 1, true, false, nil, rolling}},
		"the same until it is available as before": {
			set(2, inProgress("new", 1, true)), have{"set-0-worker": up, "set-1-worker": away}, outcome{"new", 1, true, false, nil, rolling},
		},
		"the next, if it was not available before either": {
			set(2, inProgress("new", 1, false)), have{"set-0-worker": up, "set-1-worker": away}, outcome{"new", 0, true, false, nil, rolling},
		},
		"the next when it is done":    {set(2, inProgress("new", 1, true)), have{"set-0-worker": up, "set-1-worker": done}, outcome{"new", 0, true, false, nil, rolling}},
		"the next when it is no more": {set(1, inProgress("new", 1, true)), have{"set-0-worker": up}, outcome{"new", 0, true, false, nil, rolling}},
		"nobody's when all are done":  {set(2, inProgress("new", 1, true)), have{"set-0-worker": done, "set-1-worker": done}, outcome{"new", nobody, true, true, []string{EventUpdateCompleted}, follow}},
		"the same with a newer template": {
			set(2, inProgress("middle", 1, true)), have{"set-0-worker": up, "set-1-worker": away}.but("set-1-worker", append(away, madeFrom("middle"))...), outcome{"new", 1, true, false, []string{EventUpdateStarted}, rolling},
		},
		"nobody's with OnDelete": {
			set(1, strategy(grovev1alpha1.UpdateStrategyOnDelete)), have{"set-0-worker": append(up, takes("new"))}, outcome{"new", nobody, true, true, nil, isTrue(grovev1alpha1.ReasonWaitingForDeletion)},
		},
		"nobody's when it becomes OnDelete": {
			set(1, strategy(grovev1alpha1.UpdateStrategyOnDelete), inProgress("new", 0, true)), have{"set-0-worker": up}, outcome{"new", nobody, true, true, nil, isTrue(grovev1alpha1.ReasonWaitingForDeletion)},
		},
		"the first when it is OnDelete no more": {
			set(1, inProgress("new", 0, true), hasEnded), have{"set-0-worker": append(up, takes("new"))}, outcome{"new", 0, true, false, []string{EventUpdateStarted}, rolling},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, tc.existing)
			for _, clique := range s.Cliques {
				if ptr.Deref(clique.Status.CurrentPodTemplateHash, "") == "new" {
					clique.Status.UpdatedReplicas = clique.Status.Replicas
				}
			}
			d := DecideSet(s, now)
			got := outcome{Turn: nobody, Pending: conditionOf(d.Status.Conditions, grovev1alpha1.ConditionTypeUpdatePending)}
			if p := d.Status.UpdateProgress; p != nil {
				got.Hash, got.Started, got.Ended = p.PodCliqueSetGenerationHash, true, p.UpdateEndedAt != nil
				if turn := currentTurn(p); turn != nil {
					got.Turn = turn.ReplicaIndex
				}
			}
			for _, e := range d.Events {
				got.Events = append(got.Events, e.Reason)
			}
			expect(t, "outcome", tc.want, got)
			s.Set.Status = d.Status
			if again := DecideSet(s, now); again.Changed {
				t.Errorf("the next pass changes it again (-first +second):\n%s", cmp.Diff(d.Status, again.Status))
			}
		})
	}
}

func hasEnded(pcs *grovev1alpha1.PodCliqueSet) {
	pcs.Status.UpdateProgress.UpdateEndedAt = ptr.To(at(-time.Second))
}

// kube-scheduler refuses a group of another class than its pods (D23).
func TestAnotherPriorityClassMakesTheReplicaAnew(t *testing.T) {
	gangOf := func(class string, attempt int32) *schedulerv1alpha1.PodGang {
		return &schedulerv1alpha1.PodGang{
			ObjectMeta: metav1.ObjectMeta{Name: "set-0", Labels: map[string]string{labels.RestartAttempt: labels.Index(attempt)}},
			Spec:       schedulerv1alpha1.PodGangSpec{PriorityClassName: class},
		}
	}
	tests := map[string]struct {
		set     setOption
		podGang *schedulerv1alpha1.PodGang
		want    int32
	}{
		"with its turn":                        {func(*grovev1alpha1.PodCliqueSet) {}, gangOf("low", 0), 1},
		"once more when the class has changed": {func(pcs *grovev1alpha1.PodCliqueSet) { inProgress("new", 0, true)(pcs); replicaAttempt(0, 1)(pcs) }, gangOf("middle", 1), 2},
		"not before the gang has followed":     {func(pcs *grovev1alpha1.PodCliqueSet) { inProgress("new", 0, true)(pcs); replicaAttempt(0, 1)(pcs) }, gangOf("low", 0), 1},
		"not with the same class":              {func(*grovev1alpha1.PodCliqueSet) {}, gangOf("high", 0), 0},
		"not with OnDelete":                    {strategy(grovev1alpha1.UpdateStrategyOnDelete), gangOf("low", 0), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pcs := inferenceSet(template("worker", 1, 1), tc.set)
			hashed(pcs, "new")
			pcs.Spec.Template.PriorityClassName = "high"
			s := setOf(pcs, have{"set-0-worker": {readyPods(1), scheduledPods(1), madeFrom("old")}})
			s.Gangs["set-0"] = tc.podGang
			status := DecideSet(s, now).Status
			pcs.Status = status
			expect(t, "attempt", tc.want, ReplicaAttempt(pcs, 0))
			if c := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeRestarting); tc.want > 0 && c == nil && name != "not before the gang has followed" {
				t.Error("nothing tells that the replica is made anew")
			}
		})
	}
}

// Pods of a gang have its class, though they are of the newest template: with OnDelete, or in a
// gang that had no pods when the class was changed.
func TestAGangOfAnotherPriorityClassIsLeftToUpdate(t *testing.T) {
	gangOf := func(class string, attempt int32) *schedulerv1alpha1.PodGang {
		return &schedulerv1alpha1.PodGang{
			ObjectMeta: metav1.ObjectMeta{Name: "set-0", Labels: map[string]string{labels.RestartAttempt: labels.Index(attempt)}},
			Spec:       schedulerv1alpha1.PodGangSpec{PriorityClassName: class},
		}
	}
	none, pending := isFalse(grovev1alpha1.ReasonPodsFollowTemplate), isTrue(grovev1alpha1.ReasonRollingUpdate)
	type outcome struct {
		Attempt, Updated int32
		Pending          summary
	}
	high := func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Template.PriorityClassName = "high" }
	onePod := func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.Template.Cliques[0].Spec.PodSpec.PriorityClassName = "high"
	}
	tests := map[string]struct {
		set     setOption
		options []setOption
		podGang *schedulerv1alpha1.PodGang
		want    outcome
	}{
		"it is made anew":                        {high, nil, gangOf("low", 0), outcome{1, 0, pending}},
		"also after OnDelete":                    {high, []setOption{inProgress("new", 0, true), hasEnded}, gangOf("low", 0), outcome{1, 0, pending}},
		"not with OnDelete":                      {high, []setOption{strategy(grovev1alpha1.UpdateStrategyOnDelete)}, gangOf("low", 0), outcome{0, 1, none}},
		"not with the same class":                {high, nil, gangOf("high", 0), outcome{0, 1, none}},
		"not before it has followed the replica": {high, []setOption{replicaAttempt(0, 1)}, gangOf("low", 0), outcome{1, 1, none}},
		"not by what its pods ask for":           {onePod, nil, gangOf("", 0), outcome{0, 1, none}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pcs := inferenceSet(append([]setOption{template("worker", 1, 1), tc.set}, tc.options...)...)
			hashed(pcs, "new")
			s := setOf(pcs, have{"set-0-worker": {readyPods(1), scheduledPods(1), madeFrom("new"), inAttempt(ReplicaAttempt(pcs, 0))}})
			for _, clique := range s.Cliques {
				clique.Status.UpdatedReplicas = 1
			}
			s.Gangs["set-0"] = tc.podGang
			status := DecideSet(s, now).Status
			pcs.Status = status
			expect(t, "outcome", tc.want, outcome{ReplicaAttempt(pcs, 0), status.UpdatedReplicas, conditionOf(status.Conditions, grovev1alpha1.ConditionTypeUpdatePending)})
			if again := DecideSet(s, now); again.Changed {
				t.Errorf("the next pass changes it again (-first +second):\n%s", cmp.Diff(status, again.Status))
			}
		})
	}
}

func TestTheTurnOfAClique(t *testing.T) {
	set := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		pcs := inferenceSet(append([]setOption{template("router", 3, 3), template("worker", 2, 2), group("g", 2, 1, "worker")}, options...)...)
		hashed(pcs, "new")
		return pcs
	}
	router := inference(3, takes("new"), named("set-0-router", "0"))
	member := inference(2, takes("new"), named("set-0-g-1-worker", "0"), inGroupCopy("1"))
	inTurn := func(hash string, copies ...int32) *grovev1alpha1.PodCliqueScalingGroup {
		return &grovev1alpha1.PodCliqueScalingGroup{Status: grovev1alpha1.PodCliqueScalingGroupStatus{UpdateProgress: &grovev1alpha1.PodCliqueScalingGroupUpdateProgress{
			PodCliqueSetGenerationHash: hash, ReadyReplicaIndicesSelectedToUpdate: &grovev1alpha1.ReplicaIndicesSelectedToUpdate{Updating: copies},
		}}}
	}
	turn := func(due, over bool, away int32) CliqueTurn {
		return CliqueTurn{Due: due, Over: over, MaxUnavailable: away, GenerationHash: "new", PodTemplateHash: "new"}
	}
	two := func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.UpdateStrategy = &grovev1alpha1.PodCliqueSetUpdateStrategy{MaxUnavailable: ptr.To[int32](2)}
	}
	tests := map[string]struct {
		set    *grovev1alpha1.PodCliqueSet
		clique *grovev1alpha1.PodClique
		group  *grovev1alpha1.PodCliqueScalingGroup
		want   CliqueTurn
	}{
		"nobody updates":                         {set(), router, nil, turn(false, false, 1)},
		"its replica's":                          {set(inProgress("new", 0, true)), router, nil, turn(true, false, 1)},
		"two at a time":                          {set(inProgress("new", 0, true), two), router, nil, turn(true, false, 2)},
		"another replica's":                      {set(inProgress("new", 1, true)), router, nil, turn(false, true, 1)},
		"nobody has decided about this template": {set(inProgress("old", 0, true)), router, nil, turn(false, false, 1)},
		"the clique has not taken it yet":        {set(inProgress("new", 0, true)), inference(3, takes("old"), named("set-0-router", "0")), nil, turn(false, false, 1)},
		"the update has ended":                   {set(inProgress("new", 0, true), hasEnded), router, nil, turn(false, true, 1)},
		"with OnDelete":                          {set(inProgress("new", 0, true), strategy(grovev1alpha1.UpdateStrategyOnDelete)), router, nil, turn(false, true, 1)},
		"a member's copy's, all of it":           {set(inProgress("new", 0, true)), member, inTurn("new", 1), turn(true, false, 2)},
		"another copy's":                         {set(inProgress("new", 0, true)), member, inTurn("new", 0), turn(false, false, 2)},
		"its copy's, for another template":       {set(inProgress("new", 0, true)), member, inTurn("old", 1), turn(false, false, 2)},
		"the scaling group is not there":         {set(inProgress("new", 0, true)), member, nil, turn(false, false, 2)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "turn", tc.want, TurnOf(tc.set, tc.clique, 0, tc.group)) })
	}
}

func named(name, replica string) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		c.Name = name
		metav1.SetMetaDataLabel(&c.ObjectMeta, labels.ReplicaIndex, replica)
	}
}

func TestThePriorityClassOfAGang(t *testing.T) {
	of := func(class string) *grovev1alpha1.PodCliqueSpec {
		spec := &grovev1alpha1.PodCliqueSpec{}
		spec.PodSpec.PriorityClassName = class
		return spec
	}
	for name, tc := range map[string]struct {
		set     string
		cliques []*grovev1alpha1.PodCliqueSpec
		want    string
	}{
		"the set's":                          {"set", []*grovev1alpha1.PodCliqueSpec{of("pod")}, "set"},
		"its pods', if the set says nothing": {"", []*grovev1alpha1.PodCliqueSpec{of(""), of("pod")}, "pod"},
		"none":                               {"", []*grovev1alpha1.PodCliqueSpec{of("")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pcs := inferenceSet()
			pcs.Spec.Template.PriorityClassName = tc.set
			expect(t, "class", tc.want, PriorityClass(pcs, tc.cliques))
		})
	}
}
