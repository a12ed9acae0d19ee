package native

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/scheduling"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// newGang is a gang of 3 pods of one clique and 1 of another.
func newGang(change func(*schedulerv1alpha1.PodGang)) *schedulerv1alpha1.PodGang {
	podGang := &schedulerv1alpha1.PodGang{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "llm-0", UID: "gang-uid",
			Labels: map[string]string{labels.ManagedBy: labels.ManagedByValue, labels.PartOf: "llm", labels.RestartAttempt: "2"},
		},
		Spec: schedulerv1alpha1.PodGangSpec{
			PriorityClassName: "high",
			PodGroups: []schedulerv1alpha1.PodGangPodGroup{
				{Name: "llm-0-leader", MinReplicas: 1}, {Name: "llm-0-worker", MinReplicas: 3}, {Name: "llm-0-idle"},
			},
		},
	}
	if change != nil {
		change(podGang)
	}
	return podGang
}

func TestDesiredGroup(t *testing.T) {
	podGang := newGang(nil)
	before := podGang.DeepCopy()
	expect(t, "group", &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns",
			Name:      naming.SchedulingGroup("llm-0", "gang-uid", 2),
			Labels: map[string]string{
				// The cache holds groups with this label alone.
				labels.ManagedBy: labels.ManagedByValue,
				labels.PartOf:    "llm", labels.RestartAttempt: "2", labels.PodGang: "llm-0",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "scheduler.grove.io/v1alpha1", Kind: "PodGang", Name: "llm-0", UID: "gang-uid",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy:  schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 4}},
			DisruptionMode:    &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
			PriorityClassName: "high",
		},
	}, desiredGroup(podGang, 4, true))
	expect(t, "the gang that was read", before, podGang)
	expect(t, "labels of the group of a gang without any", map[string]string{labels.PodGang: "llm-0"},
		desiredGroup(newGang(func(g *schedulerv1alpha1.PodGang) { g.Labels = nil }), 4, true).Labels)
}

// The scheduler knows groups by name, so a name must never come back.
func TestGroupNameIsNewWithEachGangObjectAndAttempt(t *testing.T) {
	base := groupName(newGang(nil))
	expect(t, "the name of the same gang", base, groupName(newGang(nil)))
	for what, podGang := range map[string]*schedulerv1alpha1.PodGang{
		"object":  newGang(func(g *schedulerv1alpha1.PodGang) { g.UID = "other" }),
		"attempt": newGang(func(g *schedulerv1alpha1.PodGang) { g.Labels[labels.RestartAttempt] = "3" }),
		"name":    newGang(func(g *schedulerv1alpha1.PodGang) { g.Name = "llm-1" }),
	} {
		if groupName(podGang) == base {
			t.Errorf("a gang with another %s has the same group, %s", what, base)
		}
	}
	same := newGang(func(g *schedulerv1alpha1.PodGang) {
		g.Spec.PodGroups, g.Generation, g.ResourceVersion = nil, 9, "9"
	})
	expect(t, "the name when only the members change", base, groupName(same))
}

func TestPreparePodPutsAPodIntoTheGroup(t *testing.T) {
	podGang := newGang(nil)
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}}
	New(nil, true).PreparePod(pod, podGang)
	expect(t, "pod", &corev1.Pod{Spec: corev1.PodSpec{
		NodeSelector: map[string]string{"zone": "a"},
		// The group's, which is not always the set's.
		PriorityClassName: "high",
		SchedulingGroup:   &corev1.PodSchedulingGroup{PodGroupName: ptr.To(groupName(podGang))},
	}}, pod)
}

// The set may have another class by now, which comes to a gang with its next attempt: the pods above
// the minimum have the same as the others.
func TestPrepareSurplusGivesAPodTheClassOfItsGang(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: "newer"}}
	New(nil, true).PrepareSurplus(pod, newGang(nil))
	expect(t, "pod", &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: "high"}}, pod)
}

func groupWith(conditions ...metav1.Condition) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{Status: schedulingv1beta1.PodGroupStatus{Conditions: conditions}}
}

