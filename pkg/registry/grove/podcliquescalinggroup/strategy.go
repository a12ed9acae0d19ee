// Package podcliquescalinggroup says which rules apply to a request for a PodCliqueScalingGroup: which fields
// each endpoint writes, and which validation runs. The rules themselves are in
// pkg/apis/grove/validation.
package podcliquescalinggroup

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
	"github.com/copse-dev/copse/pkg/labels"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// Strategy is the behaviour of the main endpoint and of scale.
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

// NamespaceScoped says that a PodCliqueScalingGroup lives in a namespace.
func (*Strategy) NamespaceScoped() bool { return true }

// GetResetFields names the fields that this endpoint does not write.
func (*Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(grovev1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// PrepareForCreate drops the status, and sets the defaults that depend on other fields.
func (*Strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	group := obj.(*grove.PodCliqueScalingGroup)
	group.Generation = 1
	group.Status = grove.PodCliqueScalingGroupStatus{}
	internalrest.AddFinalizer(group, labels.PodCliqueScalingGroupFinalizer)
	setDefaults(group)
}

// PrepareForUpdate keeps the status and what is absent and immutable, and raises the
// generation when the spec changes.
func (*Strategy) PrepareForUpdate(_ context.Context, obj, oldObj runtime.Object) {
	group, old := obj.(*grove.PodCliqueScalingGroup), oldObj.(*grove.PodCliqueScalingGroup)
	group.Status = old.Status
	keepDefaults(group, old)
	group.Generation = old.Generation
	if !apiequality.Semantic.DeepEqual(group.Spec, old.Spec) {
		group.Generation++
	}
}

// Validate checks a new object.
func (*Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidatePodCliqueScalingGroup(obj.(*grove.PodCliqueScalingGroup))
}

// ValidateUpdate checks a change.
func (*Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodCliqueScalingGroupUpdate(obj.(*grove.PodCliqueScalingGroup), old.(*grove.PodCliqueScalingGroup))
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
		fieldpath.APIVersion(grovev1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec")),
	}
}

// PrepareForUpdate keeps everything but the status.
func (StatusStrategy) PrepareForUpdate(_ context.Context, obj, oldObj runtime.Object) {
	group, old := obj.(*grove.PodCliqueScalingGroup), oldObj.(*grove.PodCliqueScalingGroup)
	group.Spec = old.Spec
	metav1.ResetObjectMetaForStatus(&group.ObjectMeta, &old.ObjectMeta)
}

// ValidateUpdate checks a move of the status.
func (StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodCliqueScalingGroupStatusUpdate(obj.(*grove.PodCliqueScalingGroup), old.(*grove.PodCliqueScalingGroup))
}
