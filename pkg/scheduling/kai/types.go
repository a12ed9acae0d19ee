package kai

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// Resource is the name of KAI's groups in discovery.
const Resource = "podgroups"

// GroupVersion is that of KAI's groups.
var GroupVersion = schema.GroupVersion{Group: "scheduling.run.ai", Version: "v2alpha2"}

// AddToScheme registers KAI's groups and topologies.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &PodGroup{}, &PodGroupList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	scheme.AddKnownTypes(TopologyGroupVersion, &Topology{}, &TopologyList{})
	metav1.AddToGroupVersion(scheme, TopologyGroupVersion)
	return nil
}

// PodGroup is what this back end reads and writes of KAI's group object. It is patched and
// never updated: the fields that are not named here stay as they are.
type PodGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PodGroupSpec   `json:"spec,omitempty"`
	Status PodGroupStatus `json:"status,omitempty"`
}

// PodGroupList is a list of KAI's groups.
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodGroup `json:"items"`
}

// PodGroupSpec is in the form that KAI takes from v0.12 on: a minimum of pods for the whole
// and for each leaf. The minimum of subgroups that later versions have is not needed, as all
// subgroups of a gang are.
type PodGroupSpec struct {
	MinMember          int32               `json:"minMember,omitempty"`
	Queue              string              `json:"queue,omitempty"`
	PriorityClassName  string              `json:"priorityClassName,omitempty"`
	Preemptibility     string              `json:"preemptibility,omitempty"`
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
	SubGroups          []SubGroup          `json:"subGroups,omitempty"`
}

// SubGroup is a part of a group. One without a minimum is the parent of others.
type SubGroup struct {
	Name               string              `json:"name"`
	MinMember          int32               `json:"minMember,omitempty"`
	Parent             *string             `json:"parent,omitempty"`
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
}

// TopologyConstraint places pods by the levels of a named topology.
type TopologyConstraint struct {
	Topology               string `json:"topology,omitempty"`
	RequiredTopologyLevel  string `json:"requiredTopologyLevel,omitempty"`
	PreferredTopologyLevel string `json:"preferredTopologyLevel,omitempty"`
}

// PodGroupStatus is what KAI says about a group. Its conditions are those of our PodGroups,
// which are made after them.
type PodGroupStatus struct {
	SchedulingConditions []schedulerv1alpha1.SchedulingCondition `json:"schedulingConditions,omitempty"`
}

// DeepCopy returns a copy.
func (g *PodGroup) DeepCopy() *PodGroup {
	out := &PodGroup{TypeMeta: g.TypeMeta, Spec: g.Spec}
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.TopologyConstraint = copyOf(g.Spec.TopologyConstraint)
	out.Spec.SubGroups = slices.Clone(g.Spec.SubGroups)
	for i := range out.Spec.SubGroups {
		subGroup := &out.Spec.SubGroups[i]
		subGroup.Parent, subGroup.TopologyConstraint = copyOf(subGroup.Parent), copyOf(subGroup.TopologyConstraint)
	}
	for i := range g.Status.SchedulingConditions {
		out.Status.SchedulingConditions = append(out.Status.SchedulingConditions, *g.Status.SchedulingConditions[i].DeepCopy())
	}
	return out
}

// DeepCopyObject returns a copy.
func (g *PodGroup) DeepCopyObject() runtime.Object { return g.DeepCopy() }

// DeepCopyObject returns a copy.
func (l *PodGroupList) DeepCopyObject() runtime.Object {
	out := &PodGroupList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}

func copyOf[T any](value *T) *T {
	if value == nil {
		return nil
	}
	out := *value
	return &out
}
