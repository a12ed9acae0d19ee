package kai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// newGang is a gang of 3 pods of one clique and 1 of another, in a queue.
func newGang(change func(*schedulerv1alpha1.PodGang)) *schedulerv1alpha1.PodGang {
	podGang := &schedulerv1alpha1.PodGang{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "llm-0", UID: "gang-uid",
			Labels: map[string]string{
				labels.ManagedBy: labels.ManagedByValue, labels.PartOf: "llm", labels.RestartAttempt: "2",
				"kai.scheduler/queue": "team-a", "kai.scheduler/preemptibility": "preemptible", "kai.scheduler/node-pool": "h100",
			},
		},
		Spec: schedulerv1alpha1.PodGangSpec{
			PriorityClassName: "high",
			PodGroups: []schedulerv1alpha1.PodGangPodGroup{
				{Name: "llm-0-leader", MinReplicas: 1, PodReferences: []schedulerv1alpha1.NamespacedName{{Namespace: "ns", Name: "leader"}}},
				{Name: "llm-0-worker", MinReplicas: 3, PodReferences: []schedulerv1alpha1.NamespacedName{{Namespace: "ns", Name: "worker"}}},
				{Name: "llm-0-idle"},
			},
		},
	}
	if change != nil {
		change(podGang)
	}
	return podGang
}

func allNeeded() map[string]int32 {
	return map[string]int32{"llm-0-leader": 1, "llm-0-worker": 3}
}

func TestDesiredGroup(t *testing.T) {
	podGang := newGang(nil)
	before := podGang.DeepCopy()
	expect(t, "group", &PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns",
			Name:      naming.SchedulingGroup("llm-0", "gang-uid", 2),
			Labels: map[string]string{
				labels.ManagedBy: labels.ManagedByValue, labels.PartOf: "llm", labels.RestartAttempt: "2", labels.PodGang: "llm-0",
				"kai.scheduler/queue": "team-a", "kai.scheduler/preemptibility": "preemptible", "kai.scheduler/node-pool": "h100",
			},
			Annotations: map[string]string{"scheduler.grove.io/said-by-gang": "priorityClassName,preemptibility"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "scheduler.grove.io/v1alpha1", Kind: "PodGang", Name: "llm-0", UID: "gang-uid",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: PodGroupSpec{
			MinMember: 4, Queue: "team-a", PriorityClassName: "high", Preemptibility: "preemptible",
			// The clique of no pods is left out.
			SubGroups: []SubGroup{{Name: "llm-0-leader", MinMember: 1}, {Name: "llm-0-worker", MinMember: 3}},
		},
	}, desiredGroup(podGang, allNeeded()))
	expect(t, "the gang that was read", before, podGang)

	bare := desiredGroup(newGang(func(g *schedulerv1alpha1.PodGang) { g.Labels = nil }), allNeeded())
	expect(t, "labels of the group of a gang without any", map[string]string{labels.PodGang: "llm-0", "kai.scheduler/queue": "default-queue"}, bare.Labels)
}

func TestQueueAndPreemptibility(t *testing.T) {
	for name, tc := range map[string]struct {
		labels                map[string]string
		queue, preemptibility string
	}{
		"nothing is said":          {nil, "default-queue", ""},
		"a queue":                  {map[string]string{"kai.scheduler/queue": "a"}, "a", ""},
		"a project":                {map[string]string{"project": "p"}, "p", ""},
		"a project in a node pool": {map[string]string{"project": "p", "kai.scheduler/node-pool": "h100"}, "p-h100", ""},
		"the queue counts more":    {map[string]string{"project": "p", "kai.scheduler/queue": "a"}, "a", ""},
		"a node pool alone":        {map[string]string{"kai.scheduler/node-pool": "h100"}, "default-queue", ""},
		"not preemptible":          {map[string]string{"kai.scheduler/preemptibility": "non-preemptible"}, "default-queue", "non-preemptible"},
		"a word that KAI would take for a mistake": {map[string]string{"kai.scheduler/preemptibility": "maybe"}, "default-queue", ""},
	} {
		t.Run(name, func(t *testing.T) {
			group := desiredGroup(newGang(func(g *schedulerv1alpha1.PodGang) { g.Labels = tc.labels }), allNeeded())
			expect(t, "queue", tc.queue, group.Spec.Queue)
			expect(t, "label of the queue", tc.queue, group.Labels["kai.scheduler/queue"])
			expect(t, "preemptibility", tc.preemptibility, group.Spec.Preemptibility)
		})
	}
}

