package podgrouper

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxSubGroups bounds the subgroups of a group, as its API does.
const MaxSubGroups = 10000

// Identity is which group a pod is in.
type Identity struct {
	// Exempt is why the pod is in none; empty when it is in one.
	Exempt Exemption
	// Rule that decided.
	Rule string
	// Namespace of the group, which is the pod's.
	Namespace string
	// Name of the group. It is the same for all its pods, and never used again. Empty for a
	// group per pod while the pod has no UID: then it is free to choose.
	Name string
	// PerPod says that the pod is a group of its own.
	PerPod bool
	// SubGroup of the pod in the group; empty when there is none.
	SubGroup string
	// PriorityClassName that the group and its pods should have; empty for none.
	PriorityClassName string
	// PriorityInOwner says that Describe may know a class where this has none, or the
	// default one.
	PriorityInOwner bool
	// Owner of the group; nil for a group per pod while the pod has no UID.
	Owner *metav1.OwnerReference
	// Notes for people.
	Notes []Note
}

// Needed says whether the pod needs a group.
func (i Identity) Needed() bool {
	return i.Exempt == ""
}

// Group is what a group wants, in no scheduler's words.
type Group struct {
	Identity
	// MinMember is how many pods have to be scheduled together.
	MinMember *int32
	// MinSubGroup is how many of the top subgroups have to be, in place of MinMember.
	MinSubGroup *int32
	// FirstPods is how many pods those subgroups have that MinSubGroup counts, where it is
	// known which come first; nil when any do.
	FirstPods *int64 `json:",omitempty"`
	// FirstPast says that those have had their turn: pods of the others wait for none.
	FirstPast bool `json:"-"`
	// SubGroups of the group, parents before their children.
	SubGroups []SubGroup
	// Queue of the group.
	Queue string
	// NodePool of the group.
	NodePool string
	// Preemptibility of the group; empty lets the priority decide.
	Preemptibility string
	// Topology that the whole group is placed by.
	Topology *Topology
	// MarkUnschedulable says whether pods are marked after failed attempts; nil leaves it
	// to the API.
	MarkUnschedulable *bool
	// SchedulingBackoff is 1, or -1 for none; nil leaves it to the API.
	SchedulingBackoff *int32
	// Labels and Annotations of the workload, for the group.
	Labels, Annotations map[string]string
}

// SubGroup is a part of a group.
type SubGroup struct {
	// Name of the subgroup, a DNS label.
	Name string
	// Parent is the subgroup above; empty at the top.
	Parent string
	// MinMember is how many pods of a leaf have to be scheduled together.
	MinMember *int64
	// MinSubGroup is how many children of an inner subgroup have to be.
	MinSubGroup *int64
	// Topology that the subgroup is placed by.
	Topology *Topology
}

// Topology places pods by the levels of a named topology.
type Topology struct {
	Name, Required, Preferred string
}

// ReadTopology reads a placement that people ask for. It is nil without a level, and with a
// note when what they ask for cannot be followed.
func ReadTopology(name, required, preferred string) (*Topology, []Note) {
	if required == "" && preferred == "" {
		return nil, nil
	}
	passedOver := func(reason, why string) (*Topology, []Note) {
		return nil, []Note{{Reason: reason, Message: fmt.Sprintf("placement by level %q of topology %q is passed over: %s", cmp.Or(required, preferred), name, why)}}
	}
	if name == "" {
		return passedOver(ReasonIncompleteTopology, "annotation "+TopologyAnnotation+" does not name the topology")
	}
	if msg := subdomain(name); msg != "" {
		return passedOver(ReasonInvalidOverride, msg)
	}
	for _, level := range []string{required, preferred} {
		if msgs := validation.IsQualifiedName(level); level != "" && len(msgs) > 0 {
			return passedOver(ReasonInvalidOverride, msgs[0])
		}
	}
	return &Topology{Name: name, Required: required, Preferred: preferred}, nil
}

// MinPods is the least number of pods with which the group is satisfied, for schedulers
// that count pods alone.
func (g *Group) MinPods() int64 {
	switch {
	case g.MinSubGroup == nil && g.MinMember == nil:
		return 1
	case g.MinSubGroup == nil:
		return int64(*g.MinMember)
	case g.FirstPods != nil:
		return max(1, *g.FirstPods)
	}
	children := map[string][]*SubGroup{}
	for i := range g.SubGroups {
		children[g.SubGroups[i].Parent] = append(children[g.SubGroups[i].Parent], &g.SubGroups[i])
	}
	return max(1, leastPods(children, "", int64(*g.MinSubGroup)))
}

// leastPods adds up the smallest of the subgroups below a parent.
func leastPods(children map[string][]*SubGroup, parent string, count int64) int64 {
	var least []int64
	for _, child := range children[parent] {
		switch {
		case child.MinSubGroup != nil:
			least = append(least, leastPods(children, child.Name, *child.MinSubGroup))
		case child.MinMember != nil:
			least = append(least, *child.MinMember)
		default:
			least = append(least, 1)
		}
	}
	slices.Sort(least)
	var sum int64
	for _, pods := range least[:min(int(count), len(least))] {
		sum += pods
	}
	return sum
}
