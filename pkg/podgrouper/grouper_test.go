package podgrouper

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

func both(sets ...func(*world)) func(*world) {
	return func(w *world) {
		for _, set := range sets {
			set(w)
		}
	}
}

func TestExempt(t *testing.T) {
	reference := func(apiVersion, kind string) func(*world) {
		return func(w *world) {
			w.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner", UID: "owner-uid"}}
		}
	}
	annotate := func(key, value string) func(*world) { return func(w *world) { w.pod.Annotations[key] = value } }
	kai := func(w *world) { w.pod.Spec.SchedulerName = "kai-scheduler" }
	tests := map[string]struct {
		set  func(*world)
		want Exemption
	}{
		"a pod":                             {func(*world) {}, ""},
		"of the default scheduler, by name": {func(w *world) { w.pod.Spec.SchedulerName = corev1.DefaultSchedulerName }, ""},
		"of another scheduler":              {func(w *world) { w.pod.Spec.SchedulerName = "volcano" }, OtherScheduler},
		"a mirror pod":                      {annotate(corev1.MirrorPodAnnotationKey, "x"), MirrorPod},
		"in kube-system":                    {func(w *world) { w.pod.Namespace = "kube-system" }, SystemNamespace},
		"in the grouper's namespace":        {func(w *world) { w.options.ExemptNamespaces = sets.New("ns") }, SystemNamespace},
		"of a DaemonSet":                    {reference("apps/v1", "DaemonSet"), DaemonSetPod},
		"of a DaemonSet, on KAI":            {both(reference("apps/v1", "DaemonSet"), kai), DaemonSetPod},
		"of a DaemonSet further up":         {func(w *world) { w.under("x", "x").TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"} }, DaemonSetPod},
		"of a DaemonSet of someone else":    {reference("example.com/v1", "DaemonSet"), ""},
		"of a PodCliqueSet":                 {reference("grove.io/v1alpha1", "PodClique"), PodCliqueSetPod},
		"of a PodCliqueSet, on KAI":         {both(reference("grove.io/v1alpha1", "PodClique"), kai), ""},
		"opted out":                         {annotate(SkipAnnotation, "true"), OptedOut},
		"not opted out":                     {annotate(SkipAnnotation, "false"), ""},
		"opted out in KAI's words":          {annotate(KAISkipAnnotation, "true"), OptedOut},
		"by its owner":                      {func(w *world) { w.under("Gang", "gang").Annotations[SkipAnnotation] = "true" }, OptedOut},
		"by what is passed over, as KAI": {func(w *world) {
			w.under("Gang", "gang")
			w.under("Flow", "flow").Annotations[KAISkipAnnotation] = "true"
		}, OptedOut},
		"KAI's grouper told off by us": {both(annotate(KAISkipAnnotation, "true"), annotate(GroupedByAnnotation, GroupedByValue)), ""},
		"grouped by hand":              {annotate(PodGroupAnnotation, "mine"), GroupedByHand},
		"grouped by hand, natively": {
			func(w *world) { w.pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("mine")} }, GroupedByHand,
		},
		"grouped by us": {both(annotate(PodGroupAnnotation, "pg-pod"), annotate(GroupedByAnnotation, GroupedByValue)), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			tc.set(w)
			id := w.identify(t)
			if id.Exempt != tc.want || id.Needed() != (tc.want == "") {
				t.Errorf("got %q, want %q", id.Exempt, tc.want)
			}
			if group := w.describe(t); group.Exempt != tc.want {
				t.Errorf("described as %q, want %q", group.Exempt, tc.want)
			}
		})
	}
	w := newWorld()
	if id, err := w.grouper().Identify(w.pod, owners.Chain{MirrorPod: true}); err != nil || id.Exempt != MirrorPod {
		t.Errorf("a pod of a node: %q, %v", id.Exempt, err)
	}
}

