package podcliquescalinggroup

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/gang"
)

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(mgr manager.Manager, options controller.Options) error {
	cache := mgr.GetCache()
	return builder.ControllerManagedBy(mgr).
		Named("podcliquescalinggroup").
		WithOptions(options).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodCliqueScalingGroup{},
			&handler.TypedEnqueueRequestForObject[*grovev1alpha1.PodCliqueScalingGroup]{})).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodClique{},
			handler.TypedEnqueueRequestsFromMapFunc(groupOfClique))).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodCliqueSet{},
			handler.TypedEnqueueRequestsFromMapFunc(r.groupsOfSet), setChanged())).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.StartGate{},
			handler.TypedEnqueueRequestsFromMapFunc(r.groupsOfGate))).
		Complete(r)
}

// groupsOfGate are the groups of the set whose gate this is: a barrier that has expired
// ends the attempts of copies.
func (r *Reconciler) groupsOfGate(ctx context.Context, gate *grovev1alpha1.StartGate) []reconcile.Request {
	owner := metav1.GetControllerOfNoCopy(gate)
	if owner == nil {
		return nil
	}
	return r.groupsOfSet(ctx, &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: gate.Namespace, UID: owner.UID}})
}

// setChanged lets through what a group's decision depends on: the delays, the parent's
// state, the attempts, and whose turn in an update it is.
func setChanged() predicate.TypedPredicate[*grovev1alpha1.PodCliqueSet] {
	return predicate.TypedFuncs[*grovev1alpha1.PodCliqueSet]{
		UpdateFunc: func(e event.TypedUpdateEvent[*grovev1alpha1.PodCliqueSet]) bool {
			return e.ObjectOld.Generation != e.ObjectNew.Generation ||
				gang.ParentOf(e.ObjectOld) != gang.ParentOf(e.ObjectNew) ||
				gang.SumOfAttempts(e.ObjectOld) != gang.SumOfAttempts(e.ObjectNew) ||
				!gang.SameTurns(e.ObjectOld, e.ObjectNew)
		},
	}
}

func (r *Reconciler) groupsOfSet(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet) []reconcile.Request {
	var groups grovev1alpha1.PodCliqueScalingGroupList
	if err := r.Cache.List(ctx, &groups, index.OwnedBy(pcs.Namespace, pcs.UID)...); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(groups.Items))
	for i := range groups.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&groups.Items[i])})
	}
	return requests
}

func groupOfClique(_ context.Context, clique *grovev1alpha1.PodClique) []reconcile.Request {
	ref := metav1.GetControllerOfNoCopy(clique)
	if ref == nil || ref.Kind != "PodCliqueScalingGroup" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: clique.Namespace, Name: ref.Name}}}
}
