package podcliqueset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
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
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/topology"
	"github.com/copse-dev/copse/pkg/labels"
)

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(mgr manager.Manager, options controller.Options) error {
	cache := mgr.GetCache()
	b := builder.ControllerManagedBy(mgr).
		Named("podcliqueset").
		WithOptions(options).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodCliqueSet{},
			&handler.TypedEnqueueRequestForObject[*grovev1alpha1.PodCliqueSet]{})).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodClique{},
			handler.TypedEnqueueRequestsFromMapFunc(setOf[*grovev1alpha1.PodClique]))).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodCliqueScalingGroup{},
			handler.TypedEnqueueRequestsFromMapFunc(setOf[*grovev1alpha1.PodCliqueScalingGroup]))).
		WatchesRawSource(source.Kind(cache, &schedulerv1alpha1.PodGang{},
			handler.TypedEnqueueRequestsFromMapFunc(setOf[*schedulerv1alpha1.PodGang]))).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.StartGate{},
			handler.TypedEnqueueRequestsFromMapFunc(setOf[*grovev1alpha1.StartGate]))).
		WatchesRawSource(source.Kind(cache, &corev1.Service{},
			handler.TypedEnqueueRequestsFromMapFunc(setOf[*corev1.Service]), deleted[*corev1.Service]())).
		WatchesRawSource(source.Kind(cache, &corev1.Pod{},
			handler.TypedEnqueueRequestsFromMapFunc(setOfPod), ended()))
	if r.ResourceClaims {
		b = b.WatchesRawSource(source.Kind(cache, &resourcev1.ResourceClaimTemplate{},
			handler.TypedEnqueueRequestsFromMapFunc(r.setsOfTemplate), cameOrWent()))
	}
	if !r.Topology.Off {
		b = b.WatchesRawSource(source.Kind(cache, &grovev1alpha1.ClusterTopologyBinding{},
			handler.TypedEnqueueRequestsFromMapFunc(setsOfBinding(cache)), topology.LevelsChanged()))
	}
	return b.Complete(r)
}

// setsOfBinding are the sets whose constraints name a topology.
func setsOfBinding(cache client.Reader) handler.TypedMapFunc[*grovev1alpha1.ClusterTopologyBinding, reconcile.Request] {
	return func(ctx context.Context, binding *grovev1alpha1.ClusterTopologyBinding) []reconcile.Request {
		var out []reconcile.Request
		for _, pcs := range topology.SetsOf(ctx, cache, binding) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pcs)})
		}
		return out
	}
}

// setOf is the set that owns a child.
func setOf[T client.Object](_ context.Context, obj T) []reconcile.Request {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind == "PodCliqueSet" && ref.APIVersion == grovev1alpha1.SchemeGroupVersion.String() {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: ref.Name}}}
		}
	}
	return nil
}

// setOfPod finds the set by label: the request is only a reason to look.
func setOfPod(_ context.Context, pod *corev1.Pod) []reconcile.Request {
	name := pod.Labels[labels.PartOf]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}}}
}

func deleted[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{
		CreateFunc: func(event.TypedCreateEvent[T]) bool { return false },
		UpdateFunc: func(event.TypedUpdateEvent[T]) bool { return false },
	}
}

// ended lets through pods as they end or go: a failing set is Failed when none is left.
// Other changes of pods reach the set through its cliques.
func ended() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.TypedFuncs[*corev1.Pod]{
		CreateFunc: func(event.TypedCreateEvent[*corev1.Pod]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool {
			return isActive(*e.ObjectOld) && !isActive(*e.ObjectNew)
		},
	}
}
