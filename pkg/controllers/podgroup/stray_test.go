package podgroup

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

func TestStrayPods(t *testing.T) {
	p := newStrayPods()
	put := func(group string, into map[types.NamespacedName]int32, want ...string) {
		t.Helper()
		var got []string
		for _, changed := range p.put(key(group), into) {
			got = append(got, changed.Name)
		}
		slices.Sort(got)
		expect(t, "groups to be looked at", want, got)
	}
	put("old", map[types.NamespacedName]int32{key("new"): 2}, "new")
	put("older", map[types.NamespacedName]int32{key("new"): 1}, "new")
	expect(t, "pods that are in others", int32(3), p.count(key("new")))
	put("old", map[types.NamespacedName]int32{key("new"): 2})
	put("old", map[types.NamespacedName]int32{key("new"): 1, key("newer"): 1}, "new", "newer")
	expect(t, "after one has turned to another", int32(2), p.count(key("new")))
	put("old", nil, "new", "newer")
	put("older", nil, "new")
	put("older", nil)
	if len(p.of)+len(p.into) > 0 {
		t.Errorf("it remembers %v and %v", p.of, p.into)
	}
}

func TestStrayPodsAreAwaitedUntilEachGroupWasSeen(t *testing.T) {
	p, others := newStrayPods(), sets.New(key("a"), key("b"))
	p.look(key("a"), true)
	if !p.awaits(key("new"), others) {
		t.Error("it does not await b")
	}
	expect(t, "who waits for a", 0, len(p.look(key("a"), true)))
	expect(t, "who waits for b", []types.NamespacedName{key("new")}, p.look(key("b"), true))
	if p.isKnown("ns") || p.awaits(key("new"), others) || !p.isKnown("ns") {
		t.Error("it is known when all have been seen, and not before")
	}
	p.look(key("a"), false)
	if p.seen.Has(key("a")) {
		t.Error("it remembers a group that is gone")
	}
}

// inGroup has a pod be in another group of ours.
func inGroup(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations[podgrouper.PodGroupAnnotation], p.Spec.SchedulingGroup.PodGroupName = name, ptr.To(name)
	}
}

// made is the PodGroup of a pod that was in a group of its own.
func made(name string) *schedulerv1alpha1.PodGroup {
	return &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Annotations: map[string]string{podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue, podgrouper.MadeAsAnnotation: name},
	}, Spec: schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](1)}}
}

// regrouped is a workload of four whose pods were each in a group of their own. One of them
// was replaced, in the group that they would be in now.
func regrouped(t *testing.T) *world {
	t.Helper()
	objects := []client.Object{gang(int64(4)), pod("new")}
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, made("pg-"+name), pod(name, inGroup("pg-"+name), runs))
	}
	return newWorld(t, objects...)
}

// A pod that is in another group never comes, so those that wait are not held for it.
func TestAGroupDoesNotWaitForPodsThatAreInOthers(t *testing.T) {
	w := regrouped(t)
	w.pass(group().Name)
	w.expectMinimum("before the others were looked at", 4)
	for _, old := range []string{"pg-a", "pg-b", "pg-c"} {
		w.pass(old)
		if !w.queue.early.Has(group()) {
			t.Errorf("%s does not tell where its pod would be", old)
		}
		w.queue.early.Delete(group())
	}
	w.pass(group().Name)
	w.expectMinimum("beside three others", 1)
	expect(t, "writes of the next pass", []string(nil), w.later(group().Name))
	for _, condition := range w.live(group().Name).Status.Conditions {
		if condition.Type == schedulerv1alpha1.PodGroupConditionNotAttachable {
			expect(t, "what it says", "3 pods of the workload are in groups from before, or in none, and are scheduled without it", condition.Message)
		}
	}

	// They are replaced as well, and from then on it is a gang.
	w.delete("a", "b", "c")
	for _, old := range []string{"pg-a", "pg-b", "pg-c"} {
		w.pass(old)
	}
	w.create("d", "e", "f")
	w.pass(group().Name)
	for _, name := range []string{"new", "d", "e", "f"} {
		w.update(pod(name, runs))
	}
	w.later(group().Name)
	w.expectMinimum("when all are in it", 4)
}

