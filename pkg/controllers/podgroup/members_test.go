package podgroup

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// The cache lists pods in no order. What is told about the first that waits would be told of
// another in each pass, and each time be written.
func TestMembersAreInOneOrder(t *testing.T) {
	later := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(start.Add(time.Minute)) }
	w := newWorld(t, gang(int64(2)), pod("a", later), pod("c"), pod("b"))
	s := &state{key: group()}
	if err := w.readMembers(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, member := range s.members {
		names = append(names, member.Name)
	}
	expect(t, "members", []string{"b", "c", "a"}, names)
}

// The annotation can be put on any pod. It is no way to change, or stop, a group of others.
func TestAPodThatOnlyNamesAGroupChangesNothingOfIt(t *testing.T) {
	first := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(start.Add(-time.Hour)) }
	for name, change := range map[string]func(*corev1.Pod){
		"and is left alone":          func(p *corev1.Pod) { p.Annotations[podgrouper.SkipAnnotation] = "true"; p.Spec.SchedulingGroup = nil },
		"and is of KAI":              func(p *corev1.Pod) { p.Spec.SchedulerName, p.Spec.SchedulingGroup = "kai-scheduler", nil },
		"and is of others":           func(p *corev1.Pod) { p.Spec.SchedulerName, p.Spec.SchedulingGroup = "others", nil },
		"and is in no group at all":  func(p *corev1.Pod) { p.OwnerReferences, p.Spec.SchedulingGroup = nil, nil },
		"and has succeeded, outside": func(p *corev1.Pod) { p.Status.Phase, p.Spec.SchedulingGroup = corev1.PodSucceeded, nil },
	} {
		w := newWorld(t, gang(int64(2)), pod("stranger", first, change), pod("a"), pod("b"))
		w.pass(group().Name)
		expect(t, "minimum beside a pod that names the group "+name, ptr.To[int32](2), w.live(group().Name).Spec.MinMember)
		expect(t, "owner", "Gang", w.live(group().Name).OwnerReferences[0].Kind)
	}
}

// A namespace asks for groups while its workloads run, and a pod is replaced: the scheduler
// does not know the others, so the new one is not to wait for them.
func TestAReplacementAmongPodsFromBeforeDoesNotWaitForThem(t *testing.T) {
	w := newWorld(t, enabled(), gang(int64(3)), pod("a", ungrouped, runs), pod("b", ungrouped, runs))
	w.enter("a")
	w.enter("b")
	w.pass(group().Name)
	if err := w.Client.Create(t.Context(), pod("c")); err != nil {
		t.Fatal(err)
	}
	w.pass(group().Name)
	expect(t, "minimum of the scheduler's group", int32(1), w.native(group().Name).Spec.SchedulingPolicy.Gang.MinCount)
}

// Those from before end as well, and do not come back.
func TestAReplacementDoesNotWaitForPodsFromBeforeThatSucceeded(t *testing.T) {
	w := newWorld(t, enabled(), gang(int64(3)), pod("a", ungrouped, succeeds), pod("b", ungrouped, succeeds), pod("c"))
	w.enter("a")
	w.enter("b")
	w.pass(group().Name)
	expect(t, "minimum of the scheduler's group", int32(1), w.native(group().Name).Spec.SchedulingPolicy.Gang.MinCount)
}

// Pods of a finished workload are cleared away; that does not start it anew.
func TestWhatHasFinishedStaysSo(t *testing.T) {
	ends := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	w, name := newWorld(t, gang(int64(1)), pod("a")), group().Name
	w.pass(name)
	done := pod("a", ends)
	if err := w.Client.Status().Update(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(time.Minute)
	w.pass(name)
	expect(t, "phase", schedulerv1alpha1.PodGroupFinished, w.live(name).Status.Phase)
	if err := w.Client.Delete(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(time.Minute)
	expect(t, "writes", []string(nil), w.pass(name))
	expect(t, "succeeded", int32(1), w.live(name).Status.Succeeded)
}

// Who deletes a PodGroup leaves pods behind that wait for it. They are told, once.
func TestPodsWhosePodGroupIsGoneAreTold(t *testing.T) {
	byHand := func(p *corev1.Pod) { p.Annotations = map[string]string{podgrouper.PodGroupAnnotation: "mine"} }
	held := func(p *corev1.Pod) {
		p.Spec.SchedulerName, p.Spec.SchedulingGroup = "others", nil
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: naming.PendingGate}}
	}
	w := newWorld(t, pod("a", byHand), pod("b", byHand, held), pod("c", byHand, runs))
	w.pass("mine")
	const missing = "Warning PodGroupMissing PodGroup mine, which the pod names, "
	expect(t, "events", []string{
		missing + "is gone: delete the pod, and create it anew after the PodGroup", missing + "does not exist: the pod is held until there is one of this name",
	}, w.events())
	w.pass("mine")
	expect(t, "events of the next pass", []string(nil), w.events())
}

