package kai

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/scheduling"
)

// newClient is a client of a cluster that holds some objects.
func newClient(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{AddToScheme, corev1.AddToScheme, grovev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).
		WithIndex(&PodGroup{}, OwnerIndex, func(obj client.Object) []string {
			if ref := metav1.GetControllerOf(obj); ref != nil {
				return []string{string(ref.UID)}
			}
			return nil
		}).Build()
}

// groupOf is the group that exists of a gang.
func groupOf(change func(*schedulerv1alpha1.PodGang), changes ...func(*PodGroup)) *PodGroup {
	group := desiredGroup(newGang(change), allNeeded())
	group.UID = types.UID("uid-of-" + group.Name)
	for _, c := range changes {
		c(group)
	}
	return group
}

func inAttempt(attempt string) func(*schedulerv1alpha1.PodGang) {
	return func(g *schedulerv1alpha1.PodGang) { g.Labels[labels.RestartAttempt] = attempt }
}

// placedOnce is a gang that was scheduled in its attempt.
func placedOnce(g *schedulerv1alpha1.PodGang) {
	g.Status.ObservedAttempt = 2
	g.Status.Conditions = []metav1.Condition{{Type: schedulerv1alpha1.PodGangConditionScheduled, Status: metav1.ConditionTrue}}
}

func worker(replicas int32, completed string) *grovev1alpha1.PodClique {
	return &grovev1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "llm-0-worker"},
		Spec:       grovev1alpha1.PodCliqueSpec{Replicas: replicas, Attempt: 2},
		Status:     grovev1alpha1.PodCliqueStatus{ObservedAttempt: 2, CompletedIndexes: completed},
	}
}

func TestPreparePodPutsAPodIntoTheSubGroupOfItsClique(t *testing.T) {
	podGang := newGang(nil)
	for what, prepare := range map[string]func(*corev1.Pod, *schedulerv1alpha1.PodGang){"a member": New(nil, true).PreparePod, "a surplus pod": New(nil, true).PrepareSurplus} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			// A template's own words do not count.
			Labels:      map[string]string{labels.PodClique: "llm-0-worker", "kai.scheduler/subgroup-name": "mine", "user": "kept"},
			Annotations: map[string]string{"pod-group-name": "mine", "kai.scheduler/skip-podgrouper": "false", "user": "kept"},
		}}
		prepare(pod, podGang)
		expect(t, what, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{labels.PodClique: "llm-0-worker", "kai.scheduler/subgroup-name": "llm-0-worker", "user": "kept"},
			Annotations: map[string]string{"pod-group-name": groupName(podGang), "kai.scheduler/skip-podgrouper": "true", "user": "kept"},
		}}, pod)
	}
}

