// Package podgang keeps the scheduler's own group objects in line with PodGangs and
// writes PodGang status.
package podgang

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/copse-dev/copse/pkg/scheduling/kai"
)

// Reconciler brings gangs to the scheduler and the scheduler's answer to the gangs.
type Reconciler struct {
	Client client.Client
	Clock  clock.Clock
	// Backends schedule gangs.
	Backends *scheduling.Backends
	// NativeGroups says that the cluster serves the scheduler's own groups.
	NativeGroups bool
	// KAIGroups says that it serves KAI's.
	KAIGroups bool
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
	snapshot := gang.GangSnapshot{PodGang: podGang, Cliques: map[string]*grovev1alpha1.PodClique{}}
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
	backend := r.Backends.For(schedulerOf(podGang, snapshot.Cliques))
	refusal := backend.Sync(ctx, podGang, gang.MembersNeeded(podGang, snapshot.Cliques))
	if refusal != nil && !isRefusal(refusal) {
		return reconcile.Result{}, refusal
	}
	observation, err := r.observe(ctx, backend, podGang, snapshot.Cliques)
	if err != nil {
		return reconcile.Result{}, err
	}
	tellRefusal(observation.Why, refusal)
	snapshot.Scheduled, snapshot.Untold, snapshot.AllOrNothing = observation.Scheduled, observation.Untold, observation.AllOrNothing
	snapshot.Why, snapshot.Gated = observation.Why, observation.Gated
	status, changed := gang.DecideGang(snapshot, r.Clock.Now())
	if !changed {
		return reconcile.Result{}, refusal
	}
	updated := podGang.DeepCopy()
	updated.Status = status
	if err := r.Client.Status().Update(ctx, updated); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write the status: %w", err)
	}
	return reconcile.Result{}, refusal
}

// isRefusal says that the API server, or a policy of the cluster, does not want what was
// sent: it is tried again, but people have to be told.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// tellRefusal adds to the news that the scheduler's group is missing why it is.
func tellRefusal(why []schedulerv1alpha1.UnschedulableExplanation, refusal error) {
	if refusal != nil && len(why) > 0 && why[0].Reason == schedulerv1alpha1.ReasonPodGroupMissing {
		why[0].Message += ": " + refusal.Error()
	}
}

// observe asks the back end, and where it has placed the gang already, the pods that wait
// all the same: they take the place of others.
func (r *Reconciler) observe(ctx context.Context, backend scheduling.Backend, podGang *schedulerv1alpha1.PodGang, cliques map[string]*grovev1alpha1.PodClique) (scheduling.Observation, error) {
	observation, err := backend.Observe(ctx, podGang)
	if err != nil || len(observation.Why) > 0 || !gang.WasScheduled(podGang) || !gang.PodsWait(podGang, cliques) {
		return observation, err
	}
	members, err := scheduling.Members(ctx, r.Client, podGang)
	observation.Why, observation.Gated = scheduling.Unplaced(members), scheduling.Gated(members)
	return observation, err
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
			handler.TypedEnqueueRequestsFromMapFunc(gangOfClique), membersChanged())).
		WatchesRawSource(source.Kind(cache, &corev1.Pod{},
			handler.TypedEnqueueRequestsFromMapFunc(gangOfPod), heldOrRefused()))
	if r.NativeGroups {
		b = b.WatchesRawSource(source.Kind(cache, &schedulingv1beta1.PodGroup{},
			handler.TypedEnqueueRequestForOwner[*schedulingv1beta1.PodGroup](mgr.GetScheme(), mgr.GetRESTMapper(), &schedulerv1alpha1.PodGang{}, handler.OnlyControllerOwner())))
	}
	if r.KAIGroups {
		b = b.WatchesRawSource(source.Kind(cache, &kai.PodGroup{},
			handler.TypedEnqueueRequestForOwner[*kai.PodGroup](mgr.GetScheme(), mgr.GetRESTMapper(), &schedulerv1alpha1.PodGang{}, handler.OnlyControllerOwner())))
	}
	return b.Complete(r)
}

// schedulerOf is the scheduler of a gang: all its pods have the same. Its label says it too,
// unless the name is longer than a label can be.
func schedulerOf(podGang *schedulerv1alpha1.PodGang, cliques map[string]*grovev1alpha1.PodClique) string {
	for _, clique := range cliques {
		return clique.Spec.PodSpec.SchedulerName
	}
	return podGang.Labels[labels.SchedulerName]
}

func gangOfPod(_ context.Context, pod *corev1.Pod) []reconcile.Request {
	name := pod.Labels[labels.PodGang]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}}}
}

// heldOrRefused lets through pods that wait to be released, and what a scheduler says about
// those that it does not place.
func heldOrRefused() predicate.TypedPredicate[*corev1.Pod] {
	waits := func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == "" && (len(pod.Spec.SchedulingGates) > 0 || refusalOf(pod) != nil)
	}
	return predicate.TypedFuncs[*corev1.Pod]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1.Pod]) bool { return waits(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool {
			return waits(e.ObjectNew) && !apiequality.Semantic.DeepEqual(refusalOf(e.ObjectOld), refusalOf(e.ObjectNew))
		},
		DeleteFunc: func(event.TypedDeleteEvent[*corev1.Pod]) bool { return false },
	}
}

// refusalOf is what a scheduler says about a pod that it does not place.
func refusalOf(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c
		}
	}
	return nil
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