// placedBy is a group whose pods share the value of a node label.
func placedBy(key string, conditions ...metav1.Condition) *schedulingv1beta1.PodGroup {
	group := groupWith(conditions...)
	group.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}}}
	return group
}

func why(reason, message string) []schedulerv1alpha1.UnschedulableExplanation {
	return []schedulerv1alpha1.UnschedulableExplanation{{Reason: reason, Message: message}}
}

func TestObservation(t *testing.T) {
	scheduled := schedulingv1beta1.PodGroupInitiallyScheduled
	tests := map[string]struct {
		group *schedulingv1beta1.PodGroup
		want  scheduling.Observation
	}{
		"the scheduler has said nothing": {groupWith(), scheduling.Observation{}},
		"it has said something else": {
			groupWith(metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, Reason: "R", Message: "m"}), scheduling.Observation{},
		},
		"it has placed the gang": {
			groupWith(metav1.Condition{Type: scheduled, Status: metav1.ConditionTrue, Reason: "R", Message: "placed"}),
			scheduling.Observation{Scheduled: true},
		},
		"it finds no room": {
			groupWith(metav1.Condition{Type: scheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonUnschedulable, Message: "0/4 nodes"}),
			scheduling.Observation{Why: why(schedulerv1alpha1.ReasonNotEnoughResources, "0/4 nodes")},
		},
		"it refuses the gang": {
			groupWith(metav1.Condition{Type: scheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonSchedulerError, Message: "why"}),
			scheduling.Observation{Why: why(schedulerv1alpha1.ReasonSchedulerError, "why")},
		},
		"its pods differ": {
			groupWith(metav1.Condition{Type: scheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonSchedulerError, Message: "all pods in a single pod group should have the same priority as the pod group's priority, got 5 and 0"}),
			scheduling.Observation{Why: why(schedulerv1alpha1.ReasonMemberMismatch, "all pods in a single pod group should have the same priority as the pod group's priority, got 5 and 0")},
		},
		"it makes room": {
			groupWith(metav1.Condition{Type: scheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonUnschedulable, Message: "0/4 nodes, found a placement for podgroup, preempting 2 victims"}),
			scheduling.Observation{Why: why(schedulerv1alpha1.ReasonPreemptionPending, "0/4 nodes, found a placement for podgroup, preempting 2 victims")},
		},
		"it waits for those that make room": {
			groupWith(metav1.Condition{Type: scheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonUnschedulable, Message: "0/4 nodes, ongoing preemption on nominated nodes"}),
			scheduling.Observation{Why: why(schedulerv1alpha1.ReasonPreemptionPending, "0/4 nodes, ongoing preemption on nominated nodes")},
		},
		"no domain has room": {
			placedBy("example.com/rack", metav1.Condition{Type: scheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonUnschedulable, Message: "0/2 placements are available, first placement status: no"}),
			scheduling.Observation{Why: why(schedulerv1alpha1.ReasonTopologyUnsatisfied, "0/2 placements are available, first placement status: no")},
		},
		"no node has the label": {
			placedBy("example.com/rack", metav1.Condition{Type: scheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonUnschedulable, Message: "no feasible placements found"}),
			scheduling.Observation{Why: why(schedulerv1alpha1.ReasonTopologyUnsatisfied, "no feasible placements found")},
		},
		// With the feature gate on, any node is one placement.
		"no room, and no topology": {
			groupWith(metav1.Condition{Type: scheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonUnschedulable, Message: "0/1 placements are available, first placement status: no"}),
			scheduling.Observation{Why: why(schedulerv1alpha1.ReasonNotEnoughResources, "0/1 placements are available, first placement status: no")},
		},
		"it makes room in a domain": {
			placedBy("example.com/rack", metav1.Condition{Type: scheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonUnschedulable, Message: "0/2 placements are available, found a placement for podgroup, preempting 2 victims"}),
			scheduling.Observation{Why: why(schedulerv1alpha1.ReasonPreemptionPending, "0/2 placements are available, found a placement for podgroup, preempting 2 victims")},
		},
		"it does not know": {
			groupWith(metav1.Condition{Type: scheduled, Status: metav1.ConditionUnknown, Reason: "R", Message: "m"}),
			scheduling.Observation{Why: why(schedulerv1alpha1.ReasonNotEnoughResources, "m")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "observation", tc.want, scheduling.Observation{Scheduled: IsScheduled(tc.group), Why: Explain(tc.group, nil)})
		})
	}
}

