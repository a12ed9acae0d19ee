// Package storage holds the REST endpoints of PodGroup and its columns.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
	"github.com/copse-dev/copse/pkg/registry/scheduler/podgroup"
)

// Storage is the endpoints of PodGroup.
type Storage struct {
	PodGroup *REST
	Status   *internalrest.StatusREST
}

// REST is the main endpoint.
type REST struct {
	*genericregistry.Store
}

var (
	_ rest.CategoriesProvider = &REST{}
)

// Categories are the groups of kinds that kubectl get shows the kind in.
func (*REST) Categories() []string { return []string{"grove"} }

// NewStorage returns the endpoints, over one store. refusals is told of refused moves of
// the status.
func NewStorage(typer runtime.ObjectTyper, refusals internalrest.Refusals, optsGetter generic.RESTOptionsGetter) (Storage, error) {
	strategy := podgroup.NewStrategy(typer)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &scheduler.PodGroup{} },
		NewListFunc:               func() runtime.Object { return &scheduler.PodGroupList{} },
		DefaultQualifiedResource:  scheduler.Resource("podgroups"),
		SingularQualifiedResource: scheduler.Resource("podgroup"),
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            columns(),
	}
	options := &generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: podgroup.GetAttrs}
	if err := store.CompleteWithOptions(options); err != nil {
		return Storage{}, err
	}
	return Storage{
		PodGroup: &REST{store},
		Status:   internalrest.NewStatusREST(store, podgroup.NewStatusStrategy(strategy), refusals),
	}, nil
}
