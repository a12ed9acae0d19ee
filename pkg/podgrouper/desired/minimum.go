package desired

import (
	"math"
	"strconv"

	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// MinPods is the least number of pods with which a PodGroup is satisfied, at least 1, for
// schedulers that count pods alone.
func MinPods(of *schedulerv1alpha1.PodGroup) int32 {
	spec := &of.Spec
	group := podgrouper.Group{MinMember: spec.MinMember, MinSubGroup: spec.MinSubGroup}
	// Which of its subgroups come first is no business of who makes one by hand.
	if first, err := strconv.ParseInt(of.Annotations[podgrouper.FirstPodsAnnotation], 10, 32); err == nil && podgrouper.IsMade(of) {
		group.FirstPods = &first
	}
	for i := range spec.SubGroups {
		sub := &spec.SubGroups[i]
		group.SubGroups = append(group.SubGroups, podgrouper.SubGroup{
			Name: sub.Name, Parent: ptr.Deref(sub.Parent, ""), MinMember: wide(sub.MinMember), MinSubGroup: wide(sub.MinSubGroup),
		})
	}
	return int32(min(max(group.MinPods(), 1), math.MaxInt32))
}

func wide(count *int32) *int64 {
	if count == nil {
		return nil
	}
	return ptr.To(int64(*count))
}
