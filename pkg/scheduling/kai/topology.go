package kai

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TopologyResource is the name of KAI's topologies in discovery.
const TopologyResource = "topologies"

// TopologyGroupVersion is that of KAI's topologies.
var TopologyGroupVersion = schema.GroupVersion{Group: "kai.scheduler", Version: "v1alpha1"}

// Topology names the levels of a cluster's topology, from broad to narrow, by the node labels
// that mark them. It is in no namespace, and its levels cannot be changed.
type Topology struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TopologySpec `json:"spec"`
}

// TopologyList is a list of topologies.
type TopologyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Topology `json:"items"`
}

// TopologySpec is a topology.
type TopologySpec struct {
	Levels []TopologyLevel `json:"levels"`
}

// TopologyLevel is one level of a topology.
type TopologyLevel struct {
	NodeLabel string `json:"nodeLabel"`
}

// Keys are the node labels of a topology, from broad to narrow.
func (t *Topology) Keys() []string {
	keys := make([]string, 0, len(t.Spec.Levels))
	for _, level := range t.Spec.Levels {
		keys = append(keys, level.NodeLabel)
	}
	return keys
}

// DeepCopy returns a copy.
func (t *Topology) DeepCopy() *Topology {
	out := &Topology{TypeMeta: t.TypeMeta, Spec: TopologySpec{Levels: slices.Clone(t.Spec.Levels)}}
	t.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject returns a copy.
func (t *Topology) DeepCopyObject() runtime.Object { return t.DeepCopy() }

// DeepCopyObject returns a copy.
func (l *TopologyList) DeepCopyObject() runtime.Object {
	out := &TopologyList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}
