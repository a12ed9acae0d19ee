package replica

import (
	"context"
	"maps"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/controllers/internal/topology"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(mgr manager.Manager, options controller.TypedOptions[Key]) error {
	cache := mgr.GetCache()
	b := builder.TypedControllerManagedBy[Key](mgr).
		Named("replica").
		WithOptions(options).
		WatchesRawSource(source.TypedKind(cache, &grovev1alpha1.PodCliqueSet{},
			handler.TypedEnqueueRequestsFromMapFunc(r.keysOfSet), setChanged())).
		WatchesRawSource(source.TypedKind(cache, &grovev1alpha1.PodClique{},
			handler.TypedEnqueueRequestsFromMapFunc(keyOfChild[*grovev1alpha1.PodClique]), cliqueChanged())).
		WatchesRawSource(source.TypedKind(cache, &grovev1alpha1.PodCliqueScalingGroup{},
			handler.TypedEnqueueRequestsFromMapFunc(keyOfChild[*grovev1alpha1.PodCliqueScalingGroup]), groupChanged())).
		WatchesRawSource(source.TypedKind(cache, &schedulerv1alpha1.PodGang{},
			handler.TypedEnqueueRequestsFromMapFunc(keyOfChild[*schedulerv1alpha1.PodGang]), childChanged[*schedulerv1alpha1.PodGang]())).
		WatchesRawSource(source.TypedKind(cache, &corev1.Service{},
			handler.TypedEnqueueRequestsFromMapFunc(keyOfChild[*corev1.Service]), serviceChanged())).
		WatchesRawSource(source.TypedKind(cache, &grovev1alpha1.StartGate{},
			handler.TypedEnqueueRequestsFromMapFunc(keyOfChild[*grovev1alpha1.StartGate]), childChanged[*grovev1alpha1.StartGate]())).
		WatchesRawSource(source.TypedKind(cache, &corev1.ConfigMap{},
			handler.TypedEnqueueRequestsFromMapFunc(keyOfChild[*corev1.ConfigMap]))).
		WatchesRawSource(source.TypedKind(cache, &autoscalingv2.HorizontalPodAutoscaler{},
			handler.TypedEnqueueRequestsFromMapFunc(keyOfChild[*autoscalingv2.HorizontalPodAutoscaler]), autoscalerChanged())).
		WatchesRawSource(source.TypedKind(cache, &grovev1alpha1.PodClique{},
			handler.TypedEnqueueRequestsFromMapFunc(r.keyOfGate), atGateChanged())).
		WatchesRawSource(source.TypedFunc[Key](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[Key]) error {
			r.queue = queue
			return nil
		}))
	if r.ResourceClaims {
		b = b.WatchesRawSource(source.TypedKind(cache, &resourcev1.ResourceClaim{},
			handler.TypedEnqueueRequestsFromMapFunc(keyOfClaim), claimChanged())).
			WatchesRawSource(source.TypedKind(cache, &resourcev1.ResourceClaimTemplate{},
				handler.TypedEnqueueRequestsFromMapFunc(r.keysOfTemplate), templateCame()))
	}
	if !r.Topology.Off {
		b = b.WatchesRawSource(source.TypedKind(cache, &grovev1alpha1.ClusterTopologyBinding{},
			handler.TypedEnqueueRequestsFromMapFunc(r.keysOfBinding), topology.LevelsChanged()))
	}
	return b.Complete(r)
}

// keysOfBinding are the replicas of the sets whose constraints name a topology.
func (r *Reconciler) keysOfBinding(ctx context.Context, binding *grovev1alpha1.ClusterTopologyBinding) []Key {
	var keys []Key
	for _, pcs := range topology.SetsOf(ctx, r.Cache, binding) {
		keys = append(keys, r.keysOfSet(ctx, pcs)...)
	}
	return keys
}

// keyOfGate is the replica of a clique, if there is a gate for its pods.
func (r *Reconciler) keyOfGate(ctx context.Context, clique *grovev1alpha1.PodClique) []Key {
	keys := keyOfChild(ctx, clique)
	if len(keys) == 0 {
		return nil
	}
	gate := types.NamespacedName{Namespace: clique.Namespace, Name: naming.Replica(keys[0].Name, keys[0].Replica)}
	if err := r.Cache.Get(ctx, gate, &grovev1alpha1.StartGate{}); err != nil {
		return nil
	}
	return keys
}

