package podgroup

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// askAgain is how long a refusal to let us watch a kind counts.
const askAgain = 10 * time.Minute

// ownerWatches watch the metadata of owners, one watch for each kind that a group has an
// owner of. A kind that we may not watch is not: its watch would fail for ever. What
// changes about such an owner is seen with the next event of one of its pods.
type ownerWatches struct {
	cache   crcache.Informers
	mapper  meta.RESTMapper
	reviews authorizationclient.SelfSubjectAccessReviewInterface
	clock   clock.PassiveClock
	// changed is called with an owner that has changed or gone.
	changed func(kind schema.GroupKind, owner client.Object)

	mu sync.Mutex
	// watched are the kinds that are watched, or when to ask again whether they may be.
	watched map[schema.GroupKind]time.Time
	groups  map[types.UID]sets.Set[types.NamespacedName]
	ownedBy map[types.NamespacedName][]types.UID
	// by are the owners that the pods of groups are grouped by.
	by map[types.NamespacedName]types.UID
}

func newOwnerWatches(cache crcache.Informers, mapper meta.RESTMapper, reviews authorizationclient.SelfSubjectAccessReviewInterface, clock clock.PassiveClock) *ownerWatches {
	return &ownerWatches{
		cache: cache, mapper: mapper, reviews: reviews, clock: clock,
		watched: map[schema.GroupKind]time.Time{}, groups: map[types.UID]sets.Set[types.NamespacedName]{}, ownedBy: map[types.NamespacedName][]types.UID{},
		by: map[types.NamespacedName]types.UID{},
	}
}

// forget a group that is gone.
func (w *ownerWatches) forget(group types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(group)
}

// remember which owners a group depends on. One that has none depends on the configuration
// all the same.
func (w *ownerWatches) remember(group types.NamespacedName, chain []*metav1.PartialObjectMetadata) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(group)
	w.ownedBy[group] = nil
	for _, owner := range chain {
		w.ownedBy[group] = append(w.ownedBy[group], owner.UID)
		if w.groups[owner.UID] == nil {
			w.groups[owner.UID] = sets.New[types.NamespacedName]()
		}
		w.groups[owner.UID].Insert(group)
	}
}

func (w *ownerWatches) drop(group types.NamespacedName) {
	for _, uid := range w.ownedBy[group] {
		if of := w.groups[uid]; of != nil {
			if of.Delete(group); len(of) == 0 {
				delete(w.groups, uid)
			}
		}
	}
	delete(w.ownedBy, group)
	delete(w.by, group)
}

// groupBy remembers which of its owners the pods of a group are grouped by.
func (w *ownerWatches) groupBy(group types.NamespacedName, owner types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by[group] = owner
}

// beside lists the groups of other pods below the owner that those of a group are grouped
// by: those that are grouped by another.
func (w *ownerWatches) beside(group types.NamespacedName, owner types.UID) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	others := sets.New[types.NamespacedName]()
	for _, uid := range w.ownedBy[group] {
		for other := range w.groups[uid] {
			if w.by[other] != owner {
				others.Insert(other)
			}
		}
		if uid == owner {
			break
		}
	}
	return others.UnsortedList()
}

// of lists the groups that depend on an owner.
func (w *ownerWatches) of(owner types.UID) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.groups[owner].UnsortedList()
}

// all lists the groups that there are.
func (w *ownerWatches) all() []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.ownedBy))
}

// follow watches the kinds of owners.
func (w *ownerWatches) follow(ctx context.Context, chain []*metav1.PartialObjectMetadata) {
	for _, owner := range chain {
		if kind := owner.GroupVersionKind(); kind.GroupKind() != (schema.GroupKind{Kind: "Pod"}) {
			w.watch(ctx, kind)
		}
	}
}

// watch watches a kind, unless it is watched or we have been told that we may not.
func (w *ownerWatches) watch(ctx context.Context, kind schema.GroupVersionKind) {
	now := w.clock.Now()
	w.mu.Lock()
	until, known := w.watched[kind.GroupKind()]
	due := !known || (!until.IsZero() && !now.Before(until))
	if due {
		// Others do not ask at the same time.
		w.watched[kind.GroupKind()] = now.Add(askAgain)
	}
	w.mu.Unlock()
	if !due || !w.may(ctx, kind) {
		return
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	informer, err := w.cache.GetInformer(ctx, object, crcache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(w.handler(kind.GroupKind()))
	}
	if err != nil {
		klog.ErrorS(err, "A kind of owners is not watched", "kind", kind)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched[kind.GroupKind()] = time.Time{}
}

// may asks whether we may watch a kind.
func (w *ownerWatches) may(ctx context.Context, kind schema.GroupVersionKind) bool {
	mapping, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		klog.ErrorS(err, "A kind of owners is not watched", "kind", kind)
		return false
	}
	for _, verb := range []string{"list", "watch"} {
		review, err := w.reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: kind.Group, Version: kind.Version, Resource: mapping.Resource.Resource},
		}}, metav1.CreateOptions{})
		if err != nil {
			klog.ErrorS(err, "A kind of owners is not watched", "kind", kind)
			return false
		}
		if !review.Status.Allowed {
			klog.InfoS("A kind of owners may not be watched: what changes about them is seen with the next event of a pod", "kind", kind, "verb", verb)
			return false
		}
	}
	return true
}

func (w *ownerWatches) handler(kind schema.GroupKind) toolscache.ResourceEventHandler {
	tell := func(obj any) {
		if owner, ok := objectOf(obj); ok {
			w.changed(kind, owner)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		// It may have changed before the watch has begun.
		AddFunc: tell,
		UpdateFunc: func(before, after any) {
			if hasChanged(before, after) {
				tell(after)
			}
		},
		DeleteFunc: tell,
	}
}

// objectOf is the object of an event, also of one that went unseen.
func objectOf(obj any) (client.Object, bool) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	object, ok := obj.(client.Object)
	return object, ok
}

// hasChanged says whether a group may look different for it. A kind without generations is
// taken to have changed with every write.
func hasChanged(before, after any) bool {
	a, isA := before.(client.Object)
	b, isB := after.(client.Object)
	if !isA || !isB {
		return true
	}
	return a.GetGeneration() != b.GetGeneration() || (b.GetGeneration() == 0 && a.GetResourceVersion() != b.GetResourceVersion()) ||
		!maps.Equal(a.GetLabels(), b.GetLabels()) || !maps.Equal(a.GetAnnotations(), b.GetAnnotations()) || a.GetUID() != b.GetUID()
}
