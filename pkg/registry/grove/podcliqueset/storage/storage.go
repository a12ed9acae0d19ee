// Package storage holds the REST endpoints of PodCliqueSet and its columns.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliqueset"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// Storage is the endpoints of PodCliqueSet.
type Storage struct {
	PodCliqueSet *REST
	Status       *internalrest.StatusREST
	Scale        *internalrest.ScaleREST[*grove.PodCliqueSet]
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
func (*REST) ShortNames() []string { return []string{"pcs"} }

// Categories are the groups of kinds that kubectl get shows the kind in.
func (*REST) Categories() []string { return []string{"all", "grove"} }

// NewStorage returns the endpoints, over one store. topologies gets the topologies that
// sets name; refusals is told of refused moves of the status.
func NewStorage(typer runtime.ObjectTyper, defaults podcliqueset.Defaults, topologies rest.Getter, refusals internalrest.Refusals, optsGetter generic.RESTOptionsGetter) (Storage, error) {
	strategy := podcliqueset.NewStrategy(typer, defaults, topologies)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &grove.PodCliqueSet{} },
		NewListFunc:               func() runtime.Object { return &grove.PodCliqueSetList{} },
		DefaultQualifiedResource:  grove.Resource("podcliquesets"),
		SingularQualifiedResource: grove.Resource("podcliqueset"),
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            columns(),
	}
	options := &generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: podcliqueset.GetAttrs}
	if err := store.CompleteWithOptions(options); err != nil {
		return Storage{}, err
	}
	return Storage{
		PodCliqueSet: &REST{store},
		Status:       internalrest.NewStatusREST(store, podcliqueset.NewStatusStrategy(strategy), refusals),
		Scale:        internalrest.NewScaleREST(store, scalable()),
	}, nil
}
