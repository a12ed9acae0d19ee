package rules

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// topologyName is Grove's annotation of PodGangs for the topology of their levels.
const topologyName = "grove.io/topology-name"

// PodCliqueSet groups pods as their PodGang says.
type PodCliqueSet struct{}

// Name of the rule.
func (PodCliqueSet) Name() string { return "PodCliqueSet" }

// Kinds that it groups the pods of.
func (PodCliqueSet) Kinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: "grove.io", Kind: "PodCliqueSet"}}
}

// Identify says in which gang a pod is, and in which attempt: a gang that is made anew is
// another group.
func (PodCliqueSet) Identify(in podgrouper.Input) (podgrouper.Membership, error) {
	gang := in.Pod.Labels[labels.PodGang]
	if gang == "" {
		return podgrouper.Membership{}, fmt.Errorf("pod %s of PodCliqueSet %s has no label %s", in.Pod.Name, in.Owner.Name, labels.PodGang)
	}
	attempt, _ := labels.ParseIndex(in.Pod.Labels[labels.RestartAttempt])
	return podgrouper.Membership{
		Base: gang, UID: string(in.Owner.UID) + "/" + gang, SubKey: labels.Index(attempt),
		SubGroup: podgrouper.SubGroupName(in.Pod.Labels[labels.PodClique]),
		// The set's own class is in its pods.
	}, nil
}

// Describe reads the PodGang.
func (PodCliqueSet) Describe(ctx context.Context, in podgrouper.Input, _ fields.Fields, reader client.Reader) (podgrouper.Shape, error) {
	gang := &schedulerv1alpha1.PodGang{}
	name := types.NamespacedName{Namespace: in.Pod.Namespace, Name: in.Pod.Labels[labels.PodGang]}
	if err := reader.Get(ctx, name, gang); err != nil {
		return podgrouper.Shape{}, fmt.Errorf("read PodGang %s: %w", name, err)
	}
	shape := podgrouper.Shape{
		MinMember: ptr.To[int64](0), OwnerPriorityClassName: gang.Spec.PriorityClassName,
		Owner: &metav1.OwnerReference{APIVersion: schedulerv1alpha1.SchemeGroupVersion.String(), Kind: "PodGang", Name: gang.Name, UID: gang.UID},
	}
	topologies := topologyReader{name: gang.Annotations[topologyName], notes: &shape.Notes}
	shape.Topology = topologies.read("PodGang "+gang.Name, gang.Spec.TopologyConstraint)
	parents := map[string]string{}
	for _, config := range gang.Spec.TopologyConstraintGroupConfigs {
		parent := podgrouper.SubGroupName(config.Name)
		shape.SubGroups = append(shape.SubGroups, podgrouper.SubGroup{
			Name: parent, MinSubGroup: ptr.To(int64(len(config.PodGroupNames))), Topology: topologies.read("group config "+config.Name, config.TopologyConstraint),
		})
		for _, member := range config.PodGroupNames {
			parents[member] = parent
		}
	}
	for _, group := range gang.Spec.PodGroups {
		if i := slices.IndexFunc(group.PodReferences, func(ref schedulerv1alpha1.NamespacedName) bool {
			return ref.Namespace != "" && ref.Namespace != gang.Namespace
		}); i >= 0 {
			return podgrouper.Shape{}, &podgrouper.InvalidOwnerError{Kind: "PodGang", Name: gang.Name, Err: fmt.Errorf("pod %s of group %s is in namespace %s; a gang is in one namespace", group.PodReferences[i].Name, group.Name, group.PodReferences[i].Namespace)}
		}
		*shape.MinMember += int64(group.MinReplicas)
		shape.SubGroups = append(shape.SubGroups, podgrouper.SubGroup{
			Name: podgrouper.SubGroupName(group.Name), Parent: parents[group.Name], MinMember: ptr.To(int64(group.MinReplicas)),
			Topology: topologies.read("group "+group.Name, group.TopologyConstraint),
		})
	}
	shape.AtOnce = shape.MinMember
	return shape, nil
}

// topologyReader reads constraints whose levels are those of one topology.
type topologyReader struct {
	name  string
	notes *[]podgrouper.Note
}

func (r topologyReader) read(what string, constraint *schedulerv1alpha1.TopologyConstraint) *podgrouper.Topology {
	if constraint == nil || constraint.PackConstraint == nil {
		return nil
	}
	required, preferred := ptr.Deref(constraint.PackConstraint.Required, ""), ptr.Deref(constraint.PackConstraint.Preferred, "")
	if r.name == "" && required+preferred != "" {
		*r.notes = append(*r.notes, podgrouper.Note{
			Reason:  podgrouper.ReasonIncompleteTopology,
			Message: fmt.Sprintf("%s asks for a placement, but annotation %s of the PodGang does not name the topology", what, topologyName),
		})
		return nil
	}
	place, more := podgrouper.ReadTopology(r.name, required, preferred)
	*r.notes = append(*r.notes, more...)
	return place
}
