// Package storage holds the REST endpoints of PodClique and its columns.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/registry/grove/podclique"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// Storage is the endpoints of PodClique.
type Storage struct {
	PodClique *REST
	Status    *internalrest.StatusREST
	Scale     *internalrest.ScaleREST[*grove.PodClique]
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
func (*REST) ShortNames() []string { return []string{"pclq"} }

// Categories are the groups of kinds that kubectl get shows the kind in.
func (*REST) Categories() []string { return []string{"grove"} }

// NewStorage returns the endpoints, over one store. refusals is told of refused moves of
// the status.
func NewStorage(typer runtime.ObjectTyper, refusals internalrest.Refusals, optsGetter generic.RESTOptionsGetter) (Storage, error) {
	strategy := podclique.NewStrategy(typer)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &grove.PodClique{} },
		NewListFunc:               func() runtime.Object { return &grove.PodCliqueList{} },
		DefaultQualifiedResource:  grove.Resource("podcliques"),
		SingularQualifiedResource: grove.Resource("podclique"),
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            columns(),
	}
	options := &generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: podclique.GetAttrs}
	if err := store.CompleteWithOptions(options); err != nil {
		return Storage{}, err
	}
	return Storage{
		PodClique: &REST{store},
		Status:    internalrest.NewStatusREST(store, podclique.NewStatusStrategy(strategy), refusals),
		Scale:     internalrest.NewScaleREST(store, scalable()),
	}, nil
}
