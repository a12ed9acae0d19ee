package podclique

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
)

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(mgr manager.Manager, options controller.Options) error {
	cache := mgr.GetCache()
	return builder.ControllerManagedBy(mgr).
		Named("podclique").
		WithOptions(options).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodClique{},
			&handler.TypedEnqueueRequestForObject[*grovev1alpha1.PodClique]{})).
		WatchesRawSource(source.Kind(cache, &corev1.Pod{},
			handler.TypedEnqueueRequestForOwner[*corev1.Pod](mgr.GetScheme(), mgr.GetRESTMapper(), &grovev1alpha1.PodClique{}, handler.OnlyControllerOwner()))).
		WatchesRawSource(source.Kind(cache, &schedulerv1alpha1.PodGang{},
			handler.TypedEnqueueRequestsFromMapFunc(r.cliquesOfGang), gangChanged())).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodCliqueSet{},
			handler.TypedEnqueueRequestsFromMapFunc(cliquesOf[*grovev1alpha1.PodCliqueSet](r.Cache)), parentChanged())).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodCliqueScalingGroup{},
			handler.TypedEnqueueRequestsFromMapFunc(cliquesOf[*grovev1alpha1.PodCliqueScalingGroup](r.Cache)), turnsChanged())).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodClique{},
			handler.TypedEnqueueRequestsFromMapFunc(r.siblings), drained())).
		WatchesRawSource(source.Kind(cache, &corev1.Node{},
			handler.TypedEnqueueRequestsFromMapFunc(r.cliquesOfNode), nodeDied())).
		Complete(r)
}

// gangChanged lets through what lets pods be made: the gang itself, that its scheduler has been
// told of it, and its being scheduled.
func gangChanged() predicate.TypedPredicate[*schedulerv1alpha1.PodGang] {
	return predicate.TypedFuncs[*schedulerv1alpha1.PodGang]{
		UpdateFunc: func(e event.TypedUpdateEvent[*schedulerv1alpha1.PodGang]) bool {
			return e.ObjectOld.Generation != e.ObjectNew.Generation ||
				gang.GangAttempt(e.ObjectOld) != gang.GangAttempt(e.ObjectNew) ||
				gang.IsTold(e.ObjectOld) != gang.IsTold(e.ObjectNew) ||
				gang.WasScheduled(e.ObjectOld) != gang.WasScheduled(e.ObjectNew)
		},
	}
}

// parentChanged lets through what a set lets its cliques do, and its templates.
func parentChanged() predicate.TypedPredicate[*grovev1alpha1.PodCliqueSet] {
	return predicate.TypedFuncs[*grovev1alpha1.PodCliqueSet]{
		UpdateFunc: func(e event.TypedUpdateEvent[*grovev1alpha1.PodCliqueSet]) bool {
			return e.ObjectOld.Generation != e.ObjectNew.Generation ||
				gang.ParentOf(e.ObjectOld) != gang.ParentOf(e.ObjectNew) ||
				gang.SumOfAttempts(e.ObjectOld) != gang.SumOfAttempts(e.ObjectNew) ||
				!gang.SameTurns(e.ObjectOld, e.ObjectNew)
		},
	}
}

// turnsChanged lets through scaling groups whose update has come to other copies.
func turnsChanged() predicate.TypedPredicate[*grovev1alpha1.PodCliqueScalingGroup] {
	return predicate.TypedFuncs[*grovev1alpha1.PodCliqueScalingGroup]{
		UpdateFunc: func(e event.TypedUpdateEvent[*grovev1alpha1.PodCliqueScalingGroup]) bool {
			return !gang.SameCopyTurns(e.ObjectOld, e.ObjectNew)
		},
	}
}

// drained lets through cliques whose last old pod has gone, or that have gone themselves:
// others may wait for that (D19).
func drained() predicate.TypedPredicate[*grovev1alpha1.PodClique] {
	return predicate.TypedFuncs[*grovev1alpha1.PodClique]{
		CreateFunc: func(event.TypedCreateEvent[*grovev1alpha1.PodClique]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*grovev1alpha1.PodClique]) bool {
			before, after := &e.ObjectOld.Status, &e.ObjectNew.Status
			return (before.OldReplicas > 0 || before.ObservedAttempt != after.ObservedAttempt) && after.OldReplicas == 0
		},
	}
}

// siblings are the cliques of the same replica that are in the middle of a restart.
func (r *Reconciler) siblings(ctx context.Context, clique *grovev1alpha1.PodClique) []reconcile.Request {
	replica, ok := labels.ParseIndex(clique.Labels[labels.ReplicaIndex])
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, ref := range clique.OwnerReferences {
		var cliques grovev1alpha1.PodCliqueList
		if ref.Kind != "PodCliqueSet" || r.Cache.List(ctx, &cliques, index.OwnedByReplica(clique.Namespace, ref.UID, replica)...) != nil {
			continue
		}
		for i := range cliques.Items {
			if cliques.Items[i].UID != clique.UID && gang.IsBeginning(&cliques.Items[i]) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&cliques.Items[i])})
			}
		}
	}
	return requests
}

// cliquesOfGang are the gang's own cliques and, for a base gang, those of the replica's
// scaled gangs, which wait for it.
func (r *Reconciler) cliquesOfGang(ctx context.Context, podGang *schedulerv1alpha1.PodGang) []reconcile.Request {
	replica, ok := labels.ParseIndex(podGang.Labels[labels.ReplicaIndex])
	if !ok || len(podGang.OwnerReferences) == 0 {
		return nil
	}
	var cliques grovev1alpha1.PodCliqueList
	if err := r.Cache.List(ctx, &cliques, index.OwnedByReplica(podGang.Namespace, podGang.OwnerReferences[0].UID, replica)...); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range cliques.Items {
		if l := cliques.Items[i].Labels; l[labels.PodGang] == podGang.Name || l[labels.BasePodGang] == podGang.Name {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&cliques.Items[i])})
		}
	}
	return requests
}

// cliquesOf are the cliques of an owner: of a set, or of a scaling group.
func cliquesOf[T client.Object](cache client.Reader) handler.TypedMapFunc[T, reconcile.Request] {
	return func(ctx context.Context, owner T) []reconcile.Request {
		var cliques grovev1alpha1.PodCliqueList
		if err := cache.List(ctx, &cliques, index.OwnedBy(owner.GetNamespace(), owner.GetUID())...); err != nil {
			return nil
		}
		requests := make([]reconcile.Request, 0, len(cliques.Items))
		for i := range cliques.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&cliques.Items[i])})
		}
		return requests
	}
}