// newClient is a client of a cluster that holds some groups.
func newClient(t *testing.T, funcs interceptor.Funcs, groups ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{schedulingv1beta1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(groups...).WithInterceptorFuncs(funcs).
		WithIndex(&schedulingv1beta1.PodGroup{}, OwnerIndex, func(obj client.Object) []string {
			if ref := metav1.GetControllerOf(obj); ref != nil {
				return []string{string(ref.UID)}
			}
			return nil
		}).Build()
}

// groupOf is the group that exists of a gang.
func groupOf(change func(*schedulerv1alpha1.PodGang), changes ...func(*schedulingv1beta1.PodGroup)) *schedulingv1beta1.PodGroup {
	group := desiredGroup(newGang(change), 4, true)
	group.UID = types.UID("uid-of-" + group.Name)
	for _, c := range changes {
		c(group)
	}
	return group
}

func inAttempt(attempt string) func(*schedulerv1alpha1.PodGang) {
	return func(g *schedulerv1alpha1.PodGang) { g.Labels[labels.RestartAttempt] = attempt }
}

func TestSync(t *testing.T) {
	name := groupName(newGang(nil))
	nameOf := func(attempt string) string { return groupName(newGang(inAttempt(attempt))) }
	goes := func(g *schedulingv1beta1.PodGroup) {
		g.DeletionTimestamp, g.Finalizers = ptr.To(metav1.Now()), []string{"example.com/held"}
	}
	foreign := groupOf(inAttempt("1"), func(g *schedulingv1beta1.PodGroup) { g.OwnerReferences = nil })
	tests := map[string]struct {
		groups []client.Object
		// wantWrites are "verb name".
		wantWrites []string
	}{
		"a new gang":                      {nil, []string{"create " + name}},
		"nothing to do":                   {[]client.Object{groupOf(nil)}, nil},
		"the group of the attempt before": {[]client.Object{groupOf(inAttempt("1"))}, []string{"delete " + nameOf("1"), "create " + name}},
		"both":                            {[]client.Object{groupOf(nil), groupOf(inAttempt("1"))}, []string{"delete " + nameOf("1")}},
		"one that is going is left to go": {[]client.Object{groupOf(nil), groupOf(inAttempt("1"), goes)}, nil},
		"one of a later attempt is another leader's": {[]client.Object{groupOf(nil), groupOf(inAttempt("3"))}, nil},
		"a group of something else is not ours":      {[]client.Object{foreign}, []string{"create " + name}},
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
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return errors.New("the minimum stays")
				},
				Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
					return errors.New("groups are not updated")
				},
			}, tc.groups...)
			if err := New(c, true).Sync(t.Context(), newGang(nil), gang.Needed{Members: 4, Left: 4}); err != nil {
				t.Fatal(err)
			}
			expect(t, "writes", tc.wantWrites, writes)
			writes = nil
			if err := New(c, true).Sync(t.Context(), newGang(nil), gang.Needed{Members: 4, Left: 4}); err != nil {
				t.Fatal(err)
			}
			expect(t, "writes when nothing has changed", []string(nil), writes)
		})
	}
}

