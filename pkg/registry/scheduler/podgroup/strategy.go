// Package podgroup says which rules apply to a request for a PodGroup: which fields
// each endpoint writes, and which validation runs. The rules themselves are in
// pkg/apis/scheduler/validation.
package podgroup

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/scheduler/validation"
)

// Strategy is the behaviour of the main endpoint.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

var (
	_ rest.RESTCreateStrategy  = &Strategy{}
	_ rest.RESTUpdateStrategy  = &Strategy{}
	_ rest.RESTDeleteStrategy  = &Strategy{}
	_ rest.ResetFieldsStrategy = &Strategy{}
)

// NewStrategy returns the strategy of the main endpoint.
func NewStrategy(typer runtime.ObjectTyper) *Strategy {
	return &Strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator}
}

// NamespaceScoped says that a PodGroup lives in a namespace.
func (*Strategy) NamespaceScoped() bool { return true }

// GetResetFields names the fields that this endpoint does not write.
func (*Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(schedulerv1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// PrepareForCreate drops the status.
func (*Strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	group := obj.(*scheduler.PodGroup)
	group.Generation = 1
	group.Status = scheduler.PodGroupStatus{}
}

// PrepareForUpdate keeps the status, lets minSubGroup take the default's place, and raises
// the generation when the spec changes.
func (*Strategy) PrepareForUpdate(_ context.Context, obj, oldObj runtime.Object) {
	group, old := obj.(*scheduler.PodGroup), oldObj.(*scheduler.PodGroup)
	group.Status = old.Status
	group.Generation = old.Generation
	replaceDefaultMinimum(&group.Spec, &old.Spec)
	if !apiequality.Semantic.DeepEqual(group.Spec, old.Spec) {
		group.Generation++
	}
}

// replaceDefaultMinimum lets minSubGroup take the place of a minMember that is stored and
// was defaulted: an apply or a patch that adds minSubGroup keeps it, and nobody gave it. One
// that was given as 1 goes too. It is stored like the default, and a PUT sends either back,
// so that the two cannot be told apart.
func replaceDefaultMinimum(spec, old *scheduler.PodGroupSpec) {
	if spec.MinSubGroup != nil && old.MinSubGroup == nil &&
		ptr.Deref(spec.MinMember, 0) == schedulerv1alpha1.DefaultMinMember && ptr.Deref(old.MinMember, 0) == schedulerv1alpha1.DefaultMinMember {
		spec.MinMember = nil
	}
}

// Validate checks a new object.
func (*Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidatePodGroup(obj.(*scheduler.PodGroup))
}

// ValidateUpdate checks a change.
func (*Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodGroupUpdate(obj.(*scheduler.PodGroup), old.(*scheduler.PodGroup))
}

// WarningsOnCreate has nothing to say.
func (*Strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate has nothing to say.
func (*Strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Canonicalize has nothing to do.
func (*Strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate is false: a PUT changes what exists.
func (*Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is false, as for custom resources.
func (*Strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// StatusStrategy is the behaviour of the status endpoint.
type StatusStrategy struct {
	*Strategy
}

// NewStatusStrategy returns the strategy of the status endpoint.
func NewStatusStrategy(strategy *Strategy) StatusStrategy {
	return StatusStrategy{Strategy: strategy}
}

// GetResetFields names the fields that this endpoint does not write.
func (StatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(schedulerv1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec")),
	}
}

// PrepareForUpdate keeps everything but the status.
func (StatusStrategy) PrepareForUpdate(_ context.Context, obj, oldObj runtime.Object) {
	group, old := obj.(*scheduler.PodGroup), oldObj.(*scheduler.PodGroup)
	group.Spec = old.Spec
	metav1.ResetObjectMetaForStatus(&group.ObjectMeta, &old.ObjectMeta)
}

// ValidateUpdate checks a move of the status.
func (StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodGroupStatusUpdate(obj.(*scheduler.PodGroup), old.(*scheduler.PodGroup))
}
