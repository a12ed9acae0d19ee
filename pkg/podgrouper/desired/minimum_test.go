package desired

import (
	"testing"

	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
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
		if got := MinPods(&tc.spec); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}
