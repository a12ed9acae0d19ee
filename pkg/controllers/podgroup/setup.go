package podgroup

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
)

// Setting is what the controllers are added with.
type Setting struct {
	// Cache has all pods, and the metadata of namespaces and owners.
	Cache crcache.Cache
	// Reviews ask what we may do.
	Reviews authorizationclient.SelfSubjectAccessReviewInterface
	// OnChange has a function called when pods may be grouped in another way than before.
	OnChange func(func())
	// Groups and Pods are the options of the controllers of groups and pods.
	Groups controller.Options
	Pods   controller.TypedOptions[PodKey]
}

// Setup adds the controllers to a manager.
func (r *Reconciler) Setup(ctx context.Context, mgr manager.Manager, setup Setting) error {
	r.loose, r.stray, r.queue, r.notes = newLoosePods(), newStrayPods(), newGroupQueue(), newNoted()
	r.reader = newOwnerReader(r.Live, r.Pods, r.Clock)
	r.owners = newOwnerWatches(setup.Cache, mgr.GetRESTMapper(), setup.Reviews, r.Clock)
	r.owners.changed = r.ownerChanged
	r.kai = &kai{client: r.Writer, live: r.Live, mapper: mgr.GetRESTMapper(), clock: r.Clock}
	r.kai.found = func() { r.watchKAI(ctx, setup.Cache) }
	setup.OnChange(func() { r.queue.add(r.owners.all()...) })
	if err := r.setupGroups(mgr, setup); err != nil {
		return fmt.Errorf("controller podgroup: %w", err)
	}
	if err := r.setupPods(mgr, setup); err != nil {
		return fmt.Errorf("controller podgroup-pods: %w", err)
	}
	return nil
}

func (r *Reconciler) setupGroups(mgr manager.Manager, setup Setting) error {
	b := builder.ControllerManagedBy(mgr).
		Named("podgroup").
		WithOptions(setup.Groups).
		WatchesRawSource(source.Kind(setup.Cache, &corev1.Pod{}, handler.TypedEnqueueRequestsFromMapFunc(r.groupOfPod), podChanged())).
		WatchesRawSource(source.Kind(mgr.GetCache(), &schedulerv1alpha1.PodGroup{},
			&handler.TypedEnqueueRequestForObject[*schedulerv1alpha1.PodGroup]{}, r.groupChanged())).
		WatchesRawSource(r.queue.source())
	if r.NativeGangs {
		b = b.WatchesRawSource(source.Kind(mgr.GetCache(), &schedulingv1beta1.PodGroup{}, handler.TypedEnqueueRequestsFromMapFunc(groupOfNative)))
	}
	return b.Complete(r)
}

func (r *Reconciler) setupPods(mgr manager.Manager, setup Setting) error {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return builder.TypedControllerManagedBy[PodKey](mgr).
		Named("podgroup-pods").
		WithOptions(setup.Pods).
		WatchesRawSource(source.TypedKind(setup.Cache, &corev1.Pod{}, handler.TypedEnqueueRequestsFromMapFunc(keyOfPod), enters())).
		WatchesRawSource(source.TypedKind(setup.Cache, namespace, handler.TypedEnqueueRequestsFromMapFunc(r.podsOf), labelsChanged())).
		Complete(&entry{r})
}

// ownerChanged has the groups of an owner follow it.
func (r *Reconciler) ownerChanged(kind schema.GroupKind, owner client.Object) {
	groups := r.owners.of(owner.GetUID())
	if len(groups) == 0 {
		return
	}
	r.Grouping.Resolver().Forget(kind, owner.GetNamespace(), owner.GetName(), owner.GetUID())
	r.reader.forget(kind, owner.GetNamespace(), owner.GetName())
	r.queue.add(groups...)
}

// watchKAI has the groups looked at whose PodGroups in KAI's API change.
func (r *Reconciler) watchKAI(ctx context.Context, cache crcache.Informers) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kaiPodGroup())
	informer, err := cache.GetInformer(ctx, object, crcache.BlockUntilSynced(false))
	if err == nil {
		look := func(obj any) {
			if group, ok := objectOf(obj); ok {
				r.queue.add(client.ObjectKeyFromObject(group))
			}
		}
		var registration toolscache.ResourceEventHandlerRegistration
		registration, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, after any) { look(after) }, DeleteFunc: look})
		go func(err error) {
			// What was made and deleted before the watch has begun comes with no event.
			if err == nil && toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
				r.queue.add(r.owners.all()...)
			}
		}(err)
	}
	if err != nil {
		klog.ErrorS(err, "KAI's PodGroups are not watched")
	}
}