func TestSync(t *testing.T) {
	name := groupName(newGang(nil))
	nameOf := func(attempt string) string { return groupName(newGang(inAttempt(attempt))) }
	goes := func(g *PodGroup) {
		g.DeletionTimestamp, g.Finalizers = ptr.To(metav1.Now()), []string{"example.com/held"}
	}
	foreign := groupOf(inAttempt("1"), func(g *PodGroup) { g.OwnerReferences = nil })
	idle := func(g *schedulerv1alpha1.PodGang) { g.Spec.PodGroups = g.Spec.PodGroups[2:] }
	tests := map[string]struct {
		gang    func(*schedulerv1alpha1.PodGang)
		objects []client.Object
		// wantWrites are "verb name".
		wantWrites []string
	}{
		"a new gang":                      {nil, nil, []string{"create " + name}},
		"nothing to do":                   {nil, []client.Object{groupOf(nil)}, nil},
		"the group of the attempt before": {nil, []client.Object{groupOf(inAttempt("1"))}, []string{"delete " + nameOf("1"), "create " + name}},
		"both":                            {nil, []client.Object{groupOf(nil), groupOf(inAttempt("1"))}, []string{"delete " + nameOf("1")}},
		"one that is going is left to go": {nil, []client.Object{groupOf(nil), groupOf(inAttempt("1"), goes)}, nil},
		"the own one is going":            {placedOnce, []client.Object{groupOf(nil, goes), worker(3, "0")}, nil},
		"one of a later attempt is another leader's": {nil, []client.Object{groupOf(nil), groupOf(inAttempt("3"))}, nil},
		"a group of something else is not ours":      {nil, []client.Object{foreign}, []string{"create " + name}},
		"a gang of no pods has no group":             {idle, nil, nil},
		"it keeps the one that it had":               {idle, []client.Object{groupOf(nil)}, nil},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			var writes []string
			c := newClient(t, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					writes = append(writes, "create "+obj.GetName())
					return c.Create(ctx, obj, opts...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					options := (&client.DeleteOptions{}).ApplyOptions(opts)
					if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != obj.GetUID() || obj.GetUID() == "" {
						t.Errorf("%s is deleted whatever its UID", obj.GetName())
					}
					writes = append(writes, "delete "+obj.GetName())
					return c.Delete(ctx, obj, opts...)
				},
				Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
					writes = append(writes, "patch "+obj.GetName())
					return nil
				},
				Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
					return errors.New("an update would undo what others write")
				},
			}, tc.objects...)
			if err := New(c, true).Sync(t.Context(), newGang(tc.gang), gang.Needed{Members: 4}); err != nil {
				t.Fatal(err)
			}
			expect(t, "writes", tc.wantWrites, writes)
			writes = nil
			if err := New(c, true).Sync(t.Context(), newGang(tc.gang), gang.Needed{Members: 4}); err != nil {
				t.Fatal(err)
			}
			expect(t, "writes when nothing has changed", []string(nil), writes)
		})
	}
}

// Who deletes a PodGang leaves pods in the group of the former one. One that replaces another
// would wait for them, so they come along; pods that KAI was never told of do not.
func TestPodsComeIntoTheGroupOfAPodGangThatIsMadeAnew(t *testing.T) {
	own := groupName(newGang(nil))
	in := func(name, group string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{"user": "kept"}}}
		if group != "" {
			pod.Annotations["pod-group-name"] = group
		}
		return pod
	}
	members := func(g *schedulerv1alpha1.PodGang) {
		g.Spec.PodGroups[0].PodReferences = []schedulerv1alpha1.NamespacedName{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "gone"}}
	}
	for name, tc := range map[string]struct {
		change func(*schedulerv1alpha1.PodGang)
		want   []string
	}{
		"made anew": {members, []string{own, own, ""}},
		"which has been placed": {func(g *schedulerv1alpha1.PodGang) {
			members(g)
			placedOnce(g)
		}, []string{own, "former", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, interceptor.Funcs{}, in("a", own), in("b", "former"), in("c", ""))
			if err := New(c, true).Sync(t.Context(), newGang(tc.change), gang.Needed{}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, name := range []string{"a", "b", "c"} {
				pod := &corev1.Pod{}
				if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, pod); err != nil {
					t.Fatal(err)
				}
				expect(t, "annotation", "kept", pod.Annotations["user"])
				got = append(got, pod.Annotations["pod-group-name"])
			}
			expect(t, "groups", tc.want, got)
		})
	}
}

