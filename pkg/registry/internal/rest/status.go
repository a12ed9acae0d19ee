package rest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// StatusStrategy is what a kind's status endpoint needs beside the kind's store.
type StatusStrategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// StatusREST is the status subresource of a kind.
type StatusREST struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
	_ rest.TableConvertor      = &StatusREST{}
)

// NewStatusREST returns the status subresource of the kind of store: the same etcd
// keys and watch cache, under the rules of strategy. refusals is told what they refuse.
func NewStatusREST(store *genericregistry.Store, strategy StatusStrategy, refusals Refusals) *StatusREST {
	statusStore := *store
	statusStore.CreateStrategy = nil
	statusStore.DeleteStrategy = nil
	statusStore.UpdateStrategy = observedStrategy{StatusStrategy: strategy, resource: store.DefaultQualifiedResource.Resource, refusals: refusals}
	statusStore.ResetFieldsStrategy = strategy
	return &StatusREST{store: &statusStore}
}

// New returns an empty object of the kind.
func (r *StatusREST) New() runtime.Object {
	return r.store.New()
}

// Destroy does nothing: the store belongs to the kind's main endpoint.
func (r *StatusREST) Destroy() {}

// Get reads the object, as patches need.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update writes the object's status. It never creates the object.
func (r *StatusREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields names the fields that this endpoint does not write.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable renders the object as the main endpoint does.
func (r *StatusREST) ConvertToTable(ctx context.Context, object runtime.Object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}