// behind is a cache that does not show PodGroups yet.
type behind struct{ client.Client }

func (c behind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if _, is := obj.(*schedulerv1alpha1.PodGroup); is {
		return apierrors.NewNotFound(schedulerv1alpha1.Resource("podgroups"), key.Name)
	}
	return c.Client.Get(ctx, key, obj, options...)
}

// A pod that is made right after its PodGroup is often seen before it. One that is in another,
// by the same name, is told all the same; one that is held is released by any.
func TestPodsThatAreSeenBeforeTheirPodGroupAreNotTold(t *testing.T) {
	in := func(group string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations = map[string]string{podgrouper.PodGroupAnnotation: "mine"}
			p.Spec.SchedulingGroup.PodGroupName = &group
		}
	}
	held := func(p *corev1.Pod) {
		p.Spec.SchedulerName, p.Spec.SchedulingGroup = "others", nil
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: naming.PendingGate}}
	}
	mine := &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "mine-uid"}}
	w := newWorld(t, mine, pod("a", in(podgrouper.NativeName("mine", "mine-uid"))), pod("b", in(podgrouper.NativeName("mine", "former-uid"))), pod("c", in(""), held))
	w.Client = behind{w.Client}
	w.pass("mine")
	if told := w.events(); len(told) != 1 || !strings.Contains(told[0], "is gone") {
		t.Errorf("events %q", told)
	}
	if !w.notes.told(reasonPodGroupMissing + "b-uid") {
		t.Error("the wrong pod was told")
	}
}

// KAI's PodGroup has KAI's status, so nothing in it says what was told.
func TestAWorkloadOfKAIThatMakesNoSenseIsToldOnce(t *testing.T) {
	ofKAI := func(p *corev1.Pod) { p.Spec.SchedulerName, p.Spec.SchedulingGroup = "kai-scheduler", nil }
	w := newWorld(t, enabled(), gang("many"), pod("a", ofKAI))
	w.kai.served = true
	w.pass(group().Name)
	if told := w.events(); len(told) != 1 || !strings.Contains(told[0], "InvalidOwner") {
		t.Errorf("events %q", told)
	}
	w.pass(group().Name)
	expect(t, "events of the next pass", []string(nil), w.events())
}

// What is wrong with a workload can be mended, and be wrong again.
func TestAWorkloadOfKAIThatMakesNoSenseOnceMoreIsToldOnceMore(t *testing.T) {
	ofKAI := func(p *corev1.Pod) { p.Spec.SchedulerName, p.Spec.SchedulingGroup = "kai-scheduler", nil }
	w := newWorld(t, enabled(), gang("many"), pod("a", ofKAI))
	w.kai.served = true
	for _, minimum := range []any{"many", int64(1), "many"} {
		w.setMinimum(minimum)
		w.reader.forget(gang(nil).GroupVersionKind().GroupKind(), "ns", "bert")
		w.pass(group().Name)
	}
	if told := w.events(); len(told) != 2 {
		t.Errorf("events %q", told)
	}
}

// KAI places no group without a queue. One that was made before its workload said what it needs
// gets it with the rest; a queue that somebody has set stays.
func TestAGroupOfKAIWithoutAQueueGetsOne(t *testing.T) {
	ofKAI := func(p *corev1.Pod) { p.Spec.SchedulerName, p.Spec.SchedulingGroup = "kai-scheduler", nil }
	for label, want := range map[string]string{"": "default-queue", "research": "research"} {
		owner := gang("many")
		owner.SetLabels(map[string]string{podgrouper.QueueLabel: label})
		w := newWorld(t, enabled(), owner, pod("a", ofKAI))
		w.kai.served = true
		queue := func() string {
			w.pass(group().Name)
			theirs, err := (&kaiStore{client: w.Writer, live: w.Live}).get(t.Context(), group())
			if err != nil {
				t.Fatal(err)
			}
			if named := theirs.Labels[podgrouper.QueueLabel]; named != theirs.Spec.Queue {
				t.Errorf("label %q, queue %q", named, theirs.Spec.Queue)
			}
			return theirs.Spec.Queue
		}
		expect(t, "queue while it waits", "", queue())
		w.setMinimum(int64(1))
		w.reader.forget(gang(nil).GroupVersionKind().GroupKind(), "ns", "bert")
		expect(t, "queue of the group", want, queue())
		expect(t, "writes of the next pass", []string(nil), w.pass(group().Name))
	}
}

