// Package topology tells controllers what the topology constraints of a set speak of, and
// which sets a ClusterTopologyBinding concerns.
package topology

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/scheduling"
)

// Source knows what schedulers do about topology.
type Source struct {
	// Off says that topology is switched off.
	Off bool
	// Backends schedule gangs.
	Backends *scheduling.Backends
}

// Of is what is known of the topology of a set; nothing when it has no constraints.
func (s Source) Of(ctx context.Context, reader client.Reader, pcs *grovev1alpha1.PodCliqueSet) (gang.Topology, error) {
	name, constrained := gang.TopologyName(pcs)
	if !constrained {
		return gang.Topology{}, nil
	}
	out := gang.Topology{Off: s.Off, Support: s.Backends.For(gang.SchedulerOf(pcs)).Topology()}
	if s.Off || name == "" {
		return out, nil
	}
	binding := &grovev1alpha1.ClusterTopologyBinding{}
	err := reader.Get(ctx, types.NamespacedName{Name: name}, binding)
	switch {
	case apierrors.IsNotFound(err):
		return out, nil
	case err != nil:
		return gang.Topology{}, fmt.Errorf("read ClusterTopologyBinding %s: %w", name, err)
	}
	out.Binding = binding
	return out, nil
}

// Same says that two observations of a set's topology have the same levels.
func Same(a, b gang.Topology) bool {
	if a.Binding == nil || b.Binding == nil {
		return a.Binding == b.Binding
	}
	return a.Binding.UID == b.Binding.UID && a.Binding.Generation == b.Binding.Generation
}

// SetsOf are the sets that name a binding. They are the cache's own and must not be changed.
func SetsOf(ctx context.Context, cache client.Reader, binding *grovev1alpha1.ClusterTopologyBinding) []*grovev1alpha1.PodCliqueSet {
	var sets grovev1alpha1.PodCliqueSetList
	if err := cache.List(ctx, &sets, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the sets of a topology", "binding", binding.Name)
		return nil
	}
	var out []*grovev1alpha1.PodCliqueSet
	for i := range sets.Items {
		if name, _ := gang.TopologyName(&sets.Items[i]); name == binding.Name {
			out = append(out, &sets.Items[i])
		}
	}
	return out
}

// LevelsChanged lets through bindings that come, change or go; most updates are of a status.
func LevelsChanged() predicate.TypedPredicate[*grovev1alpha1.ClusterTopologyBinding] {
	return predicate.TypedFuncs[*grovev1alpha1.ClusterTopologyBinding]{
		UpdateFunc: func(e event.TypedUpdateEvent[*grovev1alpha1.ClusterTopologyBinding]) bool {
			return e.ObjectOld.Generation != e.ObjectNew.Generation || e.ObjectOld.UID != e.ObjectNew.UID
		},
	}
}