func TestNames(t *testing.T) {
	gang := func(set func(*world)) string {
		w := newWorld()
		w.under("Gang", "gang")
		set(w)
		return w.identify(t).Name
	}
	rename := func(name string) func(*world) { return func(w *world) { w.owners[0].Name = name } }
	member := func(m Membership) func(*world) {
		return func(w *world) { w.rules[2] = rule{kind: "Gang", membership: m} }
	}
	base := gang(func(*world) {})
	if !strings.HasPrefix(base, "pg-gang-") {
		t.Errorf("got %q", base)
	}
	if again := gang(func(w *world) { w.pod.Name, w.pod.UID = "", "" }); again != base {
		t.Errorf("before the pod has a name: %q, after: %q", again, base)
	}
	long := strings.Repeat("a", 100)
	others := map[string]string{
		"an owner of another UID":   gang(func(w *world) { w.owners[0].UID = "new" }),
		"another of its groups":     gang(member(Membership{SubKey: "group-1"})),
		"and one more":              gang(member(Membership{SubKey: "group-2"})),
		"named after something":     gang(member(Membership{Base: "app", UID: "app-1"})),
		"named after another":       gang(member(Membership{Base: "app", UID: "app-2"})),
		"named after a label":       gang(member(Membership{Base: "App_1.", UID: "app-3"})),
		"an owner of a long name":   gang(rename(long)),
		"an owner of a longer name": gang(func(w *world) { w.owners[0].Name, w.owners[0].UID = long+"b", "other" }),
		"a group of a long name":    gang(both(rename(long), member(Membership{SubKey: "group-1"}))),
		"and another":               gang(both(rename(long), member(Membership{SubKey: "group-2"}))),
		"a name that ends in a dot": gang(rename(strings.Repeat("a", 50) + ".b")),
		"a pod alone":               func() string { return newWorld().identify(t).Name }(),
	}
	seen := map[string]string{base: "the first"}
	for what, name := range others {
		if other, twice := seen[name]; twice {
			t.Errorf("%s and %s have the same name %q", what, other, name)
		}
		seen[name] = what
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 || strings.Contains(name, "--") {
			t.Errorf("%s: name %q: %v", what, name, errs)
		}
	}
}

// A pod that was grouped while it was created keeps its group: it had no UID to be named after.
func TestAGroupPerPodIsKept(t *testing.T) {
	w := newWorld()
	w.pod.UID, w.pod.Name = "", ""
	if id := w.identify(t); id.Name != "" || !id.PerPod || id.Owner != nil {
		t.Errorf("without a UID: %+v", id)
	}
	w.pod.Annotations[GroupedByAnnotation] = GroupedByValue
	w.pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("pg-chosen")}
	if id := w.identify(t); id.Name != "pg-chosen" {
		t.Errorf("reinvoked: %+v", id)
	}
	w.pod.UID, w.pod.Name = "pod-uid", "pod"
	if id := w.identify(t); id.Name != "pg-chosen" || id.Owner == nil || id.Owner.UID != "pod-uid" {
		t.Errorf("later: %+v", id)
	}
	// A pod of an owner is where its owner's pods are.
	w.under("Gang", "gang")
	if id := w.identify(t); !strings.HasPrefix(id.Name, "pg-gang-") {
		t.Errorf("with an owner: %+v", id)
	}
}

