package clustertopologybinding

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/topology"
	"github.com/copse-dev/copse/pkg/scheduling/kai"
)

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(mgr manager.Manager, options controller.Options) error {
	cache := mgr.GetCache()
	b := builder.ControllerManagedBy(mgr).
		Named("clustertopologybinding").
		WithOptions(options).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.ClusterTopologyBinding{},
			&handler.TypedEnqueueRequestForObject[*grovev1alpha1.ClusterTopologyBinding]{}, topology.LevelsChanged()))
	if len(r.KAISchedulers) > 0 {
		b = b.WatchesRawSource(source.Kind(cache, &kai.Topology{}, handler.TypedEnqueueRequestsFromMapFunc(r.bindingsOf(cache))))
	}
	return b.Complete(r)
}

// bindingsOf are the bindings that one of KAI's topologies belongs to, or may.
func (r *Reconciler) bindingsOf(cache client.Reader) handler.TypedMapFunc[*kai.Topology, reconcile.Request] {
	return func(ctx context.Context, topology *kai.Topology) []reconcile.Request {
		var bindings grovev1alpha1.ClusterTopologyBindingList
		if err := cache.List(ctx, &bindings, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "Cannot list the bindings of a topology", "topology", topology.Name)
			return nil
		}
		var out []reconcile.Request
		for i := range bindings.Items {
			if binding := &bindings.Items[i]; slices.Contains(namesOf(binding, r.KAISchedulers), topology.Name) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(binding)})
			}
		}
		return out
	}
}
