package podgroup

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

func TestMinimum(t *testing.T) {
	// of4 is a group of four that was placed once, and whose minimum came to count.
	of4 := func(count int32, change func(*minimum)) minimum {
		m := minimum{wanted: 4, asked: 4, count: count, scheduled: true}
		change(&m)
		return m
	}
	for name, tc := range map[string]struct {
		m              minimum
		count, lowered int32
	}{
		// Before it was placed.
		"as it is":                                {minimum{wanted: 4, asked: 4, count: 4, waiting: 1, coming: true}, 4, 0},
		"and nobody comes any more":               {minimum{wanted: 4, asked: 4, count: 4, waiting: 1}, 4, 0},
		"before it was scheduled nobody succeeds": {minimum{wanted: 4, asked: 4, count: 4, waiting: 1, succeeded: 3}, 4, 0},
		"some could not be put into it":           {minimum{wanted: 4, asked: 4, count: 4, waiting: 1, unattached: 3}, 1, 0},
		"more than it needs could not be":         {minimum{wanted: 2, asked: 2, count: 2, waiting: 1, unattached: 3}, 1, 0},

		// The workload asks for another minimum.
		"the group asks for more":              {minimum{wanted: 6, asked: 4, count: 4, waiting: 1}, 6, 0},
		"it asks for less":                     {minimum{wanted: 2, asked: 4, count: 4}, 2, 0},
		"it asks for more, and some succeeded": {minimum{wanted: 6, asked: 4, count: 2, scheduled: true, waiting: 1, succeeded: 2}, 4, 0},
		"it asks for more while it comes back": {minimum{wanted: 6, asked: 4, count: 4, lowered: 1, scheduled: true, waiting: 1, coming: true}, 6, 0},

		// Members have succeeded.
		"some have succeeded and one waits":       {of4(4, func(m *minimum) { m.waiting, m.succeeded = 1, 3 }), 1, 0},
		"also one that was just made":             {of4(4, func(m *minimum) { m.waiting, m.succeeded, m.coming = 1, 3, true }), 1, 0},
		"one waits beside one that runs":          {of4(4, func(m *minimum) { m.waiting, m.placed, m.succeeded = 1, 1, 2 }), 2, 0},
		"nobody waits":                            {of4(4, func(m *minimum) { m.succeeded = 3 }), 4, 0},
		"more have succeeded than are needed":     {minimum{wanted: 2, asked: 2, count: 2, scheduled: true, waiting: 1, succeeded: 5}, 1, 0},
		"they were deleted, and one runs":         {of4(2, func(m *minimum) { m.waiting, m.placed, m.coming = 1, 1, true }), 2, 0},
		"they were deleted, and one waits":        {of4(1, func(m *minimum) { m.waiting = 1 }), 1, 0},
		"all have come back, after one succeeded": {of4(1, func(m *minimum) { m.waiting, m.succeeded = 4, 1 }), 1, 0},

		// None of them is left, or all that there are were made anew.
		"all are gone": {of4(1, func(*minimum) {}), 4, 1},
		"and were, of a gang that was not lowered": {of4(4, func(*minimum) {}), 4, 0},
		"all are gone, as it knows":                {of4(4, func(m *minimum) { m.lowered = 1 }), 4, 1},
		"the first has come back":                  {of4(1, func(m *minimum) { m.waiting, m.coming = 1, true }), 4, 1},
		"the second has come back":                 {of4(4, func(m *minimum) { m.lowered, m.waiting, m.coming = 1, 2, true }), 4, 1},
		"no more come":                             {of4(4, func(m *minimum) { m.lowered, m.waiting = 1, 1 }), 1, 0},
		"all have come back":                       {of4(4, func(m *minimum) { m.lowered, m.waiting, m.coming = 1, 4, true }), 4, 0},
		"at once":                                  {of4(1, func(m *minimum) { m.waiting, m.coming = 4, true }), 4, 0},
		"and have been placed":                     {of4(4, func(m *minimum) { m.lowered, m.placed = 1, 4 }), 4, 0},
		"and been placed in part":                  {of4(4, func(m *minimum) { m.lowered, m.waiting, m.placed = 1, 1, 3 }), 4, 0},
		"one was placed alone all the same":        {of4(4, func(m *minimum) { m.lowered, m.waiting, m.placed, m.coming = 1, 1, 1, true }), 1, 0},
		"one from before the group is among them":  {of4(1, func(m *minimum) { m.waiting, m.unattached, m.coming = 1, 1, true }), 3, 1},
		"a gang that was not lowered comes back":   {of4(4, func(m *minimum) { m.waiting, m.coming = 1, true }), 4, 0},
		"and not all of it does":                   {of4(4, func(m *minimum) { m.waiting = 1 }), 4, 0},

		// Pods of the workload were in no group, or in another.
		"some of it are in others":          {of4(4, func(m *minimum) { m.waiting, m.unattached, m.coming = 2, 3, true }), 1, 0},
		"they go one after another":         {of4(1, func(m *minimum) { m.waiting, m.placed, m.unattached = 1, 2, 1 }), 1, 0},
		"they are gone, and the last waits": {of4(1, func(m *minimum) { m.waiting, m.placed = 1, 3 }), 1, 0},
		"they are gone":                     {of4(1, func(m *minimum) { m.placed = 4 }), 4, 0},
		"but fewer are left than it needs":  {of4(1, func(m *minimum) { m.placed = 3 }), 1, 0},
		"or some have succeeded":            {of4(1, func(m *minimum) { m.placed, m.succeeded = 4, 1 }), 1, 0},

		// Its pods are put into another group now.
		"no more come into it":           {of4(4, func(m *minimum) { m.stray, m.waiting = true, 3 }), 3, 0},
		"and it ran":                     {of4(4, func(m *minimum) { m.stray, m.waiting, m.placed = true, 1, 2 }), 3, 0},
		"and nobody of it waits":         {of4(4, func(m *minimum) { m.stray, m.placed = true, 2 }), 4, 0},
		"and all of it wait for a place": {of4(4, func(m *minimum) { m.stray, m.waiting, m.coming = true, 4, true }), 4, 0},
		"and nobody of it is left":       {of4(4, func(m *minimum) { m.stray = true }), 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if count, lowered := tc.m.decide(); count != tc.count || lowered != tc.lowered {
				t.Errorf("got %d, and %d is remembered; want %d and %d", count, lowered, tc.count, tc.lowered)
			}
		})
	}
}