// Who labels a group that has no queue yet says which it is to be, whatever its workload says.
func TestTheLabelOfAGroupOfKAIWithoutAQueueCountsBeforeItsWorkload(t *testing.T) {
	owner := gang("many")
	owner.SetLabels(map[string]string{podgrouper.QueueLabel: "research"})
	w := newWorld(t, enabled(), owner, pod("a", func(p *corev1.Pod) { p.Spec.SchedulerName, p.Spec.SchedulingGroup = "kai-scheduler", nil }))
	w.kai.served = true
	w.pass(group().Name)
	w.setTheirs(group(), "urgent", "metadata", "labels", podgrouper.QueueLabel)
	w.setMinimum(int64(1))
	w.reader.forget(gang(nil).GroupVersionKind().GroupKind(), "ns", "bert")
	w.pass(group().Name)
	expect(t, "queue", "urgent", w.theirs(group()).Spec.Queue)
	expect(t, "label", "urgent", w.theirs(group()).Labels[podgrouper.QueueLabel])
	expect(t, "writes of the next pass", []string(nil), w.pass(group().Name))
}

// A PodGroup of a user's own is nobody's to change, so the queue is in KAI's copy.
func TestTheQueueOfAPodGroupForKAIThatWasMadeByHand(t *testing.T) {
	for _, tc := range []struct{ spec, label, want string }{{"", "", "default-queue"}, {"", "research", "research"}, {"mine", "research", "mine"}} {
		byHand := &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "mine-uid"}, Spec: schedulerv1alpha1.PodGroupSpec{Queue: tc.spec}}
		if tc.label != "" {
			byHand.Labels = map[string]string{podgrouper.QueueLabel: tc.label}
		}
		w := newWorld(t, enabled(), byHand, pod("a", func(p *corev1.Pod) {
			p.Spec.SchedulerName, p.Spec.SchedulingGroup = "kai-scheduler", nil
			p.Annotations = map[string]string{podgrouper.PodGroupAnnotation: "mine"}
		}))
		w.kai.served = true
		w.pass("mine")
		theirs, err := (&kaiStore{client: w.Writer, live: w.Live}).get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "queue of KAI's", tc.want, theirs.Spec.Queue)
		expect(t, "queue of the user's", tc.spec, w.live("mine").Spec.Queue)
		expect(t, "writes of the next pass", []string(nil), w.pass("mine"))
	}
}

// A queue that an administrator has set on KAI's copy stays, also when the copy is written
// anew, until the user names one.
func TestAQueueThatWasSetOnKAIsCopyStays(t *testing.T) {
	mine := types.NamespacedName{Namespace: "ns", Name: "mine"}
	byHand := &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "mine-uid"}, Spec: schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](1)}}
	w := newWorld(t, enabled(), byHand, pod("a", func(p *corev1.Pod) {
		p.Spec.SchedulerName, p.Spec.SchedulingGroup = "kai-scheduler", nil
		p.Annotations = map[string]string{podgrouper.PodGroupAnnotation: "mine"}
	}))
	w.kai.served = true
	w.pass("mine")
	w.setTheirs(mine, "research", "spec", "queue")
	for _, tc := range []struct {
		minimum     int32
		asked, want string
	}{{2, "", "research"}, {3, "", "research"}, {3, "mine", "mine"}} {
		live := w.live("mine")
		live.Spec.MinMember, live.Spec.Queue = &tc.minimum, tc.asked
		if err := w.Client.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		w.pass("mine")
		expect(t, "minimum of KAI's", &tc.minimum, w.theirs(mine).Spec.MinMember)
		expect(t, "queue of KAI's", tc.want, w.theirs(mine).Spec.Queue)
		expect(t, "writes of the next pass", []string(nil), w.pass("mine"))
	}
}

