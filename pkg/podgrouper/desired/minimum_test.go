package desired

import (
	"testing"

	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

func TestMinPods(t *testing.T) {
	sub := func(name, parent string, minMember, minSubGroup int32) schedulerv1alpha1.SubGroup {
		out := schedulerv1alpha1.SubGroup{Name: name, MinMember: &minMember}
		if minSubGroup > 0 {
			out.MinMember, out.MinSubGroup = nil, &minSubGroup
		}
		if parent != "" {
			out.Parent = &parent
		}
		return out
	}
	for name, tc := range map[string]struct {
		spec schedulerv1alpha1.PodGroupSpec
		want int32
	}{
		"nothing":                {schedulerv1alpha1.PodGroupSpec{}, 1},
		"none":                   {schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](0)}, 1},
		"pods":                   {schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](4)}, 4},
		"the least of subgroups": {schedulerv1alpha1.PodGroupSpec{MinSubGroup: ptr.To[int32](1), SubGroups: []schedulerv1alpha1.SubGroup{sub("a", "", 3, 0), sub("b", "", 2, 0)}}, 2},
		"a tree": {schedulerv1alpha1.PodGroupSpec{MinSubGroup: ptr.To[int32](2), SubGroups: []schedulerv1alpha1.SubGroup{
			sub("a", "", 1, 0), sub("b", "", 0, 1), sub("b-0", "b", 5, 0), sub("b-1", "b", 4, 0),
		}}, 5},
	} {
		if got := MinPods(&schedulerv1alpha1.PodGroup{Spec: tc.spec}); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

// Which subgroups come first is known of the groups that the pod grouper makes.
func TestMinPodsOfThoseThatComeFirst(t *testing.T) {
	spec := schedulerv1alpha1.PodGroupSpec{MinSubGroup: ptr.To[int32](1), SubGroups: []schedulerv1alpha1.SubGroup{
		{Name: "node", MinMember: ptr.To[int32](8)}, {Name: "launcher", MinMember: ptr.To[int32](1)},
	}}
	for name, want := range map[string]int32{"pg": 8, "a-copy": 1} {
		group := &schedulerv1alpha1.PodGroup{Spec: spec}
		group.Name = name
		group.Annotations = map[string]string{
			podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue, podgrouper.MadeAsAnnotation: "pg", podgrouper.FirstPodsAnnotation: "8",
		}
		if got := MinPods(group); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
