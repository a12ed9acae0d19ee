// Package storage holds the REST endpoints of PodCliqueScalingGroup and its columns.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/registry/grove/podcliquescalinggroup"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// Storage is the endpoints of PodCliqueScalingGroup.
type Storage struct {
	PodCliqueScalingGroup *REST
	Status                *internalrest.StatusREST
	Scale                 *internalrest.ScaleREST[*grove.PodCliqueScalingGroup]
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
func (*REST) ShortNames() []string { return []string{"pcsg"} }

// Categories are the groups of kinds that kubectl get shows the kind in.
func (*REST) Categories() []string { return []string{"grove"} }

// NewStorage returns the endpoints, over one store. refusals is told of refused moves of
// the status, and sets is where the sets of scaling groups are found.
func NewStorage(typer runtime.ObjectTyper, sets rest.Getter, refusals internalrest.Refusals, optsGetter generic.RESTOptionsGetter) (Storage, error) {
	strategy := podcliquescalinggroup.NewStrategy(typer)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &grove.PodCliqueScalingGroup{} },
		NewListFunc:               func() runtime.Object { return &grove.PodCliqueScalingGroupList{} },
		DefaultQualifiedResource:  grove.Resource("podcliquescalinggroups"),
		SingularQualifiedResource: grove.Resource("podcliquescalinggroup"),
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            columns(),
	}
	options := &generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: podcliquescalinggroup.GetAttrs}
	if err := store.CompleteWithOptions(options); err != nil {
		return Storage{}, err
	}
	return Storage{
		PodCliqueScalingGroup: &REST{store},
		Status:                internalrest.NewStatusREST(store, podcliquescalinggroup.NewStatusStrategy(strategy), refusals),
		Scale:                 internalrest.NewScaleREST(store, scalable(sets)),
	}, nil
}