// atGateChanged lets through what may open a gate.
func atGateChanged() predicate.TypedPredicate[*grovev1alpha1.PodClique] {
	return predicate.TypedFuncs[*grovev1alpha1.PodClique]{
		UpdateFunc: func(e event.TypedUpdateEvent[*grovev1alpha1.PodClique]) bool {
			return gang.AtGate(e.ObjectOld) != gang.AtGate(e.ObjectNew)
		},
	}
}

// setChanged lets through what a replica's children depend on; most updates of a set
// are of its counters.
func setChanged() predicate.TypedPredicate[*grovev1alpha1.PodCliqueSet] {
	return predicate.TypedFuncs[*grovev1alpha1.PodCliqueSet]{
		UpdateFunc: func(e event.TypedUpdateEvent[*grovev1alpha1.PodCliqueSet]) bool {
			return e.ObjectOld.Generation != e.ObjectNew.Generation ||
				gang.ParentOf(e.ObjectOld) != gang.ParentOf(e.ObjectNew) ||
				!carriesSame(e.ObjectOld, e.ObjectNew) ||
				gang.SumOfAttempts(e.ObjectOld) != gang.SumOfAttempts(e.ObjectNew) ||
				!gang.HaveSameStages(e.ObjectOld, e.ObjectNew) ||
				!gang.SameTurns(e.ObjectOld, e.ObjectNew)
		},
	}
}

// childChanged lets through what the plan compares: spec, labels, and deletion.
func childChanged[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
				e.ObjectOld.GetLabels()[labels.RestartAttempt] != e.ObjectNew.GetLabels()[labels.RestartAttempt]
		},
	}
}

// serviceChanged lets through what people change of a Service, which has no generation.
func serviceChanged() predicate.TypedPredicate[*corev1.Service] {
	return predicate.TypedFuncs[*corev1.Service]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Service]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return !apiequality.Semantic.DeepEqual(before.Spec, after.Spec) || !maps.Equal(before.Labels, after.Labels) ||
				(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
		},
	}
}

// autoscalerChanged lets through what people change of an autoscaler, and not what its
// controller writes at each look. Before Kubernetes 1.37 it has no generation.
func autoscalerChanged() predicate.TypedPredicate[*autoscalingv2.HorizontalPodAutoscaler] {
	return predicate.TypedFuncs[*autoscalingv2.HorizontalPodAutoscaler]{
		UpdateFunc: func(e event.TypedUpdateEvent[*autoscalingv2.HorizontalPodAutoscaler]) bool {
			return !apiequality.Semantic.DeepEqual(e.ObjectOld.Spec, e.ObjectNew.Spec) ||
				!maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) ||
				(e.ObjectOld.DeletionTimestamp == nil) != (e.ObjectNew.DeletionTimestamp == nil)
		},
	}
}

// claimChanged lets through what people change of a claim, and that the last pod has let go of
// it. What the scheduler allocates is told to it once (gang.UnseenAllocation); who else uses it is
// nothing to act on.
func claimChanged() predicate.TypedPredicate[*resourcev1.ResourceClaim] {
	return predicate.TypedFuncs[*resourcev1.ResourceClaim]{
		UpdateFunc: func(e event.TypedUpdateEvent[*resourcev1.ResourceClaim]) bool {
			return !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) ||
				(e.ObjectOld.DeletionTimestamp == nil) != (e.ObjectNew.DeletionTimestamp == nil) ||
				gang.UnseenAllocation(e.ObjectNew) != "" && gang.UnseenAllocation(e.ObjectNew) != gang.UnseenAllocation(e.ObjectOld) ||
				len(e.ObjectOld.Status.ReservedFor) > 0 && len(e.ObjectNew.Status.ReservedFor) == 0
		},
	}
}

// templateCame lets through new templates: what a claim has been made from is of no more use.
func templateCame() predicate.TypedPredicate[*resourcev1.ResourceClaimTemplate] {
	return predicate.TypedFuncs[*resourcev1.ResourceClaimTemplate]{
		UpdateFunc: func(event.TypedUpdateEvent[*resourcev1.ResourceClaimTemplate]) bool { return false },
		DeleteFunc: func(event.TypedDeleteEvent[*resourcev1.ResourceClaimTemplate]) bool { return false },
	}
}