// Members that have finished do not count for the scheduler any more. Cliques that were scaled
// to 0 count again when they are wanted again; a group for nobody cannot be.
func TestTheMinimumIsLoweredAndRaisedForCliquesThatComeBack(t *testing.T) {
	var patches int
	c := newClient(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			patches++
			data, err := patch.Data(obj)
			if err != nil || !strings.Contains(string(data), "resourceVersion") {
				t.Errorf("the patch %s can undo another one: %v", data, err)
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}, groupOf(nil))
	for _, step := range []struct {
		needed           gang.Needed
		minimum, patches int32
	}{
		{gang.Needed{Members: 4, Left: 4}, 4, 0}, {gang.Needed{Members: 2, Left: 2}, 2, 1}, {gang.Needed{Members: 2, Left: 2, Raise: true}, 2, 1},
		{gang.Needed{Members: 4, Left: 4}, 2, 1}, {gang.Needed{Members: 1, Left: 1, Raise: true}, 1, 2},
		{gang.Needed{Members: 4, Left: 4, Raise: true}, 4, 3}, {gang.Needed{Raise: true}, 4, 3},
	} {
		if err := New(c, true).Sync(t.Context(), newGang(nil), step.needed); err != nil {
			t.Fatal(err)
		}
		group := &schedulingv1beta1.PodGroup{}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: groupName(newGang(nil))}, group); err != nil {
			t.Fatal(err)
		}
		expect(t, fmt.Sprintf("minimum when %+v are needed", step.needed), step.minimum, group.Spec.SchedulingPolicy.Gang.MinCount)
		expect(t, "patches", int(step.patches), patches)
	}
}

// running is a pod with a node, in the group of a name or in none.
func running(name, group string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: "node"}}
	if group != "" {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	}
	return pod
}

// withMembers names the pods of a gang of three and one.
func withMembers(g *schedulerv1alpha1.PodGang) {
	g.Spec.PodGroups[0].PodReferences = []schedulerv1alpha1.NamespacedName{{Name: "leader"}}
	g.Spec.PodGroups[1].PodReferences = []schedulerv1alpha1.NamespacedName{{Name: "a"}, {Name: "b"}, {Name: "c"}}
}

// Who deletes a PodGang leaves pods that run in the group of the former one, and a cluster that
// learns to schedule gangs has some in none. A pod that replaces another is not to wait for them.
func TestPodsThatRunOutsideTheGroupAreNotWaitedFor(t *testing.T) {
	wasScheduled := func(g *schedulerv1alpha1.PodGang) {
		withMembers(g)
		g.Status = schedulerv1alpha1.PodGangStatus{ObservedAttempt: 2, Conditions: []metav1.Condition{{Type: schedulerv1alpha1.PodGangConditionScheduled, Status: metav1.ConditionTrue}}}
	}
	waits := func(name string) *corev1.Pod {
		pod := running(name, "former")
		pod.Spec.NodeName = ""
		return pod
	}
	ended := func(name string) *corev1.Pod {
		pod := running(name, "former")
		pod.Status.Phase = corev1.PodSucceeded
		return pod
	}
	own := groupName(newGang(nil))
	placed := func(g *schedulingv1beta1.PodGroup) {
		g.Status.Conditions = []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue}}
	}
	lower := func(g *schedulingv1beta1.PodGroup) { g.Spec.SchedulingPolicy.Gang.MinCount = 2 }
	for name, tc := range map[string]struct {
		gang    func(*schedulerv1alpha1.PodGang)
		objects []client.Object
		needed  gang.Needed
		want    int32
		// placed says that the gang counts as placed.
		placed bool
	}{
		"none runs":                          {withMembers, nil, gang.Needed{Members: 4, Left: 4}, 4, false},
		"some run in the former one's group": {withMembers, []client.Object{running("a", "former"), running("b", "former")}, gang.Needed{Members: 4, Left: 4}, 2, false},
		"some run in none":                   {withMembers, []client.Object{running("a", ""), running("b", "")}, gang.Needed{Members: 4, Left: 4}, 2, false},
		"all run":                            {withMembers, []client.Object{running("leader", ""), running("a", "former"), running("b", "former"), running("c", "former")}, gang.Needed{Members: 4, Left: 4}, 1, true},
		"its own are waited for":             {withMembers, []client.Object{running("a", own), running("b", own)}, gang.Needed{Members: 4, Left: 4}, 4, false},
		"one that waits can join no other":   {withMembers, []client.Object{waits("a"), running("b", "former")}, gang.Needed{Members: 4, Left: 4}, 2, false},
		"a finished one is gone":             {wasScheduled, []client.Object{running("a", "former"), running("b", "former")}, gang.Needed{Members: 3, Left: 3}, 1, false},
		"a finished one is there":            {wasScheduled, []client.Object{ended("a"), running("b", "former")}, gang.Needed{Members: 3, Left: 3}, 2, false},
		"of a gang that was not placed":      {withMembers, []client.Object{running("a", "former"), running("b", "former")}, gang.Needed{Members: 4, Left: 3}, 1, false},
		"they came to run before it was":     {withMembers, []client.Object{groupOf(nil), running("a", "former"), running("b", "former"), running("c", "former")}, gang.Needed{Members: 4, Left: 4}, 1, false},
		"they came to run later":             {wasScheduled, []client.Object{groupOf(nil), running("a", "former"), running("b", "former"), running("c", "former")}, gang.Needed{Members: 4, Left: 4}, 1, false},
		"the group has been placed":          {wasScheduled, []client.Object{groupOf(nil, placed), running("a", "former"), running("b", "former"), running("c", "former")}, gang.Needed{Members: 4, Left: 4}, 4, true},
		"cliques have come back":             {wasScheduled, []client.Object{groupOf(nil, placed, lower), running("a", own), running("b", own)}, gang.Needed{Members: 4, Left: 4, Raise: true}, 4, true},
		"none has come back":                 {wasScheduled, []client.Object{groupOf(nil, placed, lower), running("a", "former"), running("b", "former")}, gang.Needed{Members: 4, Left: 4, Raise: true}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, interceptor.Funcs{}, tc.objects...)
			if err := New(c, true).Sync(t.Context(), newGang(tc.gang), tc.needed); err != nil {
				t.Fatal(err)
			}
			group := &schedulingv1beta1.PodGroup{}
			if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: own}, group); err != nil {
				t.Fatal(err)
			}
			expect(t, "minimum", tc.want, group.Spec.SchedulingPolicy.Gang.MinCount)
			observation, err := New(c, true).Observe(t.Context(), newGang(tc.gang))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "placed", tc.placed, observation.Scheduled)
		})
	}
}