func TestSubGroupsHaveNamesThatKAITakes(t *testing.T) {
	long := strings.Repeat("a", 40) + "." + strings.Repeat("b", 40)
	got := subGroupsOf(&schedulerv1alpha1.PodGang{Spec: schedulerv1alpha1.PodGangSpec{PodGroups: []schedulerv1alpha1.PodGangPodGroup{{Name: long}}}}, map[string]int32{long: 1})
	if name := got[0].Name; len(name) > 63 || strings.Contains(name, ".") {
		t.Errorf("the subgroup is called %q", name)
	}
}

func pack(required, preferred string) *schedulerv1alpha1.TopologyConstraint {
	out := &schedulerv1alpha1.TopologyConstraint{PackConstraint: &schedulerv1alpha1.TopologyPackConstraint{}}
	if required != "" {
		out.PackConstraint.Required = &required
	}
	if preferred != "" {
		out.PackConstraint.Preferred = &preferred
	}
	return out
}

func TestTopology(t *testing.T) {
	constrained := func(g *schedulerv1alpha1.PodGang) {
		g.Spec.TopologyConstraint = pack("example.com/block", "")
		g.Spec.PodGroups[0].TopologyConstraint = pack("", "example.com/host")
		g.Spec.TopologyConstraintGroupConfigs = []schedulerv1alpha1.TopologyConstraintGroupConfig{
			{Name: "llm-0-decode", PodGroupNames: []string{"llm-0-worker", "llm-0-idle"}, TopologyConstraint: pack("example.com/rack", "example.com/host")},
			{Name: "free", PodGroupNames: []string{"llm-0-leader"}},
			{Name: "llm-0-none", PodGroupNames: []string{"llm-0-idle"}, TopologyConstraint: pack("example.com/rack", "")},
		}
	}
	annotated := func(annotations map[string]string, changes ...func(*schedulerv1alpha1.PodGang)) *schedulerv1alpha1.PodGang {
		return newGang(func(g *schedulerv1alpha1.PodGang) {
			g.Annotations = annotations
			for _, change := range changes {
				change(g)
			}
		})
	}
	leaves := []SubGroup{{Name: "llm-0-leader", MinMember: 1}, {Name: "llm-0-worker", MinMember: 3}}
	tree := []SubGroup{
		// A parent has no minimum: all below it are needed.
		{Name: "llm-0-decode", TopologyConstraint: &TopologyConstraint{Topology: "cluster", RequiredTopologyLevel: "example.com/rack", PreferredTopologyLevel: "example.com/host"}},
		{Name: "llm-0-leader", MinMember: 1, TopologyConstraint: &TopologyConstraint{Topology: "cluster", PreferredTopologyLevel: "example.com/host"}},
		{Name: "llm-0-worker", MinMember: 3, Parent: ptr.To("llm-0-decode")},
	}
	whole := &TopologyConstraint{Topology: "cluster", RequiredTopologyLevel: "example.com/block"}
	for name, tc := range map[string]struct {
		podGang *schedulerv1alpha1.PodGang
		whole   *TopologyConstraint
		parts   []SubGroup
	}{
		"nothing is said":                        {newGang(nil), nil, leaves},
		"the gang names Grove's topology":        {annotated(map[string]string{"grove.io/topology-name": "cluster"}, constrained), whole, tree},
		"the gang names KAI's topology":          {annotated(map[string]string{"kai.scheduler/topology": "cluster"}, constrained), whole, tree},
		"levels of a topology that is not named": {annotated(nil, constrained), nil, leaves},
		"a topology that cannot be":              {annotated(map[string]string{"kai.scheduler/topology": "No_Name"}, constrained), nil, leaves},
		"KAI's annotations":                      {annotated(map[string]string{"kai.scheduler/topology": "cluster", "kai.scheduler/topology-required-placement": "example.com/block"}), whole, leaves},
		"KAI's annotations without the topology": {annotated(map[string]string{"kai.scheduler/topology-required-placement": "example.com/block"}), nil, leaves},
		"the constraint counts more":             {annotated(map[string]string{"kai.scheduler/topology": "cluster", "kai.scheduler/topology-required-placement": "other"}, constrained), whole, tree},
		"a topology of which nothing is asked":   {annotated(map[string]string{"kai.scheduler/topology": "cluster"}), nil, leaves},
	} {
		t.Run(name, func(t *testing.T) {
			group := desiredGroup(tc.podGang, allNeeded())
			expect(t, "the whole", tc.whole, group.Spec.TopologyConstraint)
			expect(t, "subgroups", tc.parts, group.Spec.SubGroups)
			expect(t, "minimum", int32(4), group.Spec.MinMember)
		})
	}
}

