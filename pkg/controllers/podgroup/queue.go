package podgroup

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// groupQueue hands groups to their controller for reasons that no object of the cluster's
// tells it.
type groupQueue struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// early are those that were handed over before the controller has started.
	early sets.Set[types.NamespacedName]
}

func newGroupQueue() *groupQueue { return &groupQueue{early: sets.New[types.NamespacedName]()} }

func (q *groupQueue) add(groups ...types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, group := range groups {
		switch {
		case group.Name == "":
		case q.queue == nil:
			q.early.Insert(group)
		default:
			q.queue.Add(reconcile.Request{NamespacedName: group})
		}
	}
}

// source is what the controller watches.
func (q *groupQueue) source() source.Source {
	return source.TypedFunc[reconcile.Request](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.queue = queue
		for group := range q.early {
			queue.Add(reconcile.Request{NamespacedName: group})
		}
		q.early = nil
		return nil
	})
}
