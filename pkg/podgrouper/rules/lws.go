package rules

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// Labels and annotations that the LeaderWorkerSet controller and its webhook put on pods.
const (
	lwsGroupIndex   = "leaderworkerset.sigs.k8s.io/group-index"
	lwsWorkerIndex  = "leaderworkerset.sigs.k8s.io/worker-index"
	lwsSize         = "leaderworkerset.sigs.k8s.io/size"
	lwsSubGroupSize = "leaderworkerset.sigs.k8s.io/subgroup-size"
	lwsPolicyType   = "leaderworkerset.sigs.k8s.io/subgroup-policy-type"

	lwsLeader  = "leader"
	lwsWorkers = "workers"
)

// LeaderWorkerSet groups the pods of each replica: a leader and its workers, or the
// subgroups that the set has.
type LeaderWorkerSet struct{}

// Name of the rule.
func (LeaderWorkerSet) Name() string { return "LeaderWorkerSet" }

// Kinds that it groups the pods of.
func (LeaderWorkerSet) Kinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"}}
}

// Identify says of which replica a pod is. The set's own webhook gives pods some of their
// labels, maybe after us; what they say is known from the StatefulSets as well.
func (LeaderWorkerSet) Identify(in podgrouper.Input) (podgrouper.Membership, error) {
	group, err := lwsGroup(in)
	if err != nil {
		return podgrouper.Membership{}, err
	}
	membership := podgrouper.Membership{SubKey: "group-" + group, PriorityClassName: podgrouper.TrainPriorityClass}
	leader := lwsIsLeader(in)
	membership.SubGroup = lwsWorkers
	if leader {
		membership.SubGroup = lwsLeader
	}
	subSize := segmentOf(in.Pod.Annotations[lwsSubGroupSize])
	excluded := in.Pod.Annotations[lwsPolicyType] == "LeaderExcluded"
	if subSize == 0 || leader && excluded {
		return membership, nil
	}
	index, size := lwsIndex(in, leader), parseCount(in.Pod.Annotations[lwsSize])
	if index == nil || size == nil {
		membership.SubGroup = ""
		membership.Notes = append(membership.Notes, missingLabel(lwsWorkerIndex+", or no annotation "+lwsSize, "its subgroup"))
		return membership, nil
	}
	membership.SubGroup = lwsSegmentName(lwsSegment(*index, *size, subSize))
	return membership, nil
}

// Describe counts the pods of a replica. Workers that come when the leader is ready are not
// waited for before it has a node.
func (LeaderWorkerSet) Describe(ctx context.Context, in podgrouper.Input, owner fields.Fields, reader client.Reader) (podgrouper.Shape, error) {
	template := owner.At("spec", "leaderWorkerTemplate")
	// A set that is updated has replicas of two sizes: what a pod was made with counts.
	size := max(1, or(parseCount(in.Pod.Annotations[lwsSize]), or(template.Count("size"), 1)))
	needed, leaderOnly := size, false
	if owner.String("spec", "startupPolicy") == "LeaderReady" {
		scheduled, err := leaderIsScheduled(ctx, in, reader)
		if err != nil {
			return podgrouper.Shape{}, err
		}
		leaderOnly = !scheduled
	}
	if leaderOnly {
		needed = 1
	}
	shape := podgrouper.Shape{MinMember: &needed, AtOnce: ptr.To(needed)}
	subSize := segmentOf(in.Pod.Annotations[lwsSubGroupSize])
	if subSize == 0 {
		shape.SubGroups = []podgrouper.SubGroup{{Name: lwsLeader, MinMember: ptr.To[int64](1)}}
		if size > 1 {
			shape.SubGroups = append(shape.SubGroups, podgrouper.SubGroup{Name: lwsWorkers, MinMember: ptr.To(needed - 1)})
		}
		return shape, nil
	}
	segments := lwsSegment(size-1, size, subSize) + 1
	if segments > podgrouper.MaxSubGroups-1 {
		template.Report(field.Invalid(template.Path("subGroupPolicy", "subGroupSize"), subSize, fmt.Sprintf("makes %d subgroups of %d pods; there may be %d", segments, size, podgrouper.MaxSubGroups-1)))
		return shape, nil
	}
	excluded := template.String("subGroupPolicy", "subGroupPolicyType") == "LeaderExcluded"
	shape.SubGroups = lwsSegments(size, subSize, segments, excluded, leaderOnly)
	return shape, nil
}

