package rules

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

const (
	rayGroup         = "ray.io/group"
	rayPriorityClass = "ray.io/priority-class-name"
	rayHead          = "headgroup"
	rayNodeType      = "ray.io/node-type"
	rayCleanUp       = "redis-cleanup"
)

// RayCluster groups the head and the workers of a Ray cluster, with a subgroup for each
// group of workers, of which as many are needed as there always are.
type RayCluster struct{}

// Name of the rule.
func (RayCluster) Name() string { return "RayCluster" }

// Kinds that it groups the pods of.
func (RayCluster) Kinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: "ray.io", Kind: "RayCluster"}}
}

// isCleanUp says that a pod of a cluster empties its Redis, after the head and the workers have
// gone: it must wait for none of them.
func isCleanUp(pod *corev1.Pod) bool { return pod.Labels[rayNodeType] == rayCleanUp }

// Identify says in which group of the cluster a pod is, by the label that KubeRay puts on it.
func (RayCluster) Identify(in podgrouper.Input) (podgrouper.Membership, error) {
	membership := podgrouper.Membership{PriorityClassName: podgrouper.TrainPriorityClass, OwnerPriorityClassName: in.Owner.Labels[rayPriorityClass]}
	if isCleanUp(in.Pod) {
		membership.PerPod = true
		return membership, nil
	}
	if group := in.Pod.Labels[rayGroup]; group != "" {
		membership.SubGroup = podgrouper.SubGroupName(group)
	} else {
		membership.Notes = append(membership.Notes, missingLabel(rayGroup, "its subgroup"))
	}
	return membership, nil
}

// Describe counts the head and the workers.
func (RayCluster) Describe(_ context.Context, in podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	if isCleanUp(in.Pod) {
		return podgrouper.Shape{MinMember: ptr.To[int64](1)}, nil
	}
	autoscaled := owner.True("spec", "enableInTreeAutoscaling")
	needed, atOnce := int64(1), int64(1)
	var shape podgrouper.Shape
	shape.SubGroups = []podgrouper.SubGroup{{
		Name: rayHead, MinMember: ptr.To[int64](1),
		Topology: placement(owner.At("spec", "headGroupSpec", "template").Strings("metadata", "annotations"), &shape.Notes),
	}}
	for _, group := range owner.List("spec", "workerGroupSpecs") {
		if group.True("suspend") {
			continue
		}
		least, desired := rayReplicas(group, autoscaled)
		hosts := or(group.Count("numOfHosts"), 1)
		needed += least * hosts
		atOnce += desired * hosts
		shape.SubGroups = append(shape.SubGroups, podgrouper.SubGroup{
			Name: podgrouper.SubGroupName(group.String("groupName")), MinMember: ptr.To(least * hosts),
			Topology: placement(group.At("template").Strings("metadata", "annotations"), &shape.Notes),
		})
	}
	shape.MinMember, shape.AtOnce = &needed, &atOnce
	return shape, nil
}

// rayReplicas is how many replicas of a group there always are, and how many there are now.
// KubeRay takes replicas that are out of bounds as the bound. Where nothing scales, a
// minimum that was left at its default says nothing.
func rayReplicas(group fields.Fields, autoscaled bool) (least, desired int64) {
	least = or(group.Count("minReplicas"), 0)
	desired = or(group.Count("replicas"), 0)
	desired = max(least, min(desired, or(group.Count("maxReplicas"), desired)))
	if least == 0 && !autoscaled {
		least = desired
	}
	return least, desired
}
