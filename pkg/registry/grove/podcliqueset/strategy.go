// Package podcliqueset says which rules apply to a request for a PodCliqueSet: what is
// defaulted from other fields, which fields each endpoint writes, and which validation
// runs. The rules themselves are in pkg/apis/grove/validation.
package podcliqueset

import (
	"context"
	"slices"

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

// Strategy is the behaviour of the main and scale endpoints.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	defaults   Defaults
	topologies rest.Getter
}

var (
	_ rest.RESTCreateStrategy  = &Strategy{}
	_ rest.RESTUpdateStrategy  = &Strategy{}
	_ rest.RESTDeleteStrategy  = &Strategy{}
	_ rest.ResetFieldsStrategy = &Strategy{}
)

// NewStrategy returns the strategy of the main endpoint. topologies gets the
// ClusterTopologyBindings that warnings speak of; without it they speak of none.
func NewStrategy(typer runtime.ObjectTyper, defaults Defaults, topologies rest.Getter) *Strategy {
	return &Strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, defaults: defaults, topologies: topologies}
}

// NamespaceScoped says that a set lives in a namespace.
func (*Strategy) NamespaceScoped() bool { return true }

// GetResetFields names the fields that this endpoint does not write.
func (*Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(grovev1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// PrepareForCreate drops the status, sets the defaults that depend on other fields, and
// identifies the templates.
func (s *Strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	pcs := obj.(*grove.PodCliqueSet)
	pcs.Generation = 1
	pcs.Status = grove.PodCliqueSetStatus{}
	internalrest.AddFinalizer(pcs, labels.PodCliqueSetFinalizer)
	s.defaults.forCreate(pcs)
	hashTemplates(pcs, nil)
}

// PrepareForUpdate keeps the status, sets defaults from the old object, and raises the
// generation when the spec changes.
func (s *Strategy) PrepareForUpdate(_ context.Context, obj, oldObj runtime.Object) {
	pcs, old := obj.(*grove.PodCliqueSet), oldObj.(*grove.PodCliqueSet)
	pcs.Status = *old.Status.DeepCopy()
	s.defaults.forUpdate(pcs, old)
	hashTemplates(pcs, old)
	pcs.Generation = old.Generation
	if !apiequality.Semantic.DeepEqual(pcs.Spec, old.Spec) {
		pcs.Generation++
	}
}

// Validate checks a new set.
func (*Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidatePodCliqueSet(obj.(*grove.PodCliqueSet))
}

// ValidateUpdate checks a change.
func (*Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodCliqueSetUpdate(obj.(*grove.PodCliqueSet), old.(*grove.PodCliqueSet))
}

// WarningsOnCreate tells of fields that are accepted and do nothing, or not what they say,
// and of what the cluster lacks.
func (s *Strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	pcs := obj.(*grove.PodCliqueSet)
	return slices.Concat(inertFields(pcs), untoldSchedulers(pcs), replacedFields(pcs), sharedByMany(pcs), untoldTopology(pcs), s.topologyWarnings(ctx, pcs))
}

// WarningsOnUpdate tells of the same when the spec changes.
func (s *Strategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	if obj.(*grove.PodCliqueSet).Generation == old.(*grove.PodCliqueSet).Generation {
		return nil
	}
	return s.WarningsOnCreate(ctx, obj)
}

// Canonicalize has nothing to do.
func (*Strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate is false: a PUT changes what exists.
func (*Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is false, as for custom resources: a lost update is worse
// than having to send a resourceVersion.
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
		fieldpath.APIVersion(grovev1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(
			fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec")),
	}
}

// PrepareForUpdate keeps everything but the status, and the hashes that the server
// alone writes (D16).
func (StatusStrategy) PrepareForUpdate(_ context.Context, obj, oldObj runtime.Object) {
	pcs, old := obj.(*grove.PodCliqueSet), oldObj.(*grove.PodCliqueSet)
	pcs.Spec = old.Spec
	metav1.ResetObjectMetaForStatus(&pcs.ObjectMeta, &old.ObjectMeta)
	pcs.Status.CurrentGenerationHash = old.Status.CurrentGenerationHash
	pcs.Status.CliqueHashes = old.Status.CliqueHashes
}

// ValidateUpdate checks a move of the status.
func (StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodCliqueSetStatusUpdate(obj.(*grove.PodCliqueSet), old.(*grove.PodCliqueSet))
}

// WarningsOnUpdate has nothing to say: whoever writes status did not write the spec.
func (StatusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