// The groups that pods were in before are looked at when another is made, though nothing
// happens to them: what they are grouped by may have changed unseen.
func TestTheGroupsOfOtherPodsOfAWorkloadAreLookedAt(t *testing.T) {
	w := regrouped(t)
	w.pass("pg-a")
	w.owners.groupBy(key("pg-a"), "a-uid")
	w.queue.early.Clear()
	w.pass(group().Name)
	if !w.queue.early.Has(key("pg-a")) {
		t.Error("the group of another pod is not looked at")
	}
	w.owners.groupBy(key("pg-a"), "bert-uid")
	expect(t, "groups by the same owner", 0, len(w.owners.beside(group(), "bert-uid")))
}

// What is known of pods in other groups is found out anew after a restart, and nothing is
// written before.
func TestARestartWritesNothingWherePodsAreInOtherGroups(t *testing.T) {
	w := regrouped(t)
	names := []string{"pg-a", "pg-b", "pg-c", group().Name}
	for _, name := range append(names, names...) {
		w.later(name)
	}
	w.expectMinimum("before the restart", 1)
	for _, order := range [][]string{names, {group().Name, "pg-a", "pg-b", "pg-c", group().Name}} {
		w.stray, w.owners = newStrayPods(), newOwnerWatches(&informers{}, newMapper(), &reviews{}, w.clock)
		w.queue = newGroupQueue()
		for _, name := range order {
			expect(t, "writes about "+name, []string(nil), w.later(name))
		}
		if len(w.stray.awaited) > 0 {
			t.Errorf("it awaits %v", w.stray.awaited)
		}
	}
}

// Which pods a minimum was lowered for is not known any more where they were cleared away.
// Nothing is waited for then, and least of all a pod that is left alone and so nobody's.
func TestAGroupWhoseMembersWereClearedAwayAwaitsNothingAfterARestart(t *testing.T) {
	w := halfFinished(t)
	w.delete("a", "b", "c")
	alone := pod("alone", inGroup("pg-alone"), func(p *corev1.Pod) { p.Annotations[podgrouper.SkipAnnotation] = "true" })
	if err := w.Client.Create(t.Context(), alone); err != nil {
		t.Fatal(err)
	}
	w.stray = newStrayPods()
	w.later(group().Name)
	if len(w.stray.awaited) > 0 || !w.stray.isKnown("ns") {
		t.Errorf("it awaits %v", w.stray.awaited)
	}
}

// The pods of a group that no more pods come into do not wait for more.
func TestAGroupThatPodsAreNoMorePutIntoWaitsForNone(t *testing.T) {
	old := made("pg-old")
	old.Spec.MinMember = ptr.To[int32](4)
	w := newWorld(t, gang(int64(4)), old, pod("a", inGroup("pg-old")), pod("b", inGroup("pg-old")), pod("c", inGroup("pg-old")))
	w.pass("pg-old")
	w.clock.Step(time.Second)
	w.pass("pg-old")
	expect(t, "minimum", int32(3), w.native("pg-old").Spec.SchedulingPolicy.Gang.MinCount)
}

// A workload that is made anew takes the pods of the one before, whose group is another.
func TestPodsThatAreTakenByAnotherOwnerAreLookedAt(t *testing.T) {
	before, after := pod("a"), pod("a")
	if podChanged().Update(event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: before, ObjectNew: after}) {
		t.Error("it is looked at though nothing has changed")
	}
	after.OwnerReferences[0].UID = "other-uid"
	if !podChanged().Update(event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: before, ObjectNew: after}) {
		t.Error("it is not looked at")
	}
}
