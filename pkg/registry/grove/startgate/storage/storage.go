// Package storage holds the REST endpoints of StartGate and its columns.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/registry/grove/startgate"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// Storage is the endpoints of StartGate.
type Storage struct {
	StartGate *REST
	Status    *internalrest.StatusREST
}

// REST is the main endpoint.
type REST struct {
	*genericregistry.Store
}

var (
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// ShortNames are what kubectl calls the kind.
func (*REST) ShortNames() []string { return []string{"sgate"} }

// Categories are the groups of kinds that kubectl get shows the kind in.
func (*REST) Categories() []string { return []string{"grove"} }

// NewStorage returns the endpoints, over one store. refusals is told of refused moves of
// the status.
func NewStorage(typer runtime.ObjectTyper, refusals internalrest.Refusals, optsGetter generic.RESTOptionsGetter) (Storage, error) {
	strategy := startgate.NewStrategy(typer)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &grove.StartGate{} },
		NewListFunc:               func() runtime.Object { return &grove.StartGateList{} },
		DefaultQualifiedResource:  grove.Resource("startgates"),
		SingularQualifiedResource: grove.Resource("startgate"),
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            columns(),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter}); err != nil {
		return Storage{}, err
	}
	return Storage{
		StartGate: &REST{store},
		Status:    internalrest.NewStatusREST(store, startgate.NewStatusStrategy(strategy), refusals),
	}, nil
}
