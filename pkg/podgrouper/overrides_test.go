package podgrouper

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// places are where something can be asked for, the one that counts most first.
const (
	atOwner = iota
	atPassedOver
	atFurtherPassedOver
	atPod
	atPodSpec
	atConfig
	atConfigOfPassedOver
	places
)

// setting is something that can be asked for, at each of the places.
type setting struct {
	// at asks for a value, and says whether that can be done there.
	at func(w *world, place int, value string) bool
	// values are one for each place.
	values []string
	// wrong is a value that is passed over; empty when there is none.
	wrong string
	// got reads what counts.
	got func(*Group) string
	// byDefault is what counts when nothing is asked for.
	byDefault string
}

func label(key string, configured func(*KindDefaults, string)) func(*world, int, string) bool {
	return func(w *world, place int, value string) bool {
		switch place {
		case atOwner, atPassedOver, atFurtherPassedOver:
			w.owners[place].Labels[key] = value
		case atPod:
			w.pod.Labels[key] = value
		case atConfig, atConfigOfPassedOver:
			configure(w, place, func(d *KindDefaults) { configured(d, value) })
		default:
			return false
		}
		return true
	}
}

func configure(w *world, place int, set func(*KindDefaults)) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Gang"}
	if place == atConfigOfPassedOver {
		kind.Kind = "Flow"
	}
	defaults := w.options.Kinds[kind]
	set(&defaults)
	w.options.Kinds[kind] = defaults
}

func settingsToTry() map[string]setting {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	return map[string]setting{
		"queue": {
			at:     label(QueueLabel, func(d *KindDefaults, value string) { d.Queue = value }),
			values: names, wrong: "No_Queue",
			got: func(g *Group) string { return g.Queue },
		},
		"project": {
			at:     label(ProjectLabel, func(d *KindDefaults, value string) { d.Queue = value }),
			values: names, wrong: "No_Queue",
			got: func(g *Group) string { return g.Queue },
		},
		"priority class": {
			at: func(w *world, place int, value string) bool {
				if place == atPodSpec {
					w.pod.Spec.PriorityClassName = value
					return true
				}
				return label(PriorityClassLabel, func(d *KindDefaults, value string) { d.PriorityClassName = value })(w, place, value)
			},
			values: names, wrong: "unknown", byDefault: "train",
			got: func(g *Group) string { return g.PriorityClassName },
		},
		"preemptibility": {
			at: label(PreemptibilityLabel, func(d *KindDefaults, value string) { d.Preemptibility = value }),
			// Two values alone: neighbours differ.
			values: []string{"preemptible", "non-preemptible", "preemptible", "non-preemptible", "", "preemptible", "non-preemptible"}, wrong: "sometimes",
			got: func(g *Group) string { return g.Preemptibility },
		},
		"node pool": {
			at: func(w *world, place int, value string) bool {
				if place == atPodSpec {
					w.pod.Spec.NodeSelector = map[string]string{NodePoolLabel: value}
					return true
				}
				return label(NodePoolLabel, func(d *KindDefaults, value string) { d.NodePool = value })(w, place, value)
			},
			values: names,
			got:    func(g *Group) string { return g.NodePool },
		},
		"minimum": {
			at: func(w *world, place int, value string) bool {
				switch place {
				case atOwner, atPassedOver, atFurtherPassedOver:
					w.owners[place].Annotations[MinMemberAnnotation] = value
				case atPod:
					w.pod.Annotations[MinMemberAnnotation] = value
				case atConfig, atConfigOfPassedOver:
					count, err := strconv.ParseInt(value, 10, 32)
					if err != nil {
						return false
					}
					configure(w, place, func(d *KindDefaults) { d.MinMember = int32(count) })
				default:
					return false
				}
				return true
			},
			values: []string{"2", "3", "4", "5", "6", "7", "8"}, wrong: "0", byDefault: "1",
			got: func(g *Group) string { return fmt.Sprint(*g.MinMember) },
		},
	}
}

func worldOfSettings() *world {
	w := newWorld()
	w.options.PriorityClasses = clusterClasses{names: []string{"train", "a", "b", "c", "d", "e", "f", "g"}}
	w.under("Gang", "gang")
	w.under("Flow", "flow")
	w.under("Wrapper", "wrapper")
	return w
}