func (r *Reconciler) groupOfPod(_ context.Context, pod *corev1.Pod) []reconcile.Request {
	if name := pods.GroupOf(pod); name != "" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}}}
	}
	r.loose.mu.Lock()
	defer r.loose.mu.Unlock()
	if group := r.loose.groupOf[pod.UID]; group.Name != "" {
		return []reconcile.Request{{NamespacedName: group}}
	}
	return nil
}

// groupOfNative is the PodGroup that a group of the scheduler's own is for: the one that
// controls it, or the one by its name.
func groupOfNative(_ context.Context, native *schedulingv1beta1.PodGroup) []reconcile.Request {
	name := native.Name
	if ref := metav1.GetControllerOfNoCopy(native); ref != nil {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil || gv.Group != schedulerv1alpha1.GroupName || ref.Kind != "PodGroup" {
			return nil
		}
		name = ref.Name
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: native.Namespace, Name: name}}}
}

func keyOfPod(_ context.Context, pod *corev1.Pod) []PodKey {
	return []PodKey{{NamespacedName: client.ObjectKeyFromObject(pod), UID: pod.UID}}
}

// podsOf lists the pods of a namespace that could be in a group.
func (r *Reconciler) podsOf(ctx context.Context, namespace *metav1.PartialObjectMetadata) []PodKey {
	list := &corev1.PodList{}
	if err := r.Pods.List(ctx, list, pods.Loose(namespace.Name)...); err != nil {
		klog.ErrorS(err, "The pods of a namespace are not looked at", "namespace", namespace.Name)
		return nil
	}
	keys := make([]PodKey, 0, len(list.Items))
	for i := range list.Items {
		keys = append(keys, PodKey{NamespacedName: client.ObjectKeyFromObject(&list.Items[i]), UID: list.Items[i].UID})
	}
	return keys
}

// podChanged lets through what a group is made from, and what its status tells.
func podChanged() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.TypedFuncs[*corev1.Pod]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.UID != after.UID || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
				!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
				!apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
				!apiequality.Semantic.DeepEqual(before.Spec, after.Spec) || !apiequality.Semantic.DeepEqual(before.Status, after.Status)
		},
	}
}

// enters lets through pods that name no group, and those that cease to be such.
func enters() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.TypedFuncs[*corev1.Pod]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1.Pod]) bool { return pods.IsLoose(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool {
			before, after := pods.IsLoose(e.ObjectOld), pods.IsLoose(e.ObjectNew)
			return before != after || (after && (!maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) || !maps.Equal(e.ObjectOld.Annotations, e.ObjectNew.Annotations) ||
				!apiequality.Semantic.DeepEqual(e.ObjectOld.OwnerReferences, e.ObjectNew.OwnerReferences)))
		},
		DeleteFunc: func(e event.TypedDeleteEvent[*corev1.Pod]) bool { return pods.IsLoose(e.Object) },
	}
}

func labelsChanged() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	return predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		// Its pods come with events of their own.
		CreateFunc: func(e event.TypedCreateEvent[*metav1.PartialObjectMetadata]) bool { return !e.IsInInitialList },
		UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
			return !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels)
		},
		DeleteFunc: func(event.TypedDeleteEvent[*metav1.PartialObjectMetadata]) bool { return false },
	}
}

// groupChanged lets through what the group, or its status, is made from; a pass that finds
// its own status there writes nothing.
func (r *Reconciler) groupChanged() predicate.TypedPredicate[*schedulerv1alpha1.PodGroup] {
	return predicate.TypedFuncs[*schedulerv1alpha1.PodGroup]{
		UpdateFunc: func(e event.TypedUpdateEvent[*schedulerv1alpha1.PodGroup]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.UID != after.UID || before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
				!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
				!apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) || !apiequality.Semantic.DeepEqual(before.Status, after.Status)
		},
		DeleteFunc: func(e event.TypedDeleteEvent[*schedulerv1alpha1.PodGroup]) bool {
			r.Pace.Forget(e.Object.UID)
			return true
		},
	}
}
