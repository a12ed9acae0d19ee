// Package podgang keeps the scheduler's own group objects in line with PodGangs and
// writes PodGang status.
package podgang

import (
	"context"
	"fmt"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
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
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/scheduling"
)

// Reconciler brings gangs to the scheduler and the scheduler's answer to the gangs.
type Reconciler struct {
	Client client.Client
	Clock  clock.Clock
	// Backend schedules gangs; nil where the cluster cannot.
	Backend scheduling.Backend
}

// Reconcile syncs one gang with the scheduler and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	podGang := &schedulerv1alpha1.PodGang{}
	if err := r.Client.Get(ctx, req.NamespacedName, podGang); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if podGang.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	snapshot := gang.GangSnapshot{PodGang: podGang, Supported: r.Backend != nil, Cliques: map[string]*grovev1alpha1.PodClique{}}
	for _, group := range podGang.Spec.PodGroups {
		clique := &grovev1alpha1.PodClique{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: podGang.Namespace, Name: group.Name}, clique)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("read clique %s: %w", group.Name, err)
		}
		if err == nil {
			snapshot.Cliques[group.Name] = clique
		}
	}
	if r.Backend != nil {
		if err := r.Backend.Sync(ctx, podGang, gang.MembersNeeded(podGang, snapshot.Cliques)); err != nil {
			return reconcile.Result{}, err
		}
		observation, err := r.Backend.Observe(ctx, podGang)
		if err != nil {
			return reconcile.Result{}, err
		}
		snapshot.Scheduled, snapshot.Reason, snapshot.Message = observation.Scheduled, observation.Reason, observation.Message
	}
	status, changed := gang.DecideGang(snapshot, r.Clock.Now())
	if !changed {
		return reconcile.Result{}, nil
	}
	updated := podGang.DeepCopy()
	updated.Status = status
	if err := r.Client.Status().Update(ctx, updated); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write the status: %w", err)
	}
	return reconcile.Result{}, nil
}

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(mgr manager.Manager, options controller.Options) error {
	cache := mgr.GetCache()
	b := builder.ControllerManagedBy(mgr).
		Named("podgang").
		WithOptions(options).
		WatchesRawSource(source.Kind(cache, &schedulerv1alpha1.PodGang{},
			&handler.TypedEnqueueRequestForObject[*schedulerv1alpha1.PodGang]{})).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodClique{},
			handler.TypedEnqueueRequestsFromMapFunc(gangOfClique), membersChanged()))
	if r.Backend != nil {
		b = b.WatchesRawSource(source.Kind(cache, &schedulingv1beta1.PodGroup{},
			handler.TypedEnqueueRequestForOwner[*schedulingv1beta1.PodGroup](mgr.GetScheme(), mgr.GetRESTMapper(), &schedulerv1alpha1.PodGang{}, handler.OnlyControllerOwner())))
	}
	return b.Complete(r)
}

func gangOfClique(_ context.Context, clique *grovev1alpha1.PodClique) []reconcile.Request {
	name := clique.Labels[labels.PodGang]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: clique.Namespace, Name: name}}}
}

// membersChanged lets through what the status of a gang counts.
func membersChanged() predicate.TypedPredicate[*grovev1alpha1.PodClique] {
	return predicate.TypedFuncs[*grovev1alpha1.PodClique]{
		UpdateFunc: func(e event.TypedUpdateEvent[*grovev1alpha1.PodClique]) bool {
			before, after := &e.ObjectOld.Status, &e.ObjectNew.Status
			return before.Replicas != after.Replicas || before.CompletedIndexes != after.CompletedIndexes || before.ScheduledReplicas != after.ScheduledReplicas ||
				before.ObservedAttempt != after.ObservedAttempt || gang.IsAvailable(e.ObjectOld) != gang.IsAvailable(e.ObjectNew)
		},
	}
}