// halfFinished is a group of four of which three have succeeded, and the last was replaced.
func halfFinished(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, gang(int64(4)), pod("a", runs), pod("b", runs), pod("c", runs), pod("d"))
	w.pass(group().Name)
	native := w.native(group().Name)
	native.Status.Conditions = []metav1.Condition{{Type: "PodGroupInitiallyScheduled", Status: metav1.ConditionTrue, Reason: "Scheduled"}}
	if err := w.Client.Update(t.Context(), native); err != nil {
		t.Fatal(err)
	}
	w.update(pod("a", succeeds), pod("b", succeeds), pod("c", succeeds))
	w.later(group().Name)
	w.expectMinimum("while one of four is left", 1)
	return w
}

func (w *world) expectMinimum(when string, want int32) {
	w.t.Helper()
	expect(w.t, "minimum of the scheduler's group "+when, want, w.native(group().Name).Spec.SchedulingPolicy.Gang.MinCount)
}

func (w *world) delete(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if err := w.Client.Delete(w.t.Context(), pod(name)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// create makes pods as of now.
func (w *world) create(names ...string) {
	w.t.Helper()
	for _, name := range names {
		made := pod(name, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(w.clock.Now()) })
		if err := w.Client.Create(w.t.Context(), made); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A workload whose minimum was lowered starts anew, and its pods come one by one. None of
// them is placed before the last has come.
func TestAWorkloadThatStartsAnewIsAGangAgain(t *testing.T) {
	for name, emptied := range map[string]bool{"the group was seen empty": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			w := halfFinished(t)
			w.delete("a", "b", "c", "d")
			if emptied {
				w.later(group().Name)
				w.expectMinimum("without pods", 4)
			}
			for _, pod := range []string{"e", "f", "g"} {
				w.create(pod)
				w.pass(group().Name)
				w.expectMinimum("with pod "+pod, 4)
				w.clock.Step(together - time.Second)
			}
			w.create("h")
			w.pass(group().Name)
			w.clock.Step(2 * together)
			w.pass(group().Name)
			w.expectMinimum("when all have come", 4)
			if annotations := w.native(group().Name).Annotations; annotations[loweredAnnotation] != "" {
				t.Errorf("annotations %v", annotations)
			}
		})
	}
}

// A workload that has finished can be started once more, with other pods.
func TestAWorkloadThatHasFinishedIsAGangAgain(t *testing.T) {
	w := halfFinished(t)
	w.update(pod("d", succeeds))
	w.later(group().Name)
	expect(t, "phase", schedulerv1alpha1.PodGroupFinished, w.live(group().Name).Status.Phase)
	w.delete("a", "b", "c", "d")
	expect(t, "writes when its pods are cleared away", []string{"patch " + group().Name}, w.later(group().Name))
	w.expectMinimum("without pods", 4)
	expect(t, "phase then", schedulerv1alpha1.PodGroupFinished, w.live(group().Name).Status.Phase)
}

// The last pod of a gang that has finished in part is replaced after the others were cleared
// away. It waits for them a little, and not for ever (kubernetes/kubernetes#142330).
func TestAReplacementDoesNotWaitForMembersThatWereClearedAway(t *testing.T) {
	w := halfFinished(t)
	w.delete("a", "b", "c")
	w.later(group().Name)
	w.expectMinimum("while its last pod waits", 1)
	w.delete("d")
	w.later(group().Name)
	w.create("e")
	w.clock.Step(time.Second)
	result, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: group().Name}})
	if err != nil || result.RequeueAfter != together-time.Second {
		t.Errorf("looked at again after %v, %v", result.RequeueAfter, err)
	}
	w.clock.Step(result.RequeueAfter)
	w.pass(group().Name)
	w.expectMinimum("when no more come", 1)
	expect(t, "writes when nothing happens", []string(nil), w.later(group().Name))
}
