// Package storage holds the REST endpoints of PodGang and its columns.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
	"github.com/copse-dev/copse/pkg/registry/scheduler/podgang"
)

// Storage is the endpoints of PodGang.
type Storage struct {
	PodGang *REST
	Status  *internalrest.StatusREST
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
func (*REST) ShortNames() []string { return []string{"pg"} }

// Categories are the groups of kinds that kubectl get shows the kind in.
func (*REST) Categories() []string { return []string{"grove"} }

// NewStorage returns the endpoints, over one store. refusals is told of refused moves of
// the status.
func NewStorage(typer runtime.ObjectTyper, refusals internalrest.Refusals, optsGetter generic.RESTOptionsGetter) (Storage, error) {
	strategy := podgang.NewStrategy(typer)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &scheduler.PodGang{} },
		NewListFunc:               func() runtime.Object { return &scheduler.PodGangList{} },
		DefaultQualifiedResource:  scheduler.Resource("podgangs"),
		SingularQualifiedResource: scheduler.Resource("podgang"),
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            columns(),
	}
	options := &generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: podgang.GetAttrs}
	if err := store.CompleteWithOptions(options); err != nil {
		return Storage{}, err
	}
	return Storage{
		PodGang: &REST{store},
		Status:  internalrest.NewStatusREST(store, podgang.NewStatusStrategy(strategy), refusals),
	}, nil
}
