package podgroup

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// ownersKept bounds the owners that are kept, and keptFor for how long: as long as their
	// metadata is, see package owners.
	ownersKept = 1024
	keptFor    = 10 * time.Second
)

// ownerReader reads pods from the cache and owners live. An owner is kept for a little
// while, for there are as many passes over a group as things happen to its pods; one that
// is known to have changed is read anew.
type ownerReader struct {
	client.Reader
	pods client.Reader
	kept *cache.LRUExpireCache
	// forgotten counts what was forgotten: an owner that has changed while it was read is not
	// kept as it was.
	forgotten atomic.Int64
}

func newOwnerReader(live, pods client.Reader, clock clock.PassiveClock) *ownerReader {
	return &ownerReader{Reader: live, pods: pods, kept: cache.NewLRUExpireCacheWithClock(ownersKept, clock)}
}

type ownerKey struct {
	kind schema.GroupKind
	client.ObjectKey
}

// Get reads an object.
func (r *ownerReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if _, isPod := obj.(*corev1.Pod); isPod {
		return r.pods.Get(ctx, key, obj, options...)
	}
	owner, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return r.Reader.Get(ctx, key, obj, options...)
	}
	at := ownerKey{kind: owner.GroupVersionKind().GroupKind(), ObjectKey: key}
	if kept, ok := r.kept.Get(at); ok {
		if before, ok := kept.(*unstructured.Unstructured); ok {
			before.DeepCopyInto(owner)
			return nil
		}
	}
	before := r.forgotten.Load()
	if err := r.Reader.Get(ctx, key, owner, options...); err != nil {
		return err
	}
	if r.forgotten.Load() == before {
		r.kept.Add(at, owner.DeepCopy(), keptFor)
	}
	return nil
}

// List reads objects.
func (r *ownerReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, arePods := list.(*corev1.PodList); arePods {
		return r.pods.List(ctx, list, options...)
	}
	return r.Reader.List(ctx, list, options...)
}

// forget has an owner read anew.
func (r *ownerReader) forget(kind schema.GroupKind, namespace, name string) {
	r.forgotten.Add(1)
	r.kept.Remove(ownerKey{kind: kind, ObjectKey: client.ObjectKey{Namespace: namespace, Name: name}})
}
