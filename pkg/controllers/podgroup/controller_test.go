package podgroup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (w *world) live(name string) *schedulerv1alpha1.PodGroup {
	w.t.Helper()
	out := &schedulerv1alpha1.PodGroup{}
	if err := w.Client.Get(w.t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) native(name string) *schedulingv1beta1.PodGroup {
	w.t.Helper()
	out := &schedulingv1beta1.PodGroup{}
	if err := w.Client.Get(w.t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// setTheirs writes to KAI's PodGroup as an administrator does.
func (w *world) setTheirs(key types.NamespacedName, value string, fields ...string) {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kaiPodGroup())
	if err := w.Live.Get(w.t.Context(), key, object); err != nil {
		w.t.Fatal(err)
	}
	if err := unstructured.SetNestedField(object.Object, value, fields...); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Client.Update(w.t.Context(), object, client.FieldOwner("kubectl-edit")); err != nil {
		w.t.Fatal(err)
	}
}

// theirs is KAI's PodGroup.
func (w *world) theirs(key types.NamespacedName) *schedulerv1alpha1.PodGroup {
	w.t.Helper()
	group, err := (&kaiStore{client: w.Writer, live: w.Live}).get(w.t.Context(), key)
	if err != nil || group == nil {
		w.t.Fatalf("KAI's PodGroup %s: %v", key.Name, err)
	}
	return group
}

func TestAGroupIsWrittenOnce(t *testing.T) {
	w, name := newWorld(t, gang(int64(2)), pod("a"), pod("b")), group().Name
	expect(t, "the first pass", []string{"apply " + name, "create " + name, "status " + name}, w.pass(name))
	expect(t, "the next pass", []string(nil), w.pass(name))
	// One that knows nothing, as after a restart.
	w.loose, w.notes, w.reader = newLoosePods(), newNoted(), newOwnerReader(w.Live, w.Pods, w.clock)
	expect(t, "after a restart", []string(nil), w.pass(name))
	expect(t, "minimum", ptr.To[int32](2), w.live(name).Spec.MinMember)
	expect(t, "minimum of the scheduler's", int32(2), w.native(name).Spec.SchedulingPolicy.Gang.MinCount)

	w.setMinimum(int64(1))
	w.reader.forget(gang(nil).GroupVersionKind().GroupKind(), "ns", "bert")
	// The status has nothing but another figure, which can wait.
	expect(t, "when the workload changes", []string{"apply " + name, "patch " + name}, w.pass(name))
	expect(t, "minimum of the scheduler's", int32(1), w.native(name).Spec.SchedulingPolicy.Gang.MinCount)
}

// Without a pod that lives there is nothing to do: garbage collection takes the group.
func TestAGroupWithoutPodsThatLive(t *testing.T) {
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	w := newWorld(t, gang(int64(1)), pod("a", ended))
	expect(t, "writes", []string(nil), w.pass(group().Name))
	expect(t, "writes without pods", []string(nil), newWorld(t).pass(group().Name))
}

func TestAGroupThatSomebodyMade(t *testing.T) {
	byHand := &schedulerv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "mine-uid"}, Spec: schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](1), PriorityClassName: "high"},
	}
	native := podgrouper.NativeName("mine", "mine-uid")
	member := func(p *corev1.Pod) {
		p.Annotations = map[string]string{podgrouper.PodGroupAnnotation: "mine"}
		p.Spec.SchedulingGroup.PodGroupName = &native
	}
	w := newWorld(t, gang(int64(2)), byHand, pod("a", member))
	expect(t, "writes", []string{"create " + native, "status mine"}, w.pass("mine"))
	made := w.native(native)
	expect(t, "class", "high", made.Spec.PriorityClassName)
	expect(t, "owner", []metav1.OwnerReference{{APIVersion: "scheduler.grove.io/v1alpha1", Kind: "PodGroup", Name: "mine", UID: "mine-uid", Controller: ptr.To(true)}}, made.OwnerReferences)
	expect(t, "writes of the next pass", []string(nil), w.pass("mine"))
}

// One of the scheduler's groups that somebody else made is theirs.
func TestAGroupOfTheSchedulersThatSomebodyMade(t *testing.T) {
	theirs := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: group().Name}}
	theirs.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 9}
	w := newWorld(t, gang(int64(2)), theirs, pod("a"), pod("b"))
	expect(t, "writes", []string{"apply " + group().Name, "status " + group().Name}, w.pass(group().Name))
	expect(t, "minimum", int32(9), w.native(group().Name).Spec.SchedulingPolicy.Gang.MinCount)
}