// Where the group of KAI's pods is does not depend on a mark, which can be copied to any pod.
func TestAPodGroupForKAIThatWasMadeByHandStaysItsUsers(t *testing.T) {
	byHand := &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "mine-uid"}, Spec: schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](3)}}
	for name, marked := range map[string]bool{"marked": true, "not marked": false} {
		w := newWorld(t, enabled(), gang(int64(2)), byHand.DeepCopy(), pod("a", func(p *corev1.Pod) {
			p.Spec.SchedulerName, p.Spec.SchedulingGroup = "kai-scheduler", nil
			p.Annotations[podgrouper.PodGroupAnnotation] = "mine"
			if !marked {
				delete(p.Annotations, podgrouper.GroupedByAnnotation)
			}
		}))
		w.kai.served = true
		expect(t, "writes with a pod that is "+name, []string{"apply mine", "status mine"}, w.pass("mine"))
		theirs, err := (&kaiStore{client: w.Writer, live: w.Live}).get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "mine"})
		if err != nil || theirs == nil || ptr.Deref(theirs.Spec.MinMember, 0) != 3 {
			t.Errorf("KAI's with a pod that is %s: %+v, %v", name, theirs, err)
		}
	}
}

// What the workload asks for no more goes from KAI's group, also where somebody else has
// written it since; what is its users' stays.
func TestWhatAWorkloadOfKAIAsksForNoMoreIsReset(t *testing.T) {
	ofKAI := func(p *corev1.Pod) { p.Spec.SchedulerName, p.Spec.SchedulingGroup = "kai-scheduler", nil }
	asking := gang(int64(2))
	asking.SetLabels(map[string]string{podgrouper.PreemptibilityLabel: "non-preemptible", podgrouper.QueueLabel: "research"})
	asking.SetAnnotations(map[string]string{podgrouper.TopologyAnnotation: "dc", podgrouper.RequiredPlacementAnnotation: "rack"})
	for name, edit := range map[string]bool{"as it was made": false, "edited": true} {
		w := newWorld(t, enabled(), asking.DeepCopy(), pod("a", ofKAI))
		w.kai.served = true
		store := &kaiStore{client: w.Writer, live: w.Live}
		w.pass(group().Name)
		if edit {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kaiPodGroup())
			if err := w.Live.Get(t.Context(), group(), object); err != nil {
				t.Fatal(err)
			}
			spec := object.Object["spec"].(map[string]any)
			spec["queue"], spec["markUnschedulable"], spec["schedulingBackoff"] = "mine", false, int64(1)
			// Who writes the whole object owns all of it.
			spec["preemptibility"], spec["topologyConstraint"] = "preemptible", map[string]any{"topology": "mine"}
			if err := w.Client.Update(t.Context(), object, client.FieldOwner("kubectl-edit")); err != nil {
				t.Fatal(err)
			}
			w.pass(group().Name)
		}
		live := gang(nil)
		if err := w.Live.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		live.SetLabels(map[string]string{podgrouper.QueueLabel: "research"})
		live.SetAnnotations(nil)
		if err := w.Client.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		w.ownerChanged(live.GroupVersionKind().GroupKind(), live)
		w.pass(group().Name)
		theirs, err := store.get(t.Context(), group())
		if err != nil {
			t.Fatal(err)
		}
		want := schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](2), Queue: "research", PriorityClassName: theirs.Spec.PriorityClassName}
		if edit {
			want.Queue, want.MarkUnschedulable, want.SchedulingBackoff = "mine", ptr.To(false), ptr.To[int32](1)
		}
		expect(t, "the group "+name, want, theirs.Spec)
		expect(t, "label", "", theirs.Labels[podgrouper.PreemptibilityLabel])
		expect(t, "writes of the next pass", []string(nil), w.pass(group().Name))
	}
}

// A copy of a made PodGroup is its user's, and so is one that a pod of it calls otherwise.
func TestACopyOfAMadePodGroupIsItsUsers(t *testing.T) {
	copied := &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "copy", UID: "copy-uid",
		Annotations: map[string]string{podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue, podgrouper.MadeAsAnnotation: group().Name},
	}, Spec: schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](1)}}
	native := podgrouper.NativeName("copy", "copy-uid")
	member := func(p *corev1.Pod) {
		p.Annotations = map[string]string{podgrouper.PodGroupAnnotation: "copy"}
		p.Spec.SchedulingGroup.PodGroupName = &native
	}
	marked := func(p *corev1.Pod) { p.Annotations[podgrouper.GroupedByAnnotation] = podgrouper.GroupedByValue }
	w := newWorld(t, []client.Object{gang(int64(2)), copied, pod("a", member), pod("b", member, marked)}...)
	w.pass("copy")
	expect(t, "minimum of the scheduler's group", int32(1), w.native(native).Spec.SchedulingPolicy.Gang.MinCount)
}