func TestAGroupFollowsItsGang(t *testing.T) {
	specOf := func(change func(*PodGroupSpec)) PodGroupSpec {
		spec := groupOf(nil).Spec
		if change != nil {
			change(&spec)
		}
		return spec
	}
	minima := func(leader, worker int32) func(*PodGroupSpec) {
		return func(s *PodGroupSpec) {
			s.MinMember = leader + worker
			s.SubGroups = []SubGroup{{Name: "llm-0-leader", MinMember: leader}, {Name: "llm-0-worker", MinMember: worker}}
		}
	}
	with := func(change func(*PodGroupSpec)) *PodGroup {
		return groupOf(nil, func(g *PodGroup) { change(&g.Spec) })
	}
	silent := func(g *schedulerv1alpha1.PodGang) {
		delete(g.Labels, "kai.scheduler/preemptibility")
		g.Spec.PriorityClassName = ""
	}
	placed := func(g *schedulerv1alpha1.PodGang) {
		g.Annotations = map[string]string{"kai.scheduler/topology": "cluster", "kai.scheduler/topology-required-placement": "rack"}
	}
	tests := map[string]struct {
		gang    func(*schedulerv1alpha1.PodGang)
		group   *PodGroup
		clique  *grovev1alpha1.PodClique
		want    PodGroupSpec
		patched bool
	}{
		"what people say stays": {
			nil, with(func(s *PodGroupSpec) { s.Queue = "theirs" }), worker(3, ""), specOf(func(s *PodGroupSpec) { s.Queue = "theirs" }), false,
		},
		"so does what the gang says nothing about": {
			silent,
			groupOf(silent, func(g *PodGroup) {
				s := &g.Spec
				s.Preemptibility, s.PriorityClassName, s.TopologyConstraint = "non-preemptible", "theirs", &TopologyConstraint{Topology: "theirs"}
			}), worker(3, ""),
			specOf(func(s *PodGroupSpec) {
				s.Preemptibility, s.PriorityClassName, s.TopologyConstraint = "non-preemptible", "theirs", &TopologyConstraint{Topology: "theirs"}
			}), false,
		},
		"what the gang says no more goes": {
			silent,
			groupOf(placed, func(g *PodGroup) { g.Spec.Queue = "theirs" }), worker(3, ""),
			specOf(func(s *PodGroupSpec) { s.Queue, s.Preemptibility, s.PriorityClassName = "theirs", "", "" }), true,
		},
		"also when it was changed since": {
			silent,
			groupOf(placed, func(g *PodGroup) { g.Spec.Preemptibility = "non-preemptible" }), worker(3, ""),
			specOf(func(s *PodGroupSpec) { s.Preemptibility, s.PriorityClassName = "", "" }), true,
		},
		"a group of before says from now on what it has of the gang": {
			nil, groupOf(nil, func(g *PodGroup) { g.Annotations = nil }), worker(3, ""), specOf(nil), true,
		},
		"what the gang says is put right": {
			placed,
			with(func(s *PodGroupSpec) {
				s.Queue, s.Preemptibility, s.PriorityClassName = "theirs", "non-preemptible", "theirs"
			}), worker(3, ""),
			specOf(func(s *PodGroupSpec) {
				s.Queue, s.TopologyConstraint = "theirs", &TopologyConstraint{Topology: "cluster", RequiredTopologyLevel: "rack"}
			}), true,
		},
		"before the gang is placed the minimum rises and falls": {nil, with(minima(4, 1)), worker(3, ""), specOf(nil), true},
		"who has finished is not needed":                        {placedOnce, with(minima(1, 3)), worker(3, "1"), specOf(minima(1, 2)), true},
		"a clique that has finished is no subgroup": {
			placedOnce, with(minima(1, 3)), worker(3, "0-2"),
			specOf(func(s *PodGroupSpec) { s.MinMember, s.SubGroups = 1, []SubGroup{{Name: "llm-0-leader", MinMember: 1}} }), true,
		},
		"the minimum of what runs is not raised": {placedOnce, with(minima(1, 1)), worker(3, ""), specOf(minima(1, 1)), false},
		"a clique that comes later is a subgroup": {
			placedOnce, with(func(s *PodGroupSpec) { s.MinMember, s.SubGroups = 1, []SubGroup{{Name: "llm-0-leader", MinMember: 1}} }), worker(3, ""),
			specOf(minima(1, 3)), true,
		},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			patched := false
			c := newClient(t, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					patched = true
					return c.Patch(ctx, obj, patch, opts...)
				},
			}, tc.group, tc.clique)
			if err := New(c, true).Sync(t.Context(), newGang(tc.gang), gang.Needed{Members: 4}); err != nil {
				t.Fatal(err)
			}
			group := &PodGroup{}
			if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: groupName(newGang(nil))}, group); err != nil {
				t.Fatal(err)
			}
			expect(t, "spec", tc.want, group.Spec)
			expect(t, "what is the gang's", desiredGroup(newGang(tc.gang), allNeeded()).Annotations, group.Annotations)
			expect(t, "patched", tc.patched, patched)
		})
	}
}