func TestAWorkloadThatMakesNoSense(t *testing.T) {
	w, name := newWorld(t, gang("many"), pod("a")), group().Name
	expect(t, "writes", []string{"apply " + name, "status " + name}, w.pass(name))
	if !meta.IsStatusConditionTrue(w.live(name).Status.Conditions, "Invalid") {
		t.Errorf("conditions %v", w.live(name).Status.Conditions)
	}
	told := w.events()
	if len(told) != 1 || !strings.Contains(told[0], "Warning InvalidOwner") {
		t.Errorf("events %q", told)
	}
	expect(t, "writes of the next pass", []string(nil), w.pass(name))
	expect(t, "events of the next pass", []string(nil), w.events())

	w.setMinimum(int64(1))
	w.reader.forget(gang(nil).GroupVersionKind().GroupKind(), "ns", "bert")
	expect(t, "writes once it makes sense", []string{"apply " + name, "create " + name, "status " + name}, w.pass(name))
}

// What is noted about a group is told when it is first written so.
func TestNotesAreToldOnce(t *testing.T) {
	strange := gang(int64(1))
	strange.SetLabels(map[string]string{"priorityClassName": "nobody-has-this"})
	w := newWorld(t, strange, pod("a"))
	w.pass(group().Name)
	told := w.events()
	if len(told) != 1 || !strings.Contains(told[0], "Warning UnknownPriorityClass") {
		t.Errorf("events %q", told)
	}
	w.pass(group().Name)
	w.notes = newNoted()
	w.pass(group().Name)
	expect(t, "events of later passes, and after a restart", []string(nil), w.events())
}

// An owner that is not there is waited for, and told of when that lasts.
func TestAnOwnerThatIsMissing(t *testing.T) {
	w := newWorld(t, pod("a"))
	if writes, err := w.tryPass(group().Name); err == nil || len(writes) > 0 {
		t.Errorf("got %v, wrote %v", err, writes)
	}
	expect(t, "events at first", []string(nil), w.events())
	w.clock.Step(2 * lasting)
	for range 2 {
		if _, err := w.tryPass(group().Name); err == nil {
			t.Error("it was grouped by a guess")
		}
	}
	if told := w.events(); len(told) != 1 || !strings.Contains(told[0], "OwnerMissing") {
		t.Errorf("events %q", told)
	}
}

// What stands in the way of the scheduler's group is told, and it is tried again.
func TestAGroupOfTheSchedulersThatIsRefused(t *testing.T) {
	w, name := newWorld(t, gang(int64(1)), pod("a")), group().Name
	w.refusal = apierrors.NewForbidden(schedulingv1beta1.Resource("podgroups"), name, errors.New("no PriorityClass of this name"))
	writes, err := w.tryPass(name)
	expect(t, "writes", []string{"apply " + name, "status " + name}, writes)
	why := w.live(name).Status.SchedulingConditions[0].Reasons[0]
	if err == nil || why.Reason != "GroupObjectMissing" || !strings.Contains(why.Message, "no PriorityClass") {
		t.Errorf("got %v, says %+v", err, why)
	}
}

// When a workload goes its pods go a little later; until then its group is as it was.
func TestAWorkloadThatGoes(t *testing.T) {
	w, name := newWorld(t, gang(int64(1)), pod("a")), group().Name
	w.pass(name)
	if err := w.Client.Delete(t.Context(), gang(nil)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.clock.Step(2 * lasting)
		expect(t, "writes", []string(nil), w.pass(name))
	}
	expect(t, "events", []string(nil), w.events())
}

// Pods that others know nothing of are held until all that are needed are there.
func TestRelease(t *testing.T) {
	byHand := &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "mine-uid"}, Spec: schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](2)}}
	held := func(p *corev1.Pod) {
		p.Annotations = map[string]string{podgrouper.PodGroupAnnotation: "mine"}
		p.Spec.SchedulerName, p.Spec.SchedulingGroup = "others", nil
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: naming.PendingGate}, {Name: "example.com/mine"}}
	}
	w := newWorld(t, byHand, pod("a", held))
	expect(t, "writes of a group that is not complete", []string{"status mine"}, w.pass("mine"))
	if err := w.Client.Create(t.Context(), pod("b", held)); err != nil {
		t.Fatal(err)
	}
	expect(t, "writes of one that is", []string{"patch a", "patch b"}, slices.DeleteFunc(w.pass("mine"), func(write string) bool { return write == "status mine" }))
}