// For every setting, a place counts more than each that comes after it, and one that asks for
// what cannot be is passed over, with a note.
func TestOnePrecedenceForAll(t *testing.T) {
	for name, setting := range settingsToTry() {
		t.Run(name, func(t *testing.T) {
			if got := setting.got(worldOfSettings().describe(t)); got != setting.byDefault {
				t.Errorf("nothing is asked for: got %q, want %q", got, setting.byDefault)
			}
			for place := range places {
				w := worldOfSettings()
				if !setting.at(w, place, setting.values[place]) {
					continue
				}
				for lower := place + 1; lower < places; lower++ {
					setting.at(w, lower, setting.values[lower])
				}
				group := w.describe(t)
				if got := setting.got(group); got != setting.values[place] {
					t.Errorf("asked for from place %d down: got %q, want %q", place, got, setting.values[place])
				}
				if len(group.Notes) > 0 {
					t.Errorf("place %d: notes %v", place, group.Notes)
				}
				if setting.wrong == "" || place >= atConfig || place == atPodSpec && name != "priority class" {
					continue
				}
				setting.at(w, place, setting.wrong)
				group = w.describe(t)
				want := setting.byDefault
				for lower := place + 1; lower < places; lower++ {
					if setting.at(worldOfSettings(), lower, setting.values[lower]) {
						want = setting.values[lower]
						break
					}
				}
				if got := setting.got(group); got != want {
					t.Errorf("a mistake at place %d: got %q, want %q", place, got, want)
				}
				if len(group.Notes) != 1 || !strings.Contains(group.Notes[0].Message, setting.wrong) {
					t.Errorf("a mistake at place %d: notes %v", place, group.Notes)
				}
			}
		})
	}
}

// A class is the same at the pod's creation as later, wherever it is asked for.
func TestIdentifyKnowsTheClass(t *testing.T) {
	for place := range places {
		w := worldOfSettings()
		if !settingsToTry()["priority class"].at(w, place, "c") {
			continue
		}
		if got := w.identify(t).PriorityClassName; got != "c" {
			t.Errorf("place %d: got %q", place, got)
		}
	}
}