// cliqueChanged lets through what changes the plan, and what members of the same copy of a
// scaling group may wait for in a staged set: all pods of a clique are there, or have
// finished.
func cliqueChanged() predicate.TypedPredicate[*grovev1alpha1.PodClique] {
	return predicate.Or[*grovev1alpha1.PodClique](childChanged[*grovev1alpha1.PodClique](), predicate.TypedFuncs[*grovev1alpha1.PodClique]{
		UpdateFunc: func(e event.TypedUpdateEvent[*grovev1alpha1.PodClique]) bool {
			return e.ObjectNew.Labels[labels.ScalingGroup] != "" && gang.HasAll(e.ObjectOld) != gang.HasAll(e.ObjectNew)
		},
	})
}

// groupChanged lets through what changes the plan, and copies that are recycled or updated.
func groupChanged() predicate.TypedPredicate[*grovev1alpha1.PodCliqueScalingGroup] {
	return predicate.Or[*grovev1alpha1.PodCliqueScalingGroup](childChanged[*grovev1alpha1.PodCliqueScalingGroup](), predicate.TypedFuncs[*grovev1alpha1.PodCliqueScalingGroup]{
		UpdateFunc: func(e event.TypedUpdateEvent[*grovev1alpha1.PodCliqueScalingGroup]) bool {
			return !apiequality.Semantic.DeepEqual(e.ObjectOld.Status.ReplicaAttempts, e.ObjectNew.Status.ReplicaAttempts) ||
				!gang.SameCopyTurns(e.ObjectOld, e.ObjectNew)
		},
	})
}

// keysOfSet are the replicas that a set has, and those that it had.
func (r *Reconciler) keysOfSet(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet) []Key {
	key := func(replica int32) Key {
		return Key{NamespacedName: client.ObjectKeyFromObject(pcs), UID: pcs.UID, Replica: replica}
	}
	keys := make([]Key, 0, pcs.Spec.Replicas)
	for replica := range pcs.Spec.Replicas {
		keys = append(keys, key(replica))
	}
	// The Service is the first child of a replica and the last to go.
	var services corev1.ServiceList
	if err := r.Cache.List(ctx, &services, index.OwnedBy(pcs.Namespace, pcs.UID)...); err != nil {
		return keys
	}
	for i := range services.Items {
		if replica, ok := replicaOf(&services.Items[i]); ok && replica >= pcs.Spec.Replicas {
			keys = append(keys, key(replica))
		}
	}
	return keys
}

// keysOfTemplate are the replicas of the sets that refer to a template.
func (r *Reconciler) keysOfTemplate(ctx context.Context, template *resourcev1.ResourceClaimTemplate) []Key {
	var sets grovev1alpha1.PodCliqueSetList
	if err := r.Cache.List(ctx, &sets, index.SharingTemplate(client.ObjectKeyFromObject(template))...); err != nil {
		return nil
	}
	var keys []Key
	for i := range sets.Items {
		keys = append(keys, r.keysOfSet(ctx, &sets.Items[i])...)
	}
	return keys
}

// keyOfClaim is the replica that a claim is for; one of the whole set is its first replica's.
func keyOfClaim(ctx context.Context, claim *resourcev1.ResourceClaim) []Key {
	if _, ok := replicaOf(claim); ok {
		return keyOfChild(ctx, claim)
	}
	return keyOfSet(claim, 0)
}

func keyOfChild[T client.Object](_ context.Context, obj T) []Key {
	replica, ok := replicaOf(obj)
	if !ok {
		return nil
	}
	return keyOfSet(obj, replica)
}

func keyOfSet(obj client.Object, replica int32) []Key {
	for _, ref := range obj.GetOwnerReferences() {
		if isSet(ref) {
			return []Key{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: ref.Name}, UID: ref.UID, Replica: replica}}
		}
	}
	return nil
}

func isSet(ref metav1.OwnerReference) bool {
	return ref.Kind == "PodCliqueSet" && ref.APIVersion == grovev1alpha1.SchemeGroupVersion.String()
}