func TestLoosePods(t *testing.T) {
	w := newWorld(t, enabled(), gang(int64(2)), pod("a", ungrouped), pod("b", ungrouped))
	expect(t, "writes to a pod", []string(nil), w.enter("a"))
	if !w.queue.early.Has(group()) {
		t.Errorf("queue %v", w.queue.early)
	}
	// Nothing is told of the group while a pod was not looked at that may be in it.
	expect(t, "writes of the first pass", []string{"apply " + group().Name}, w.pass(group().Name))
	w.enter("b")
	expect(t, "writes of the next pass", []string{"status " + group().Name}, w.pass(group().Name))
	condition := meta.FindStatusCondition(w.live(group().Name).Status.Conditions, "NotAttachable")
	if condition == nil || !strings.HasPrefix(condition.Message, "2 of 2 pods") {
		t.Errorf("got %v", condition)
	}
	if err := w.Client.Delete(t.Context(), pod("b")); err != nil {
		t.Fatal(err)
	}
	w.enter("b")
	expect(t, "members", true, w.loose.mayHave(group()))
	w.clock.Step(lasting)
	w.pass(group().Name)
	expect(t, "pending", int32(1), w.live(group().Name).Status.Pending)
}

func TestPodsThatAreLeftAlone(t *testing.T) {
	ofKAI := func(p *corev1.Pod) { p.Spec.SchedulerName = "kai-scheduler" }
	for name, tc := range map[string]struct {
		namespace *corev1.Namespace
		change    func(*corev1.Pod)
	}{
		"of a namespace that is not grouped": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, func(*corev1.Pod) {}},
		"of another scheduler":               {enabled(), func(p *corev1.Pod) { p.Spec.SchedulerName = "others" }},
		"of KAI, which is not there":         {enabled(), ofKAI},
		"whose user does not want it":        {enabled(), func(p *corev1.Pod) { p.Annotations = map[string]string{podgrouper.SkipAnnotation: "true"} }},
	} {
		w := newWorld(t, tc.namespace, gang(int64(2)), pod("a", ungrouped, tc.change))
		expect(t, "writes to a pod "+name, []string(nil), w.enter("a"))
		if len(w.queue.early) > 0 {
			t.Errorf("a pod %s is in %v", name, w.queue.early)
		}
	}
}

// KAI's pods are put into their group by one patch, and the group is KAI's.
func TestPodsOfKAI(t *testing.T) {
	ofKAI := func(p *corev1.Pod) { p.Spec.SchedulerName = "kai-scheduler" }
	w := newWorld(t, enabled(), gang(int64(2)), pod("a", ungrouped, ofKAI))
	w.kai.served = true
	expect(t, "writes", []string{"patch a"}, w.enter("a"))
	marked := &corev1.Pod{}
	if err := w.Client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"}, marked); err != nil {
		t.Fatal(err)
	}
	expect(t, "annotations", map[string]string{
		podgrouper.PodGroupAnnotation: group().Name, podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue, podgrouper.KAISkipAnnotation: "true",
	}, marked.Annotations)
	expect(t, "writes to one that is marked", []string(nil), w.enter("a"))
	expect(t, "writes to the group", []string{"apply " + group().Name}, w.pass(group().Name))
	theirs, err := (&kaiStore{client: w.Writer, live: w.Live}).get(t.Context(), group())
	if err != nil || theirs == nil || ptr.Deref(theirs.Spec.MinMember, 0) != 2 {
		t.Errorf("got %+v, %v", theirs, err)
	}
	expect(t, "writes of the next pass", []string(nil), w.pass(group().Name))
}

// KAI that comes later than its pods finds them.
func TestKAIThatComesLater(t *testing.T) {
	ofKAI := func(p *corev1.Pod) { p.Spec.SchedulerName = "kai-scheduler" }
	w := newWorld(t, enabled(), gang(int64(2)), pod("a", ungrouped, ofKAI))
	key := PodKey{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}, UID: "a-uid"}
	result, err := (&entry{w.Reconciler}).Reconcile(t.Context(), key)
	if err != nil || result.RequeueAfter != lookAgain {
		t.Errorf("got %v, %v", result, err)
	}
	kind := kaiPodGroup()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
	mapper.Add(kind, meta.RESTScopeNamespace)
	w.kai.mapper = mapper
	expect(t, "writes too early", []string(nil), w.enter("a"))
	w.clock.Step(lookAgain)
	expect(t, "writes", []string{"patch a"}, w.enter("a"))
}