// lwsSegments counts the pods of each segment, and of the leader where that is in none.
func lwsSegments(size, subSize, segments int64, excluded, leaderOnly bool) []podgrouper.SubGroup {
	var out []podgrouper.SubGroup
	if excluded {
		out = append(out, podgrouper.SubGroup{Name: lwsLeader, MinMember: ptr.To[int64](1)})
	}
	for i := range segments {
		leader, workers := int64(0), subSize
		if i == 0 && !excluded {
			leader = 1
		}
		if !lwsExtraLeader(size, subSize) {
			workers = min(subSize, size-i*subSize)
			if i == 0 {
				workers--
			}
		}
		if leader+workers == 0 {
			continue
		}
		if leaderOnly {
			workers = 0
		}
		out = append(out, podgrouper.SubGroup{Name: lwsSegmentName(i), MinMember: ptr.To(leader + workers)})
	}
	return out
}

// lwsSegment is the subgroup of a pod, as the set counts. A leader that makes one pod too
// many is in the first, with index -1 rounded to it.
func lwsSegment(index, size, subSize int64) int64 {
	if lwsExtraLeader(size, subSize) {
		return (index - 1) / subSize
	}
	return index / subSize
}

// lwsExtraLeader says whether the workers fill the subgroups without the leader.
func lwsExtraLeader(size, subSize int64) bool {
	return (size-1)%subSize == 0 && size%subSize != 0
}

func lwsSegmentName(index int64) string {
	return fmt.Sprintf("segment-%d", index)
}

// lwsGroup is the index of the replica. Without the label it is the leader's own index in
// the StatefulSet of leaders.
func lwsGroup(in podgrouper.Input) (string, error) {
	group := in.Pod.Labels[lwsGroupIndex]
	if group == "" && len(in.Below) == 1 {
		group = in.Pod.Labels[appsv1.PodIndexLabel]
	}
	if parseCount(group) == nil {
		return "", fmt.Errorf("label %s of pod %s has to be the index of its replica, and is %q", lwsGroupIndex, in.Pod.Name, group)
	}
	return group, nil
}

// lwsIsLeader knows leaders by their place: nothing but a StatefulSet is between them and
// the set, while the leader is between it and its workers.
func lwsIsLeader(in podgrouper.Input) bool {
	if index := in.Pod.Labels[lwsWorkerIndex]; index != "" {
		return index == "0"
	}
	return len(in.Below) <= 1
}

// lwsIndex is the index of a pod in its replica; nil when no label says it.
func lwsIndex(in podgrouper.Input, leader bool) *int64 {
	if leader {
		return ptr.To[int64](0)
	}
	if index := parseCount(in.Pod.Labels[lwsWorkerIndex]); index != nil {
		return index
	}
	return parseCount(in.Pod.Labels[appsv1.PodIndexLabel])
}

// leaderIsScheduled says whether the leader of the pod's replica has a node.
func leaderIsScheduled(ctx context.Context, in podgrouper.Input, reader client.Reader) (bool, error) {
	if !lwsIsLeader(in) {
		// It was Ready: else there would be no worker.
		return true, nil
	}
	leader := &corev1.Pod{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: in.Pod.Namespace, Name: in.Pod.Name}, leader)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read leader %s: %w", in.Pod.Name, err)
	}
	return leader.Spec.NodeName != "", nil
}