func TestSyncErrors(t *testing.T) {
	resource := schema.GroupResource{Group: "scheduling.run.ai", Resource: "podgroups"}
	boom := errors.New("boom")
	name := groupName(newGang(nil))
	tests := map[string]struct {
		funcs   interceptor.Funcs
		gang    func(*schedulerv1alpha1.PodGang)
		objects []client.Object
		want    string
	}{
		"the list fails": {
			funcs: interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return boom }},
			want:  "list KAI's PodGroups of PodGang llm-0: boom",
		},
		"a clique cannot be read": {
			funcs: interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return boom
			}},
			want: "read clique llm-0-leader: boom",
		},
		"the creation fails": {
			funcs: interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return boom }},
			want:  "create KAI's PodGroup " + name + ": boom",
		},
		"the group exists, and the cache does not show it yet": {
			funcs: interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return apierrors.NewAlreadyExists(resource, "g")
			}},
		},
		"the deletion of an earlier one fails": {
			funcs:   interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return boom }},
			objects: []client.Object{groupOf(inAttempt("1"))},
			want:    "delete KAI's PodGroup " + groupName(newGang(inAttempt("1"))) + " of an earlier attempt: boom",
		},
		"an earlier one is gone already": {
			funcs: interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
				return apierrors.NewNotFound(resource, "g")
			}},
			objects: []client.Object{groupOf(inAttempt("1"))},
		},
		"the patch fails": {
			funcs: interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return boom
			}},
			gang:    placedOnce,
			objects: []client.Object{groupOf(nil), worker(3, "0")},
			want:    "change KAI's PodGroup " + name + ": boom",
		},
		"the group is gone": {
			funcs: interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return apierrors.NewNotFound(resource, "g")
			}},
			gang:    placedOnce,
			objects: []client.Object{groupOf(nil), worker(3, "0")},
		},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			err := New(newClient(t, tc.funcs, tc.objects...), true).Sync(t.Context(), newGang(tc.gang), gang.Needed{Members: 4})
			got := ""
			if err != nil {
				got = err.Error()
			}
			expect(t, "error", tc.want, got)
		})
	}
}

// What KAI and people write to the object, which the types here do not name, stays.
func TestAPatchNamesWhatItChanges(t *testing.T) {
	var data string
	c := newClient(t, interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
			text, err := patch.Data(obj)
			data = string(text)
			return err
		},
	}, groupOf(nil, func(g *PodGroup) { g.Annotations["kai.scheduler/stale-podgroup-timestamp"] = "t" }), worker(3, "0"))
	if err := New(c, true).Sync(t.Context(), newGang(placedOnce), gang.Needed{Members: 4}); err != nil {
		t.Fatal(err)
	}
	expect(t, "patch", `{"metadata":{"resourceVersion":"999"},"spec":{"minMember":3,"subGroups":[{"minMember":1,"name":"llm-0-leader"},{"minMember":2,"name":"llm-0-worker"}]}}`, data)
}

