package podgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
)

func TestMinSubGroupTakesThePlaceOfTheDefault(t *testing.T) {
	member := func(n int32) scheduler.PodGroupSpec { return scheduler.PodGroupSpec{MinMember: ptr.To(n)} }
	subGroup := scheduler.PodGroupSpec{MinSubGroup: ptr.To[int32](1)}
	both := func(n int32) scheduler.PodGroupSpec {
		return scheduler.PodGroupSpec{MinMember: ptr.To(n), MinSubGroup: ptr.To[int32](1)}
	}
	for name, tc := range map[string]struct {
		old, sent, want scheduler.PodGroupSpec
		generation      int64
		refused         bool
	}{
		"the default goes":                     {old: member(1), sent: both(1), want: subGroup, generation: 4},
		"a PUT without minMember":              {old: member(1), sent: subGroup, want: subGroup, generation: 4},
		"another minimum stays":                {old: member(2), sent: both(2), want: both(2), generation: 4, refused: true},
		"a minimum that is given with it":      {old: member(1), sent: both(2), want: both(2), generation: 4, refused: true},
		"a minimum that becomes the default":   {old: member(2), sent: both(1), want: both(1), generation: 4, refused: true},
		"minMember beside a minSubGroup":       {old: subGroup, sent: both(1), want: both(1), generation: 4, refused: true},
		"back to the default":                  {old: subGroup, sent: member(1), want: member(1), generation: 4},
		"the same again once the default went": {old: subGroup, sent: subGroup, want: subGroup, generation: 3},
	} {
		t.Run(name, func(t *testing.T) {
			old := &scheduler.PodGroup{Spec: tc.old}
			old.Name, old.Namespace, old.ResourceVersion, old.Generation = "job", "ns", "7", 3
			group := old.DeepCopy()
			group.Spec = tc.sent
			s := NewStrategy(nil)
			s.PrepareForUpdate(t.Context(), group, old)
			if diff := cmp.Diff(tc.want, group.Spec); diff != "" || group.Generation != tc.generation {
				t.Errorf("generation %d, spec (-want +got):\n%s", group.Generation, diff)
			}
			if errs := s.ValidateUpdate(t.Context(), group, old); (len(errs) > 0) != tc.refused {
				t.Errorf("refused: %v", errs)
			}
			if !cmp.Equal(tc.old, old.Spec) {
				t.Errorf("the stored group changed: %v", old.Spec)
			}
		})
	}
}
