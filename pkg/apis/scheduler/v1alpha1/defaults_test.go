package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// TestDefaults holds the exact value of every fixed default. Everything else about an
// object stays as it was sent.
func TestDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	defaulted := PodGroupSpec{MinMember: ptr.To[int32](1), MarkUnschedulable: ptr.To(true), SchedulingBackoff: ptr.To[int32](-1)}
	given := PodGroupSpec{MinMember: ptr.To[int32](0), MarkUnschedulable: ptr.To(false), SchedulingBackoff: ptr.To[int32](1)}
	tests := map[string]struct{ in, want runtime.Object }{
		"PodGroup: nothing given":    {in: &PodGroup{}, want: &PodGroup{Spec: defaulted}},
		"PodGroup: everything given": {in: &PodGroup{Spec: given}, want: &PodGroup{Spec: given}},
		"PodGroup: minSubGroup excludes minMember": {
			in:   &PodGroup{Spec: PodGroupSpec{MinSubGroup: ptr.To[int32](2)}},
			want: &PodGroup{Spec: PodGroupSpec{MinSubGroup: ptr.To[int32](2), MarkUnschedulable: ptr.To(true), SchedulingBackoff: ptr.To[int32](-1)}},
		},
		"PodGroup: subgroups have no defaults": {
			in: &PodGroup{Spec: PodGroupSpec{SubGroups: make([]SubGroup, 1)}},
			want: &PodGroup{Spec: PodGroupSpec{
				MinMember: ptr.To[int32](1), MarkUnschedulable: ptr.To(true), SchedulingBackoff: ptr.To[int32](-1),
				SubGroups: make([]SubGroup, 1),
			}},
		},
		"PodGroupList": {
			in:   &PodGroupList{Items: make([]PodGroup, 2)},
			want: &PodGroupList{Items: []PodGroup{{Spec: defaulted}, {Spec: defaulted}}},
		},
		"PodGang": {in: &PodGang{}, want: &PodGang{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scheme.Default(tc.in)
			if diff := cmp.Diff(tc.want, tc.in); diff != "" {
				t.Errorf("defaults (-want +got):\n%s", diff)
			}
			scheme.Default(tc.in)
			if diff := cmp.Diff(tc.want, tc.in); diff != "" {
				t.Errorf("defaults are not idempotent (-first +second):\n%s", diff)
			}
		})
	}
}