func TestObserve(t *testing.T) {
	pod := func(name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
		out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
		for _, change := range changes {
			change(out)
		}
		return out
	}
	refused := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no room"}}
	}
	gated := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/held"}} }
	over := func(g *PodGroup) {
		g.Status.SchedulingConditions = []schedulerv1alpha1.SchedulingCondition{{
			Type: schedulerv1alpha1.UnschedulableOnNodePool, Status: corev1.ConditionTrue, Reasons: explanations{{Reason: "OverLimit", Message: "m"}},
			LastTransitionTime: metav1.NewTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)),
		}}
	}
	placedLater := func(g *schedulerv1alpha1.PodGang) {
		placedOnce(g)
		g.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Date(2026, time.March, 1, 13, 0, 0, 0, time.UTC))
	}
	why := func(reason, message string) explanations { return explanations{{Reason: reason, Message: message}} }
	tests := map[string]struct {
		gang    func(*schedulerv1alpha1.PodGang)
		objects []client.Object
		want    scheduling.Observation
	}{
		"KAI has said nothing":     {nil, []client.Object{groupOf(nil), pod("leader", "")}, scheduling.Observation{}},
		"it says why":              {nil, []client.Object{groupOf(nil, over), pod("leader", "n"), pod("worker", "")}, scheduling.Observation{Why: why("OverLimit", "m")}},
		"all have a node":          {nil, []client.Object{groupOf(nil, over), pod("leader", "n"), pod("worker", "n")}, scheduling.Observation{}},
		"it speaks of a pod alone": {nil, []client.Object{groupOf(nil), pod("leader", "", refused)}, scheduling.Observation{Why: why("NotEnoughResources", "pod leader: no room")}},
		"a pod is held":            {nil, []client.Object{groupOf(nil), pod("leader", "", gated)}, scheduling.Observation{Gated: 1}},
		"it spoke before it placed the gang": {
			placedLater, []client.Object{groupOf(nil, over), pod("leader", "", refused)}, scheduling.Observation{Why: why("NotEnoughResources", "pod leader: no room")},
		},
		"only the attempt before was spoken of": {nil, []client.Object{groupOf(nil), groupOf(inAttempt("1"), over), pod("leader", "")}, scheduling.Observation{}},
		"the group does not exist": {
			nil, []client.Object{groupOf(inAttempt("1"), over), pod("leader", "")}, scheduling.Observation{Why: why("GroupObjectMissing", "KAI's group of this gang does not exist")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.Untold, tc.want.AllOrNothing = true, true
			got, err := New(newClient(t, interceptor.Funcs{}, tc.objects...), true).Observe(t.Context(), newGang(tc.gang))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "observation", tc.want, got)
		})
	}
	for what, kind := range map[string]client.Object{"read pod leader: boom": &corev1.Pod{}, "read KAI's PodGroup " + groupName(newGang(nil)) + ": boom": &PodGroup{}} {
		t.Run(what, func(t *testing.T) {
			c := newClient(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				_, isPod := obj.(*corev1.Pod)
				if _, wantPod := kind.(*corev1.Pod); isPod == wantPod {
					return errors.New("boom")
				}
				return c.Get(ctx, key, obj, opts...)
			}})
			got, err := New(c, true).Observe(t.Context(), newGang(nil))
			if err == nil || err.Error() != what {
				t.Errorf("got error %v", err)
			}
			// What cannot be read is not called missing.
			expect(t, "observation", scheduling.Observation{}, got)
		})
	}
}

// Without KAI's topologies a gang with a constraint would wait for ever.
func TestConstraintsAreToldWhereTheClusterHasTopologies(t *testing.T) {
	constrained := newGang(func(g *schedulerv1alpha1.PodGang) {
		g.Annotations = map[string]string{labels.TopologyName: "cluster"}
		g.Spec.TopologyConstraint = pack("example.com/rack", "")
		g.Spec.PodGroups[0].TopologyConstraint = pack("example.com/host", "")
	})
	for _, topologies := range []bool{true, false} {
		c := newClient(t, interceptor.Funcs{})
		backend, before := New(c, topologies), constrained.DeepCopy()
		if err := backend.Sync(t.Context(), constrained, gang.Needed{Members: 4}); err != nil {
			t.Fatal(err)
		}
		expect(t, "the gang that was read", before, constrained)
		group := &PodGroup{}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: groupName(constrained)}, group); err != nil {
			t.Fatal(err)
		}
		expect(t, "the whole is told", topologies, group.Spec.TopologyConstraint != nil)
		expect(t, "a part is told", topologies, group.Spec.SubGroups[0].TopologyConstraint != nil)
		support := backend.Topology()
		expect(t, "the scheduler keeps constraints", topologies, support.Gangs && support.Parts)
		expect(t, "what it lacks is told", !topologies, support.Lacks != "")
		expect(t, "a gang keeps its constraints", false, support.Fixed)
	}
}
