package storageguard

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// Owners lists the objects of kinds that pods name as owners.
type Owners func(ctx context.Context, kinds map[string]bool) (Attempts, error)

// OwnersIn lists in the storage of API groups, as the server itself would: past its
// authorization and past the guard, and whatever encrypts what is in etcd.
func OwnersIn(typer runtime.ObjectTyper, groups ...map[string]rest.Storage) (Owners, error) {
	listers := map[string]rest.Lister{}
	for _, group := range groups {
		for resource, storage := range group {
			lister, ok := storage.(rest.Lister)
			if !ok || strings.Contains(resource, "/") {
				continue
			}
			kinds, _, err := typer.ObjectKinds(storage.New())
			if err != nil {
				return nil, fmt.Errorf("kind of %s: %w", resource, err)
			}
			listers[kinds[0].Kind] = lister
		}
	}
	return func(ctx context.Context, kinds map[string]bool) (Attempts, error) {
		have := Attempts{}
		for kind := range kinds {
			lister, ok := listers[kind]
			if !ok {
				// This server answers 404 for it, as the API without such a kind.
				continue
			}
			list, err := lister.List(ctx, &metainternalversion.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list objects of kind %s: %w", kind, err)
			}
			if err := meta.EachListItem(list, have.add); err != nil {
				return nil, fmt.Errorf("read objects of kind %s: %w", kind, err)
			}
		}
		return have, nil
	}, nil
}

func (a Attempts) add(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	attempt := int32(0)
	if clique, ok := object.(*grove.PodClique); ok {
		attempt = clique.Spec.Attempt
	}
	a[accessor.GetUID()] = attempt
	return nil
}
