package rest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/scale/scheme"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

var groveVersion = schema.GroupVersion{Group: "grove.io", Version: "v1alpha1"}

// newScaleREST returns the endpoint of a kind without a store, for what needs none.
func newScaleREST(selector string) *ScaleREST[*grove.PodClique] {
	store := &genericregistry.Store{DefaultQualifiedResource: grove.Resource("podcliques")}
	return NewScaleREST(store, Scalable[*grove.PodClique]{
		GroupVersion: groveVersion,
		Get: func(clique *grove.PodClique) (int32, int32, string) {
			return clique.Spec.Replicas, clique.Status.Replicas, selector
		},
		Set: func(clique *grove.PodClique, replicas int32) { clique.Spec.Replicas = replicas },
		Bounds: func(context.Context, *grove.PodClique) (Bounds, error) {
			return Bounds{Min: 2, MinOf: "minAvailable", Max: 9, MaxOf: "maxReplicas"}, nil
		},
	})
}

// mkClique makes a clique of three pods of which two exist. spec.replicas was applied by
// a user.
func mkClique() *grove.PodClique {
	return &grove.PodClique{
		ObjectMeta: metav1.ObjectMeta{
			Name: "worker", Namespace: "ns", UID: "uid", ResourceVersion: "7", CreationTimestamp: metav1.Unix(1700000000, 0),
			Labels: map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "user", Operation: metav1.ManagedFieldsOperationApply, APIVersion: groveVersion.String(),
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{},"f:roleName":{}}}`),
			}},
		},
		Spec:   grove.PodCliqueSpec{RoleName: "worker", Replicas: 3},
		Status: grove.PodCliqueStatus{Replicas: 2},
	}
}

func TestScaleOfAnObject(t *testing.T) {
	scale, err := newScaleREST("app=worker").scaleOf(mkClique())
	if err != nil {
		t.Fatal(err)
	}
	want := &scheme.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "worker", Namespace: "ns", UID: "uid", ResourceVersion: "7", CreationTimestamp: metav1.Unix(1700000000, 0)},
		Spec:       scheme.ScaleSpec{Replicas: 3},
		Status:     scheme.ScaleStatus{Replicas: 2, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "worker"}}},
	}
	if diff := cmp.Diff(want, scale, cmp.Comparer(sameSelector)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func sameSelector(a, b *metav1.LabelSelector) bool {
	return metav1.FormatLabelSelector(a) == metav1.FormatLabelSelector(b)
}

func TestScaleOfAnotherKindIsAnError(t *testing.T) {
	if scale, err := newScaleREST("app=worker").scaleOf(&grove.PodCliqueSet{}); !apierrors.IsInternalError(err) {
		t.Errorf("got %v, error %v", scale, err)
	}
}

func TestScaleWithABrokenSelectorIsAnError(t *testing.T) {
	if scale, err := newScaleREST("!!").scaleOf(mkClique()); !apierrors.IsInternalError(err) {
		t.Errorf("got %v, error %v", scale, err)
	}
}

func TestScaleSpeaksAutoscalingV1(t *testing.T) {
	r := newScaleREST("")
	if got, want := r.GroupVersionKind(groveVersion), autoscalingv1.SchemeGroupVersion.WithKind("Scale"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, ok := r.New().(*scheme.Scale); !ok {
		t.Errorf("New returns %T", r.New())
	}
}

// update applies a change of the Scale to an object, as the store does with a request.
func update(obj runtime.Object, change func(*scheme.Scale)) (runtime.Object, error) {
	r := newScaleREST("app=worker")
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		scale := old.DeepCopyObject().(*scheme.Scale)
		change(scale)
		return scale, nil
	})
	return (&scaledObject[*grove.PodClique]{UpdatedObjectInfo: info, rest: r, name: "worker"}).UpdatedObject(context.Background(), obj)
}

func TestScaleChangesReplicasAlone(t *testing.T) {
	old := mkClique()
	updated, err := update(old, func(scale *scheme.Scale) {
		scale.Spec.Replicas = 5
		scale.Labels = map[string]string{"a": "c"}
		scale.Status.Replicas = 9
	})
	if err != nil {
		t.Fatal(err)
	}
	want := mkClique()
	want.Spec.Replicas = 5
	got := updated.(*grove.PodClique)
	got.ManagedFields = want.ManagedFields
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(mkClique(), old); diff != "" {
		t.Errorf("the stored object changed (-before +after):\n%s", diff)
	}
}

// The request's resourceVersion is the one that the store compares with what is stored.
func TestScaleHandsResourceVersionOn(t *testing.T) {
	for _, version := range []string{"6", ""} {
		updated, err := update(mkClique(), func(scale *scheme.Scale) { scale.ResourceVersion = version })
		if err != nil {
			t.Fatal(err)
		}
		if got := updated.(*grove.PodClique).ResourceVersion; got != version {
			t.Errorf("resourceVersion is %q, want %q", got, version)
		}
	}
}

// An autoscaler that scales through /scale takes spec.replicas over, and nothing else.
func TestScaleMovesOwnershipOfReplicas(t *testing.T) {
	var seen []metav1.ManagedFieldsEntry
	updated, err := update(mkClique(), func(scale *scheme.Scale) {
		seen = scale.ManagedFields
		scale.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "hpa", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "autoscaling/v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"user": `autoscaling/v1: {"f:spec":{"f:replicas":{}}}`}, owners(seen)); diff != "" {
		t.Errorf("owners of the Scale (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"user": `grove.io/v1alpha1: {"f:spec":{"f:roleName":{}}}`,
		"hpa":  `grove.io/v1alpha1: {"f:spec":{"f:replicas":{}}}`,
	}
	if diff := cmp.Diff(want, owners(updated.(*grove.PodClique).ManagedFields)); diff != "" {
		t.Errorf("owners of the object (-want +got):\n%s", diff)
	}
}

func owners(entries []metav1.ManagedFieldsEntry) map[string]string {
	owners := map[string]string{}
	for _, entry := range entries {
		owners[entry.Manager] = entry.APIVersion + ": " + entry.FieldsV1.GetRawString()
	}
	return owners
}

func TestScaleRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		obj    *grove.PodClique
		change func(*scheme.Scale)
		is     func(error) bool
	}{
		"an object that is not there": {&grove.PodClique{}, func(*scheme.Scale) {}, apierrors.IsNotFound},
		"another name":                {mkClique(), func(scale *scheme.Scale) { scale.Name = "other" }, apierrors.IsBadRequest},
		"another UID":                 {mkClique(), func(scale *scheme.Scale) { scale.UID = "other" }, apierrors.IsConflict},
		"negative replicas":           {mkClique(), func(scale *scheme.Scale) { scale.Spec.Replicas = -1 }, apierrors.IsInvalid},
		"too few replicas":            {mkClique(), func(scale *scheme.Scale) { scale.Spec.Replicas = 1 }, apierrors.IsInvalid},
		"too many replicas":           {mkClique(), func(scale *scheme.Scale) { scale.Spec.Replicas = 10 }, apierrors.IsInvalid},
	} {
		if updated, err := update(tc.obj, tc.change); err == nil || !tc.is(err) {
			t.Errorf("%s: got %v, error %v", name, updated, err)
		}
	}
	for name, change := range map[string]func(*scheme.Scale){
		"no name and no UID": func(scale *scheme.Scale) { scale.Name, scale.UID = "", "" },
		"scaled to nothing":  func(scale *scheme.Scale) { scale.Spec.Replicas = 0 },
	} {
		if updated, err := update(mkClique(), change); err != nil {
			t.Errorf("%s: got %v, error %v", name, updated, err)
		}
	}
}

// A rule that came later, or a bound that was lowered, does not hold up what leaves the
// size alone.
func TestScaleLetsASizeOutOfBoundsBe(t *testing.T) {
	clique := mkClique()
	clique.Spec.Replicas = 12
	if updated, err := update(clique, func(scale *scheme.Scale) { scale.Spec.Replicas = 12 }); err != nil {
		t.Errorf("got %v, error %v", updated, err)
	}
	if updated, err := update(clique, func(scale *scheme.Scale) { scale.Spec.Replicas = 11 }); !apierrors.IsInvalid(err) {
		t.Errorf("another size out of bounds: got %v, error %v", updated, err)
	}
}

func TestBounds(t *testing.T) {
	within := Bounds{Min: 2, MinOf: "minAvailable", Max: 4, MaxOf: "maxReplicas"}
	const text = "must be 0, or from 2 (minAvailable) to 4 (maxReplicas)"
	for name, tc := range map[string]struct {
		bounds   Bounds
		replicas int32
		want     string
	}{
		"idle":              {within, 0, ""},
		"lowest":            {within, 2, ""},
		"highest":           {within, 4, ""},
		"negative":          {within, -1, text},
		"below":             {within, 1, text},
		"above":             {within, 5, text},
		"no minimum":        {Bounds{Max: 4, MaxOf: "maxReplicas"}, 1, ""},
		"above, no minimum": {Bounds{Max: 4, MaxOf: "maxReplicas"}, 5, "must be from 0 to 4 (maxReplicas)"},
		"training":          {FixedInTraining(), 1, "is immutable in Training"},
	} {
		errs := tc.bounds.validate(tc.replicas, field.NewPath("spec", "replicas"))
		if tc.want == "" {
			if len(errs) > 0 {
				t.Errorf("%s: %v", name, errs)
			}
			continue
		}
		if len(errs) != 1 || errs[0].Field != "spec.replicas" || errs[0].Detail != tc.want {
			t.Errorf("%s: %v, want %q", name, errs, tc.want)
		}
	}
}

func TestBoundsByHostname(t *testing.T) {
	for name, tc := range map[string]struct {
		prefix int
		max    int32
		want   int32
	}{
		"room for all":            {57, 20000, 20000},
		"for all but five digits": {58, 20000, 10000},
		"for one digit":           {61, 20000, 10},
		"for one digit, of few":   {61, 11, 10},
		"few":                     {61, 10, 10},
		"for the first alone":     {62, 20000, 1},
	} {
		b := Bounds{Max: tc.max, MaxOf: "the most"}
		b.LimitByHostname(func(index int32) string { return fmt.Sprintf("%s-%d", strings.Repeat("x", tc.prefix), index) })
		if b.Max != tc.want || (b.MaxOf == "the most") != (tc.want == tc.max) {
			t.Errorf("%s: %+v, want %d", name, b, tc.want)
		}
	}
}

// Where the bounds cannot be found out nothing is changed.
func TestScaleHandsErrorsOfBoundsOn(t *testing.T) {
	refusal := apierrors.NewServiceUnavailable("etcd is away")
	r := newScaleREST("app=worker")
	r.scalable.Bounds = func(context.Context, *grove.PodClique) (Bounds, error) { return Bounds{}, refusal }
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		scale := old.DeepCopyObject().(*scheme.Scale)
		scale.Spec.Replicas = 4
		return scale, nil
	})
	scaled := &scaledObject[*grove.PodClique]{UpdatedObjectInfo: info, rest: r, name: "worker"}
	if updated, err := scaled.UpdatedObject(context.Background(), mkClique()); !errors.Is(err, refusal) {
		t.Errorf("got %v, error %v", updated, err)
	}
}

// A request that fails, as a patch that does not apply, changes nothing.
func TestScaleHandsErrorsOn(t *testing.T) {
	refusal := errors.New("refused")
	info := rest.DefaultUpdatedObjectInfo(nil, func(context.Context, runtime.Object, runtime.Object) (runtime.Object, error) {
		return nil, refusal
	})
	scaled := &scaledObject[*grove.PodClique]{UpdatedObjectInfo: info, rest: newScaleREST("app=worker"), name: "worker"}
	if updated, err := scaled.UpdatedObject(context.Background(), mkClique()); !errors.Is(err, refusal) {
		t.Errorf("got %v, error %v", updated, err)
	}

	broken := metav1.NewFieldsV1("{")
	clique := mkClique()
	clique.ManagedFields[0].FieldsV1 = broken
	if updated, err := update(clique, func(*scheme.Scale) {}); err == nil {
		t.Errorf("broken managed fields of the object: got %v", updated)
	}
	updated, err := update(mkClique(), func(scale *scheme.Scale) {
		scale.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "hpa", APIVersion: "autoscaling/v1", FieldsType: "FieldsV1", FieldsV1: broken}}
	})
	if err == nil {
		t.Errorf("broken managed fields of the Scale: got %v", updated)
	}
}

func TestScaleRefusesWhatIsNoScale(t *testing.T) {
	info := rest.DefaultUpdatedObjectInfo(&grove.PodClique{})
	scaled := &scaledObject[*grove.PodClique]{UpdatedObjectInfo: info, rest: newScaleREST(""), name: "worker"}
	if updated, err := scaled.UpdatedObject(context.Background(), mkClique()); !apierrors.IsBadRequest(err) {
		t.Errorf("got %v, error %v", updated, err)
	}
}

// Admission judges the Scale, as the request names it.
func TestAdmissionSeesScales(t *testing.T) {
	r := newScaleREST("app=worker")
	before, after := mkClique(), mkClique()
	after.Spec.Replicas = 5
	refusal := errors.New("refused")

	var got []int32
	err := r.updateValidation(func(_ context.Context, obj, old runtime.Object) error {
		got = []int32{obj.(*scheme.Scale).Spec.Replicas, old.(*scheme.Scale).Spec.Replicas}
		return refusal
	})(context.Background(), after, before)
	if !errors.Is(err, refusal) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]int32{5, 3}, got); diff != "" {
		t.Errorf("update (-want +got):\n%s", diff)
	}

	err = r.createValidation(func(_ context.Context, obj runtime.Object) error {
		got = []int32{obj.(*scheme.Scale).Spec.Replicas}
		return refusal
	})(context.Background(), after)
	if !errors.Is(err, refusal) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]int32{5}, got); diff != "" {
		t.Errorf("create (-want +got):\n%s", diff)
	}
}

func TestAdmissionIsNotAskedAboutOtherKinds(t *testing.T) {
	r, ctx := newScaleREST("app=worker"), context.Background()
	asked := func(context.Context, runtime.Object) error {
		t.Error("admission was asked")
		return nil
	}
	update := r.updateValidation(func(ctx context.Context, obj, _ runtime.Object) error { return asked(ctx, obj) })
	stranger := &grove.PodCliqueSet{}
	for name, err := range map[string]error{
		"create":     r.createValidation(asked)(ctx, stranger),
		"update":     update(ctx, stranger, mkClique()),
		"update old": update(ctx, mkClique(), stranger),
	} {
		if !apierrors.IsInternalError(err) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestScaleOfAnObjectAsTable(t *testing.T) {
	r := newScaleREST("app=worker")
	scale, err := r.scaleOf(mkClique())
	if err != nil {
		t.Fatal(err)
	}
	table, err := r.ConvertToTable(context.Background(), scale, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 || table.Rows[0].Cells[0] != "worker" {
		t.Errorf("rows are %v", table.Rows)
	}
}