func TestAGangOfWhichNobodyIsNeededHasNoGroup(t *testing.T) {
	idle := newGang(func(g *schedulerv1alpha1.PodGang) { g.Spec.PodGroups = g.Spec.PodGroups[2:] })
	c := newClient(t, interceptor.Funcs{})
	if err := New(c, true).Sync(t.Context(), idle, gang.Needed{Raise: true}); err != nil {
		t.Fatal(err)
	}
	groups := &schedulingv1beta1.PodGroupList{}
	if err := c.List(t.Context(), groups); err != nil {
		t.Fatal(err)
	}
	expect(t, "groups", 0, len(groups.Items))
	got, err := New(c, true).Observe(t.Context(), idle)
	expect(t, "observation", scheduling.Observation{Untold: true}, got)
	expect(t, "error", nil, err)
}

func TestSyncErrors(t *testing.T) {
	resource := schema.GroupResource{Group: "scheduling.k8s.io", Resource: "podgroups"}
	invalid := func(path string) error {
		return apierrors.NewInvalid(schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PodGroup"}, "g", field.ErrorList{field.Invalid(field.NewPath(path), 2, "no")})
	}
	boom := errors.New("boom")
	fails := func(err error) interceptor.Funcs {
		return interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err },
		}
	}
	tests := map[string]struct {
		funcs  interceptor.Funcs
		groups []client.Object
		want   string
	}{
		"the list fails": {
			funcs: interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return boom }},
			want:  "list the PodGroups of PodGang llm-0: boom",
		},
		"the creation fails": {funcs: fails(boom), want: "create PodGroup " + groupName(newGang(nil)) + ": boom"},
		"the group is refused": {
			funcs: fails(invalid("spec.template")), want: "create PodGroup " + groupName(newGang(nil)) + ": " + invalid("spec.template").Error(),
		},
		"the group is refused for its priority": {
			funcs: fails(invalid("spec.priority")),
			want: "create PodGroup " + groupName(newGang(nil)) + `: PriorityClass "high" is above 1000000000, the highest priority that Kubernetes' scheduler takes for a group: ` +
				"name another class: " + invalid("spec.priority").Error(),
		},
		"the group exists, and the cache does not show it yet": {
			funcs: fails(apierrors.NewAlreadyExists(resource, "g")),
		},
		"the deletion of an earlier one fails": {
			funcs: interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return boom },
			},
			groups: []client.Object{groupOf(inAttempt("1"))},
			want:   "delete PodGroup " + groupName(newGang(inAttempt("1"))) + " of an earlier attempt: boom",
		},
		"an earlier one is gone already": {
			funcs: interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					return apierrors.NewNotFound(resource, "g")
				},
			},
			groups: []client.Object{groupOf(inAttempt("1"))},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := New(newClient(t, tc.funcs, tc.groups...), true).Sync(t.Context(), newGang(nil), gang.Needed{Members: 4, Left: 4})
			got := ""
			if err != nil {
				got = err.Error()
			}
			expect(t, "error", tc.want, got)
		})
	}
}

