package rest

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/scale/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Scalable tells ScaleREST how a kind keeps its size.
type Scalable[T runtime.Object] struct {
	// GroupVersion is the version under which managed fields name spec.replicas.
	GroupVersion schema.GroupVersion
	// Get returns the wanted size, the observed size and the pods' label selector.
	Get func(obj T) (spec, status int32, selector string)
	// Set changes the wanted size.
	Set func(obj T, replicas int32)
	// Bounds returns the sizes that the object may be given.
	Bounds func(ctx context.Context, obj T) (Bounds, error)
}

// ScaleREST is the scale subresource of a kind. A change of scale is an update of the
// whole object, under the same rules as one through the main endpoint.
type ScaleREST[T runtime.Object] struct {
	store    *genericregistry.Store
	scalable Scalable[T]
	paths    managedfields.ResourcePathMappings
}

// NewScaleREST returns the scale subresource of the kind of store.
func NewScaleREST[T runtime.Object](store *genericregistry.Store, scalable Scalable[T]) *ScaleREST[T] {
	return &ScaleREST[T]{
		store:    store,
		scalable: scalable,
		paths: managedfields.ResourcePathMappings{
			scalable.GroupVersion.String(): fieldpath.MakePathOrDie("spec", "replicas"),
		},
	}
}

// GroupVersionKind says that the endpoint speaks autoscaling/v1, whatever the kind's own version.
func (r *ScaleREST[T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// New returns an empty Scale.
func (r *ScaleREST[T]) New() runtime.Object {
	return &scheme.Scale{}
}

// Destroy does nothing: the store belongs to the kind's main endpoint.
func (r *ScaleREST[T]) Destroy() {}

// Get reads the object's scale.
func (r *ScaleREST[T]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return r.scaleOf(obj)
}

// Update writes the object's wanted size. It never creates the object.
func (r *ScaleREST[T]) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, _, err := r.store.Update(ctx, name, &scaledObject[T]{UpdatedObjectInfo: objInfo, rest: r, name: name},
		r.createValidation(createValidation), r.updateValidation(updateValidation), false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := r.scaleOf(obj)
	return scale, false, err
}

// ConvertToTable renders a scale as the main endpoint renders the object.
func (r *ScaleREST[T]) ConvertToTable(ctx context.Context, object runtime.Object, tableOptions runtime.Object) (*metav1.Table, error) {
	return rest.NewDefaultTableConvertor(r.store.DefaultQualifiedResource).ConvertToTable(ctx, object, tableOptions)
}

// createValidation and updateValidation show admission the Scale in place of the object.
func (r *ScaleREST[T]) createValidation(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		scale, err := r.scaleOf(obj)
		if err != nil {
			return err
		}
		return validate(ctx, scale)
	}
}

func (r *ScaleREST[T]) updateValidation(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		scale, err := r.scaleOf(obj)
		if err != nil {
			return err
		}
		oldScale, err := r.scaleOf(old)
		if err != nil {
			return err
		}
		return validate(ctx, scale, oldScale)
	}
}

func (r *ScaleREST[T]) scaleOf(obj runtime.Object) (*scheme.Scale, error) {
	typed, ok := obj.(T)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("scale of %T", obj))
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	spec, status, selectorText := r.scalable.Get(typed)
	selector, err := metav1.ParseToLabelSelector(selectorText)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("selector %q of %s: %w", selectorText, accessor.GetName(), err))
	}
	return &scheme.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name:              accessor.GetName(),
			Namespace:         accessor.GetNamespace(),
			UID:               accessor.GetUID(),
			ResourceVersion:   accessor.GetResourceVersion(),
			CreationTimestamp: accessor.GetCreationTimestamp(),
		},
		Spec:   scheme.ScaleSpec{Replicas: spec},
		Status: scheme.ScaleStatus{Replicas: status, Selector: selector},
	}, nil
}

// scaledObject turns the request's change of a Scale into a change of the object.
type scaledObject[T runtime.Object] struct {
	rest.UpdatedObjectInfo
	rest *ScaleREST[T]
	name string
}

// UpdatedObject returns the object with the requested size. Ownership of spec.replicas
// moves between the managers of the object and those of its scale.
func (s *scaledObject[T]) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	obj := old.DeepCopyObject()
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	// The store hands in an empty object where none exists.
	if accessor.GetResourceVersion() == "" {
		return nil, apierrors.NewNotFound(s.rest.store.DefaultQualifiedResource, s.name)
	}
	oldScale, err := s.rest.scaleOf(obj)
	if err != nil {
		return nil, err
	}
	fields := managedfields.NewScaleHandler(accessor.GetManagedFields(), s.rest.scalable.GroupVersion, s.rest.paths)
	if oldScale.ManagedFields, err = fields.ToSubresource(); err != nil {
		return nil, err
	}

	updated, err := s.UpdatedObjectInfo.UpdatedObject(ctx, oldScale)
	if err != nil {
		return nil, err
	}
	scale, ok := updated.(*scheme.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a Scale, got %T", updated))
	}
	if err := s.validate(scale, accessor); err != nil {
		return nil, err
	}
	typed, ok := obj.(T)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("scale of %T", obj))
	}
	if err := s.validateSize(ctx, typed, oldScale.Spec.Replicas, scale.Spec.Replicas); err != nil {
		return nil, err
	}
	s.rest.scalable.Set(typed, scale.Spec.Replicas)
	accessor.SetResourceVersion(scale.ResourceVersion)
	parentFields, err := fields.ToParent(scale.ManagedFields)
	if err != nil {
		return nil, err
	}
	accessor.SetManagedFields(parentFields)
	return obj, nil
}

// validate checks what is wrong with the Scale itself.
func (s *scaledObject[T]) validate(scale *scheme.Scale, parent metav1.Object) error {
	if scale.Name != "" && scale.Name != parent.GetName() {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the Scale (%s) does not match the request (%s)", scale.Name, parent.GetName()))
	}
	if scale.UID != "" && scale.UID != parent.GetUID() {
		return apierrors.NewConflict(s.rest.store.DefaultQualifiedResource, s.name,
			fmt.Errorf("the object has UID %s, the request asks for %s", parent.GetUID(), scale.UID))
	}
	return nil
}

// validateSize checks that the object may have the size that is asked for. An object
// that is outside its bounds already may stay what it is.
func (s *scaledObject[T]) validateSize(ctx context.Context, obj T, current, replicas int32) error {
	if replicas == current {
		return nil
	}
	bounds, err := s.rest.scalable.Bounds(ctx, obj)
	if err != nil {
		return err
	}
	if errs := bounds.validate(replicas, field.NewPath("spec", "replicas")); len(errs) > 0 {
		return apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), s.name, errs)
	}
	return nil
}