func TestQueueOfAProject(t *testing.T) {
	tests := map[string]struct {
		set  func(*world)
		want string
	}{
		"without a node pool":             {func(*world) {}, "team"},
		"in a node pool":                  {func(w *world) { w.pod.Labels[NodePoolLabel] = "h100" }, "team-h100"},
		"in one of the owner":             {func(w *world) { w.owners[0].Labels[NodePoolLabel] = "a100"; w.pod.Labels[NodePoolLabel] = "h100" }, "team-a100"},
		"in one of the node selector":     {func(w *world) { w.pod.Spec.NodeSelector = map[string]string{NodePoolLabel: "h100"} }, "team-h100"},
		"a queue beside it":               {func(w *world) { w.owners[0].Labels[QueueLabel] = "fast"; w.pod.Labels[NodePoolLabel] = "h100" }, "fast"},
		"a queue of what counts less":     {func(w *world) { w.pod.Labels[QueueLabel] = "fast" }, "team"},
		"a node pool that makes no queue": {func(w *world) { w.pod.Labels[NodePoolLabel] = "H_100" }, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.under("Gang", "gang").Labels[ProjectLabel] = "team"
			tc.set(w)
			if got := w.describe(t).Queue; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// KAI places no group without a queue; with another scheduler one would be a wish that it
// cannot follow.
func TestTheDefaultQueueIsOfKAI(t *testing.T) {
	for scheduler, want := range map[string]string{"kai-scheduler": "default-queue", "default-scheduler": "", "": ""} {
		w := newWorld()
		w.under("Gang", "gang")
		w.pod.Spec.SchedulerName = scheduler
		if got := w.describe(t).Queue; got != want {
			t.Errorf("scheduler %q: queue %q, want %q", scheduler, got, want)
		}
	}
}

func TestPriorityClassOfTheCluster(t *testing.T) {
	tests := map[string]struct {
		classes clusterClasses
		podSpec string
		want    string
		notes   []string
	}{
		"the rule's":                      {clusterClasses{names: []string{"train"}}, "", "train", nil},
		"the rule's does not exist":       {clusterClasses{}, "", "", nil},
		"the pod's":                       {clusterClasses{names: []string{"train", "gold"}}, "gold", "gold", nil},
		"the pod's does not exist":        {clusterClasses{names: []string{"train"}}, "gold", "train", []string{ReasonUnknownPriorityClass}},
		"the cluster's default, unasked":  {clusterClasses{names: []string{"train", "silver"}, globalDefault: "silver"}, "silver", "train", nil},
		"another than the cluster's":      {clusterClasses{names: []string{"train", "silver", "gold"}, globalDefault: "silver"}, "gold", "gold", nil},
		"the default, and the rule's not": {clusterClasses{names: []string{"silver"}, globalDefault: "silver"}, "silver", "", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.options.PriorityClasses, w.pod.Spec.PriorityClassName = tc.classes, tc.podSpec
			id := w.identify(t)
			if id.PriorityClassName != tc.want {
				t.Errorf("got %q, want %q", id.PriorityClassName, tc.want)
			}
			if diff := cmp.Diff(tc.notes, reasonsOf(id.Notes)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoPriorityClasses(t *testing.T) {
	w := newWorld()
	w.options.PriorityClasses = nil
	w.pod.Spec.PriorityClassName = "gold"
	if id := w.identify(t); id.PriorityClassName != "" || len(id.Notes) != 1 {
		t.Errorf("got %q with %v", id.PriorityClassName, id.Notes)
	}
}

func TestConfiguredWithoutAGroup(t *testing.T) {
	w := newWorld()
	w.under("Gang", "gang")
	w.options.Kinds[schema.GroupKind{Kind: "Gang"}] = KindDefaults{Queue: "any", Preemptibility: "preemptible", MarkUnschedulable: ptr.To(false), SchedulingBackoff: ptr.To[int32](1)}
	w.options.Kinds[schema.GroupKind{Group: "example.com", Kind: "Gang"}] = KindDefaults{Queue: "exact"}
	group := w.describe(t)
	if group.Queue != "exact" || group.Preemptibility != "preemptible" || ptr.Deref(group.MarkUnschedulable, true) || ptr.Deref(group.SchedulingBackoff, 0) != 1 {
		t.Errorf("got %+v", group)
	}
}

func TestPodsHaveConfiguredDefaults(t *testing.T) {
	w := newWorld()
	w.options.Kinds[podKind] = KindDefaults{Queue: "shells"}
	if got := w.describe(t).Queue; got != "shells" {
		t.Errorf("got %q", got)
	}
}

func TestTopology(t *testing.T) {
	all := map[string]string{TopologyAnnotation: "dc", RequiredPlacementAnnotation: "zone", PreferredPlacementAnnotation: "example.com/rack"}
	tests := map[string]struct {
		owner, above, pod map[string]string
		alone             bool
		want              *Topology
		notes             []string
	}{
		"none":               {},
		"of the owner":       {owner: all, want: &Topology{Name: "dc", Required: "zone", Preferred: "example.com/rack"}},
		"of what is above":   {above: all, want: &Topology{Name: "dc", Required: "zone", Preferred: "example.com/rack"}},
		"each by itself":     {owner: map[string]string{RequiredPlacementAnnotation: "rack"}, above: all, want: &Topology{Name: "dc", Required: "rack", Preferred: "example.com/rack"}},
		"a pod is a part":    {pod: all},
		"a pod is the whole": {pod: all, alone: true, want: &Topology{Name: "dc", Required: "zone", Preferred: "example.com/rack"}},
		"without a level":    {owner: map[string]string{TopologyAnnotation: "dc"}},
		"without a name":     {owner: map[string]string{RequiredPlacementAnnotation: "zone"}, notes: []string{ReasonIncompleteTopology}},
		"of no such name":    {owner: map[string]string{TopologyAnnotation: "A B", RequiredPlacementAnnotation: "zone"}, notes: []string{ReasonInvalidOverride}},
		"of no such level":   {owner: map[string]string{TopologyAnnotation: "dc", PreferredPlacementAnnotation: "a/b/c"}, notes: []string{ReasonInvalidOverride}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.pod.Annotations = tc.pod
			if !tc.alone {
				w.under("Gang", "gang").Annotations = tc.owner
				w.under("Flow", "flow").Annotations = tc.above
			}
			group := w.describe(t)
			if diff := cmp.Diff(tc.want, group.Topology); diff != "" {
				t.Errorf("topology (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.notes, reasonsOf(group.Notes)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetadataOfTheWorkload(t *testing.T) {
	w := newWorld()
	owner, above := w.under("Gang", "gang"), w.under("Flow", "flow")
	owner.Labels, above.Labels = map[string]string{"app": "gang"}, map[string]string{"app": "flow", "team": "a"}
	owner.Annotations, above.Annotations = map[string]string{"note": "gang", corev1.LastAppliedConfigAnnotation: "{}"}, map[string]string{"note": "flow", "link": "x"}
	w.pod.Labels["pod"] = "yes"
	group := w.describe(t)
	if diff := cmp.Diff(map[string]string{"app": "gang", "team": "a"}, group.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "gang", "link": "x"}, group.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	w.owners = nil
	w.pod.Annotations = map[string]string{"note": "pod", GroupedByAnnotation: GroupedByValue, PodGroupAnnotation: "pg", KAISkipAnnotation: "true"}
	group = w.describe(t)
	if group.Labels["pod"] != "yes" {
		t.Errorf("labels of a pod alone: %v", group.Labels)
	}
	if diff := cmp.Diff(map[string]string{"note": "pod"}, group.Annotations); diff != "" {
		t.Errorf("annotations of a pod alone (-want +got):\n%s", diff)
	}
}