func TestObserveReadsTheGroupOfTheAttempt(t *testing.T) {
	placed := func(g *schedulingv1beta1.PodGroup) {
		g.Status.Conditions = []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Message: "placed"}}
	}
	tests := map[string]struct {
		groups []client.Object
		want   scheduling.Observation
	}{
		"it is placed": {[]client.Object{groupOf(nil, placed)}, scheduling.Observation{Scheduled: true}},
		"only that of the attempt before is placed": {
			[]client.Object{groupOf(nil), groupOf(inAttempt("1"), placed)}, scheduling.Observation{},
		},
		"it does not exist": {
			[]client.Object{groupOf(inAttempt("1"), placed)},
			scheduling.Observation{Why: why(schedulerv1alpha1.ReasonPodGroupMissing, "the scheduler's group of this gang does not exist")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := New(newClient(t, interceptor.Funcs{}, tc.groups...), true).Observe(t.Context(), newGang(nil))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "observation", tc.want, got)
		})
	}
	t.Run("the read fails", func(t *testing.T) {
		c := newClient(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("boom")
		}})
		got, err := New(c, true).Observe(t.Context(), newGang(nil))
		if err == nil || err.Error() != "read PodGroup "+groupName(newGang(nil))+": boom" {
			t.Errorf("got error %v", err)
		}
		// What cannot be read is not called missing.
		expect(t, "observation", scheduling.Observation{}, got)
	})
}

// Of a gang the scheduler says that it does not fit, and of one of its pods why.
func TestWhatIsMissingIsTold(t *testing.T) {
	const short, full = "minCount (4) cannot be satisfied: 0 scheduled, 3 remaining", "0/8 nodes are available: 8 Insufficient nvidia.com/gpu."
	waits := func(name, message string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}},
		}}
	}
	says := func(reason, message string) *schedulingv1beta1.PodGroup {
		return groupOf(nil, func(g *schedulingv1beta1.PodGroup) {
			g.Status.Conditions = []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
		})
	}
	const unschedulable = schedulingv1beta1.PodGroupReasonUnschedulable
	for name, tc := range map[string]struct {
		objects []client.Object
		want    []schedulerv1alpha1.UnschedulableExplanation
	}{
		"of one pod": {
			[]client.Object{says(unschedulable, short), waits("leader", short), waits("a", full), waits("b", short)},
			why(schedulerv1alpha1.ReasonNotEnoughResources, short+"; pod a: "+full),
		},
		"of none": {[]client.Object{says(unschedulable, short), waits("leader", short)}, why(schedulerv1alpha1.ReasonNotEnoughResources, short)},
		"where nothing is missing": {
			[]client.Object{says(schedulingv1beta1.PodGroupReasonSchedulerError, "boom"), waits("a", full)}, why(schedulerv1alpha1.ReasonSchedulerError, "boom"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := New(newClient(t, interceptor.Funcs{}, tc.objects...), true).Observe(t.Context(), newGang(withMembers))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "observation", scheduling.Observation{Why: tc.want}, got)
		})
	}
}