// Some versions of KAI know groups by name alone.
func TestGroupNameIsNewWithEachGangObjectAndAttempt(t *testing.T) {
	base := groupName(newGang(nil))
	for what, podGang := range map[string]*schedulerv1alpha1.PodGang{
		"object":  newGang(func(g *schedulerv1alpha1.PodGang) { g.UID = "other" }),
		"attempt": newGang(func(g *schedulerv1alpha1.PodGang) { g.Labels[labels.RestartAttempt] = "3" }),
		"name":    newGang(func(g *schedulerv1alpha1.PodGang) { g.Name = "llm-1" }),
	} {
		if groupName(podGang) == base {
			t.Errorf("a gang with another %s has the same group, %s", what, base)
		}
	}
}

func TestACopyIsDeep(t *testing.T) {
	full := func() *PodGroup {
		group := desiredGroup(newGang(nil), allNeeded())
		group.Spec.TopologyConstraint = &TopologyConstraint{Topology: "t"}
		group.Spec.SubGroups[0].Parent = ptr.To("p")
		group.Spec.SubGroups[0].TopologyConstraint = &TopologyConstraint{Topology: "t"}
		group.Status.SchedulingConditions = []schedulerv1alpha1.SchedulingCondition{{Reasons: explanations{{Reason: "R"}}}}
		return group
	}
	list := &PodGroupList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []PodGroup{*full()}}
	made, ok := list.DeepCopyObject().(*PodGroupList)
	if !ok {
		t.Fatal("a copy of a list is no list")
	}
	expect(t, "copy", list, made)
	group := &made.Items[0]
	group.Labels["x"], group.Spec.TopologyConstraint.Topology, *group.Spec.SubGroups[0].Parent = "x", "x", "x"
	group.Spec.SubGroups[0].TopologyConstraint.Topology, group.Spec.SubGroups[1].Name = "x", "x"
	group.Status.SchedulingConditions[0].Reasons[0].Reason = "x"
	expect(t, "the original", *full(), list.Items[0])

	topologies := &TopologyList{Items: []Topology{{ObjectMeta: metav1.ObjectMeta{Name: "t", Labels: map[string]string{"a": "b"}}, Spec: TopologySpec{Levels: []TopologyLevel{{NodeLabel: "zone"}}}}}}
	same, ok := topologies.DeepCopyObject().(*TopologyList)
	if !ok {
		t.Fatal("a copy of a list is no list")
	}
	expect(t, "copy", topologies, same)
	same.Items[0].Labels["a"], same.Items[0].Spec.Levels[0].NodeLabel = "x", "x"
	expect(t, "keys of the original", []string{"zone"}, topologies.Items[0].Keys())
	expect(t, "label of the original", "b", topologies.Items[0].Labels["a"])
}

// A clique may have the name of a copy of a scaling group; subgroups have one name each.
func TestTheSubgroupOfACopyHasANameOfItsOwn(t *testing.T) {
	podGang := newGang(func(g *schedulerv1alpha1.PodGang) {
		g.Annotations = map[string]string{"grove.io/topology-name": "cluster"}
		g.Spec.TopologyConstraintGroupConfigs = []schedulerv1alpha1.TopologyConstraintGroupConfig{
			{Name: "llm-0-leader", PodGroupNames: []string{"llm-0-worker"}, TopologyConstraint: pack("example.com/rack", "")},
		}
	})
	parts := desiredGroup(podGang, allNeeded()).Spec.SubGroups
	if len(parts) != 3 || parts[0].Name == "llm-0-leader" || parts[1].Name != "llm-0-leader" || ptr.Deref(parts[2].Parent, "") != parts[0].Name {
		t.Errorf("subgroups are %+v", parts)
	}
}
