package validation

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
)

// createCase changes a valid object; want holds the type and the field of each error.
type createCase[T any] struct {
	tweak func(*T)
	want  field.ErrorList
}

// updateCase makes an old object with before, and a new one from the old with tweak.
type updateCase[T any] struct {
	before, tweak func(*T)
	want          field.ErrorList
}

// object is a kind that can be copied.
type object[T any] interface {
	*T
	DeepCopy() *T
}

func testCreate[T any, P object[T]](t *testing.T, mk func(...func(*T)) *T, validate func(*T) field.ErrorList, tests map[string]createCase[T]) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := mk()
			if tc.tweak != nil {
				tc.tweak(obj)
			}
			before := P(obj).DeepCopy()
			wantErrors(t, validate(obj), tc.want)
			if diff := gocmp.Diff(before, obj); diff != "" {
				t.Errorf("validation changed the object (-before +after):\n%s", diff)
			}
		})
	}
}

func testUpdate[T any, P object[T]](t *testing.T, mk func(...func(*T)) *T, validate func(obj, old *T) field.ErrorList, tests map[string]updateCase[T]) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old := mk()
			if tc.before != nil {
				tc.before(old)
			}
			obj := P(old).DeepCopy()
			if tc.tweak != nil {
				tc.tweak(obj)
			}
			wantErrors(t, validate(obj, old), tc.want)
		})
	}
}

// place is what tests compare of an error.
type place struct {
	Type  field.ErrorType
	Field string
}

func places(errs field.ErrorList) []place {
	var out []place
	for _, err := range errs {
		out = append(out, place{err.Type, err.Field})
	}
	slices.SortFunc(out, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Type, b.Type))
	})
	return out
}

func wantErrors(t *testing.T, got, want field.ErrorList) {
	t.Helper()
	if diff := gocmp.Diff(places(want), places(got)); diff != "" {
		t.Errorf("errors (-want +got):\n%s\nin full: %v", diff, got.ToAggregate())
	}
}

func invalid(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, Field: path}
}
func required(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeRequired, Field: path}
}
func forbidden(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeForbidden, Field: path}
}
func notFound(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeNotFound, Field: path}
}
func duplicate(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeDuplicate, Field: path}
}
func tooLong(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooLong, Field: path}
}
func tooMany(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooMany, Field: path}
}
func unsupported(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeNotSupported, Field: path}
}

func mkMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "uid", ResourceVersion: "7", Generation: 1}
}

func deleting(meta *metav1.ObjectMeta) {
	meta.DeletionTimestamp = ptr.To(metav1.Unix(1700000000, 0))
	meta.Finalizers = []string{"example.com/finalizer"}
}

// mkPodGang makes a valid gang of two groups.
func mkPodGang(tweaks ...func(*scheduler.PodGang)) *scheduler.PodGang {
	gang := &scheduler.PodGang{
		ObjectMeta: mkMeta("llm-0"),
		Spec: scheduler.PodGangSpec{
			PodGroups: []scheduler.PodGangPodGroup{
				{Name: "llm-0-leader", MinReplicas: 1, PodReferences: []scheduler.NamespacedName{{Name: "leader-0"}}},
				{Name: "llm-0-worker", MinReplicas: 2, PodReferences: []scheduler.NamespacedName{{Namespace: "ns", Name: "worker-0"}}},
			},
			TopologyConstraintGroupConfigs: []scheduler.TopologyConstraintGroupConfig{
				{Name: "decode", PodGroupNames: []string{"llm-0-leader", "llm-0-worker"}},
				{Name: "workers", PodGroupNames: []string{"llm-0-worker"}},
			},
		},
	}
	for _, tweak := range tweaks {
		tweak(gang)
	}
	return gang
}

// mkPodGroup makes a valid group with subgroups leader and worker below decode.
func mkPodGroup(tweaks ...func(*scheduler.PodGroup)) *scheduler.PodGroup {
	group := &scheduler.PodGroup{
		ObjectMeta: mkMeta("job"),
		Spec: scheduler.PodGroupSpec{
			MinMember:         ptr.To[int32](3),
			MarkUnschedulable: ptr.To(true),
			SchedulingBackoff: ptr.To[int32](-1),
			SubGroups: []scheduler.SubGroup{
				{Name: "decode"},
				{Name: "leader", Parent: ptr.To("decode"), MinMember: ptr.To[int32](1)},
				{Name: "worker", Parent: ptr.To("decode"), MinMember: ptr.To[int32](2)},
			},
		},
	}
	for _, tweak := range tweaks {
		tweak(group)
	}
	return group
}