func TestSubGroupName(t *testing.T) {
	if got := SubGroupName("workers", "replica", "1"); got != "workers-replica-1" {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{"GPU_group", "gpu-group.", "", "---", strings.Repeat("a", 70), "é"} {
		got := SubGroupName(name)
		if again := SubGroupName(got); again != got {
			t.Errorf("%q becomes %q, which is no DNS label", name, got)
		}
	}
	if SubGroupName("GPU_group") == SubGroupName("gpu-group") || SubGroupName("A") == SubGroupName("a") {
		t.Error("two names became one")
	}
}

func TestMinimum(t *testing.T) {
	leaves := []SubGroup{{Name: "a", MinMember: count(1)}, {Name: "b", MinMember: count(3)}}
	tests := map[string]struct {
		shape  Shape
		perPod bool
		asked  string
		want   Group
		sub    string
		notes  []string
	}{
		"nothing is said":         {want: Group{MinMember: ptr.To[int32](1)}, sub: "a"},
		"the rule says":           {shape: Shape{MinMember: count(4)}, want: Group{MinMember: ptr.To[int32](4)}, sub: "a"},
		"none at all":             {shape: Shape{MinMember: count(0)}, want: Group{MinMember: ptr.To[int32](1)}, sub: "a"},
		"subgroups":               {shape: Shape{MinMember: count(4), SubGroups: leaves}, want: Group{MinMember: ptr.To[int32](4), SubGroups: leaves}, sub: "a"},
		"subgroups, as such":      {shape: Shape{MinSubGroup: count(2), SubGroups: leaves}, want: Group{MinSubGroup: ptr.To[int32](2), SubGroups: leaves}, sub: "a"},
		"asked for":               {shape: Shape{MinMember: count(4)}, asked: "2", want: Group{MinMember: ptr.To[int32](2)}},
		"asked for, of subgroups": {shape: Shape{MinSubGroup: count(2), SubGroups: leaves}, asked: "2", want: Group{MinMember: ptr.To[int32](2)}},
		"all that come":           {shape: Shape{AtOnce: count(3)}, asked: "3", want: Group{MinMember: ptr.To[int32](3)}},
		"more than come":          {shape: Shape{AtOnce: count(3)}, asked: "4", want: Group{MinMember: ptr.To[int32](3)}, notes: []string{ReasonMinMemberTooHigh}},
		"none come":               {shape: Shape{AtOnce: count(0)}, asked: "4", want: Group{MinMember: ptr.To[int32](1)}, notes: []string{ReasonMinMemberTooHigh}},
		"of one pod":              {perPod: true, asked: "2", want: Group{MinMember: ptr.To[int32](1)}, notes: []string{ReasonMinMemberTooHigh}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.rules[2] = rule{kind: "Gang", membership: Membership{SubGroup: "a", PerPod: tc.perPod}, shape: tc.shape}
			w.under("Gang", "gang").Annotations[MinMemberAnnotation] = tc.asked
			group := w.describe(t)
			if diff := cmp.Diff(tc.want, Group{MinMember: group.MinMember, MinSubGroup: group.MinSubGroup, SubGroups: group.SubGroups}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if group.SubGroup != tc.sub || w.identify(t).SubGroup != tc.sub {
				t.Errorf("the pod is in %q, at its creation in %q, want %q", group.SubGroup, w.identify(t).SubGroup, tc.sub)
			}
			if diff := cmp.Diff(tc.notes, reasonsOf(group.Notes)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMinPods(t *testing.T) {
	tree := []SubGroup{
		{Name: "driver", MinSubGroup: count(1)}, {Name: "driver-0", Parent: "driver", MinMember: count(1)},
		{Name: "workers", MinSubGroup: count(2)}, {Name: "workers-0", Parent: "workers", MinMember: count(4)}, {Name: "workers-1", Parent: "workers", MinMember: count(4)}, {Name: "workers-2", Parent: "workers", MinMember: count(6)},
		{Name: "rest"},
	}
	for name, tc := range map[string]struct {
		group Group
		want  int64
	}{
		"nothing is said":       {Group{}, 1},
		"pods":                  {Group{MinMember: ptr.To[int32](7), SubGroups: tree}, 7},
		"all subgroups":         {Group{MinSubGroup: ptr.To[int32](3), SubGroups: tree}, 1 + 8 + 1},
		"the least of them":     {Group{MinSubGroup: ptr.To[int32](2), SubGroups: tree}, 1 + 1},
		"more than there are":   {Group{MinSubGroup: ptr.To[int32](9), SubGroups: tree}, 1 + 8 + 1},
		"those that come first": {Group{MinSubGroup: ptr.To[int32](1), FirstPods: count(8), SubGroups: tree}, 8},
		"subgroups without any": {Group{MinSubGroup: ptr.To[int32](1)}, 1},
	} {
		if got := tc.group.MinPods(); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func TestErrors(t *testing.T) {
	failing := errors.New("connection refused")
	tests := map[string]struct {
		set     func(*world)
		want    string
		invalid bool
		missing bool
	}{
		"a field of another type": {set: func(w *world) { w.fields = map[string]any{"replicas": "many"} }, want: `Gang gang: spec.replicas: Invalid value: "many"`, invalid: true},
		"too many pods":           {set: func(w *world) { w.rules[2] = rule{kind: "Gang", shape: Shape{MinMember: count(1 << 40)}} }, want: "Gang gang: spec: Invalid value: 1099511627776", invalid: true},
		"too many in a subgroup": {
			set: func(w *world) {
				w.rules[2] = rule{kind: "Gang", shape: Shape{SubGroups: []SubGroup{{Name: "a", MinMember: count(-1)}}}}
			},
			want: "Gang gang: spec: Invalid value: -1", invalid: true,
		},
		"a rule that fails": {set: func(w *world) { w.rules[2] = rule{kind: "Gang", err: failing} }, want: "rule Gang: connection refused"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.under("Gang", "gang")
			tc.set(w)
			group, err := w.tryDescribe()
			if err == nil || !strings.Contains(err.Error(), tc.want) || IsInvalid(err) != tc.invalid {
				t.Errorf("got %v and %v, want %q", group, err, tc.want)
			}
		})
	}
	w := newWorld()
	w.rules[0] = rule{kind: "Pod", shape: Shape{MinMember: count(-1)}}
	if _, err := w.tryDescribe(); !IsInvalid(err) || !strings.HasPrefix(err.Error(), "Pod pod: ") {
		t.Errorf("a pod alone: %v", err)
	}
}

// An owner that was deleted and made anew since the pod's owners were found is another.
func TestTheOwnerIsTheOneOfThePod(t *testing.T) {
	w := newWorld()
	owner := w.under("Gang", "gang")
	other := owner.DeepCopy()
	other.UID = "other"
	reader := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(other).Build()
	if _, err := w.grouper().Describe(t.Context(), w.pod, w.chain(), reader); !owners.IsMissing(err) {
		t.Errorf("got %v", err)
	}
	gone := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()
	if _, err := w.grouper().Describe(t.Context(), w.pod, w.chain(), gone); err == nil || !strings.Contains(err.Error(), "read Gang ns/gang") {
		t.Errorf("got %v", err)
	}
}

func TestIdentityTellsWhatWasFound(t *testing.T) {
	w := newWorld()
	w.under("Gang", "gang")
	w.notes = []owners.Note{{Reason: owners.ReasonForbidden, Message: "owner Flow flow may not be read"}}
	id := w.identify(t)
	want := Identity{
		Rule: "Gang", Namespace: "ns", Name: id.Name, PriorityClassName: "train",
		Owner: &metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Gang", Name: "gang", UID: "gang-uid"},
		Notes: []Note{{Reason: "OwnerForbidden", Message: "owner Flow flow may not be read"}},
	}
	if diff := cmp.Diff(want, id); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOwnerOfTheShape(t *testing.T) {
	w := newWorld()
	w.under("Gang", "gang")
	w.rules[2] = rule{kind: "Gang", shape: Shape{Owner: &metav1.OwnerReference{Kind: "PodGang", Name: "g"}}}
	if got := w.describe(t).Owner; got.Kind != "PodGang" {
		t.Errorf("got %v", got)
	}
}

// What stands in the owner's fields is known to Describe alone; Identify says when to ask.
func TestPriorityInOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		set   func(*world)
		want  string
		early string
		ask   bool
	}{
		"nothing else":          {func(*world) {}, "a", "train", true},
		"the owner's label":     {func(w *world) { w.owners[0].Labels[PriorityClassLabel] = "b" }, "b", "b", false},
		"a label that is lower": {func(w *world) { w.pod.Labels[PriorityClassLabel] = "b" }, "a", "b", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.under("Gang", "gang")
			w.rules[2] = rule{kind: "Gang", membership: Membership{PriorityClassName: "train", PriorityInOwner: true}, shape: Shape{OwnerPriorityClassName: "a"}}
			tc.set(w)
			id, group := w.identify(t), w.describe(t)
			if id.PriorityClassName != tc.early || id.PriorityInOwner != tc.ask || group.PriorityClassName != tc.want || group.PriorityInOwner {
				t.Errorf("at creation %q (%v), later %q (%v)", id.PriorityClassName, id.PriorityInOwner, group.PriorityClassName, group.PriorityInOwner)
			}
		})
	}
}