// The scheduler knows one level of a group, which is required; with the feature gate off none.
func TestAGroupHasTheTopologyOfItsGang(t *testing.T) {
	packed := func(key string) func(*schedulerv1alpha1.PodGang) {
		return func(g *schedulerv1alpha1.PodGang) {
			g.Spec.TopologyConstraint = &schedulerv1alpha1.TopologyConstraint{PackConstraint: &schedulerv1alpha1.TopologyPackConstraint{Required: ptr.To(key), Preferred: ptr.To("example.com/host")}}
		}
	}
	preferred := func(g *schedulerv1alpha1.PodGang) {
		packed("")(g)
		g.Spec.TopologyConstraint.PackConstraint.Required = nil
	}
	by := func(key string) *schedulingv1beta1.PodGroupSchedulingConstraints {
		return &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}}}
	}
	tests := map[string]struct {
		gang     func(*schedulerv1alpha1.PodGang)
		topology bool
		want     *schedulingv1beta1.PodGroupSchedulingConstraints
	}{
		"none":            {nil, true, nil},
		"required":        {packed("example.com/rack"), true, by("example.com/rack")},
		"preferred alone": {preferred, true, nil},
		"the gate is off": {packed("example.com/rack"), false, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "topology", tc.want, desiredGroup(newGang(tc.gang), 4, tc.topology).Spec.SchedulingConstraints)
		})
	}
	expect(t, "with the gate", gang.TopologySupport{Gangs: true, Fixed: true}, New(nil, true).Topology())
	without := New(nil, false).Topology()
	expect(t, "without it", gang.TopologySupport{Fixed: true}, gang.TopologySupport{Gangs: without.Gangs, Parts: without.Parts, Fixed: without.Fixed})
	if !strings.Contains(without.Lacks, "TopologyAwareWorkloadScheduling") {
		t.Errorf("it lacks %q", without.Lacks)
	}
}

// A pod that replaces another is placed in the domain of the others alone.
func TestAReplacementThatFindsNoRoomInItsDomain(t *testing.T) {
	placed := func(g *schedulingv1beta1.PodGroup) {
		g.Status.Conditions = []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue}}
	}
	inRack := func(g *schedulingv1beta1.PodGroup) {
		g.Spec.SchedulingConstraints = placedBy("example.com/rack").Spec.SchedulingConstraints
	}
	withPod := newGang(func(g *schedulerv1alpha1.PodGang) {
		g.Spec.PodGroups[0].PodReferences = []schedulerv1alpha1.NamespacedName{{Name: "pod"}}
	})
	tests := map[string]struct {
		changes []func(*schedulingv1beta1.PodGroup)
		reason  string
		want    []schedulerv1alpha1.UnschedulableExplanation
	}{
		"in its rack":                {[]func(*schedulingv1beta1.PodGroup){placed, inRack}, corev1.PodReasonUnschedulable, why(schedulerv1alpha1.ReasonTopologyUnsatisfied, "pod pod: no room")},
		"the scheduler fails":        {[]func(*schedulingv1beta1.PodGroup){placed, inRack}, "SchedulerError", why(schedulerv1alpha1.ReasonSchedulerError, "pod pod: no room")},
		"anywhere: its caller asks":  {[]func(*schedulingv1beta1.PodGroup){placed}, corev1.PodReasonUnschedulable, nil},
		"before the gang was placed": {[]func(*schedulingv1beta1.PodGroup){inRack}, corev1.PodReasonUnschedulable, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: tc.reason, Message: "no room"}}}}
			got, err := New(newClient(t, interceptor.Funcs{}, groupOf(nil, tc.changes...), pod), true).Observe(t.Context(), withPod)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "why", tc.want, got.Why)
		})
	}
}
