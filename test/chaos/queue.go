package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// workQueue is what the driver does with the queue of a controller.
type workQueue interface {
	// promote makes the keys ready whose time has come.
	promote(now time.Time)
	// next is when the first of the other keys becomes ready.
	next() (time.Time, bool)
	// start names the first ready key, and hands it to the worker.
	start(name func(string)) bool
	startable() bool
}

// queue is a controller's queue whose worker gets a key only when the driver says so.
// Its order and its merging of keys are those of controller-runtime's own.
type queue[K comparable] struct {
	name    string
	limiter workqueue.TypedRateLimiter[K]
	// batch numbers the events: the keys that one brings are in the order of their names,
	// because a controller's handlers are in no order.
	batch func() int

	mu      sync.Mutex
	items   []item[K]
	working map[K]bool
	// waiting is how many workers wait for a key.
	waiting int
	keys    chan K
	done    chan struct{}
	closed  bool
}

// item is a key that is ready, or will be at a time.
type item[K comparable] struct {
	key     K
	name    string
	batch   int
	readyAt time.Time
}

var _ workqueue.TypedRateLimitingInterface[string] = &queue[string]{}

func newQueue[K comparable](name string, limiter workqueue.TypedRateLimiter[K], batch func() int) *queue[K] {
	return &queue[K]{name: name, limiter: limiter, batch: batch, working: map[K]bool{}, keys: make(chan K), done: make(chan struct{})}
}

func (q *queue[K]) add(key K, readyAt time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	i := slices.IndexFunc(q.items, func(i item[K]) bool { return i.key == key })
	if i < 0 {
		q.items = append(q.items, item[K]{key: key, name: fmt.Sprint(key), batch: q.batch(), readyAt: readyAt})
		return
	}
	have := &q.items[i]
	if have.readyAt.IsZero() || (!readyAt.IsZero() && have.readyAt.Before(readyAt)) {
		return
	}
	have.readyAt = readyAt
	if readyAt.IsZero() {
		have.batch = q.batch()
	}
}

// Add makes a key ready.
func (q *queue[K]) Add(key K) { q.add(key, time.Time{}) }

// AddAfter makes a key ready later.
func (q *queue[K]) AddAfter(key K, after time.Duration) {
	if after <= 0 {
		q.Add(key)
		return
	}
	q.add(key, time.Now().Add(after))
}

// AddRateLimited makes a key ready after its back-off.
func (q *queue[K]) AddRateLimited(key K) { q.AddAfter(key, q.limiter.When(key)) }

// Forget ends the back-off of a key.
func (q *queue[K]) Forget(key K) { q.limiter.Forget(key) }

// NumRequeues is how often a key has backed off.
func (q *queue[K]) NumRequeues(key K) int { return q.limiter.NumRequeues(key) }

// Get waits for a key from the driver.
func (q *queue[K]) Get() (K, bool) {
	q.mu.Lock()
	q.waiting++
	q.mu.Unlock()
	select {
	case key := <-q.keys:
		return key, false
	case <-q.done:
		var none K
		return none, true
	}
}

// Done lets a key be worked on again.
func (q *queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, key)
}

// Len is how many keys are ready.
func (q *queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, i := range q.items {
		if i.readyAt.IsZero() {
			n++
		}
	}
	return n
}

// ShutDown ends the workers.
func (q *queue[K]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.done)
	}
}

// ShutDownWithDrain ends the workers.
func (q *queue[K]) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown says that the workers are to end.
func (q *queue[K]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

func (q *queue[K]) promote(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := range q.items {
		if at := q.items[n].readyAt; !at.IsZero() && !at.After(now) {
			q.items[n].readyAt, q.items[n].batch = time.Time{}, q.batch()
		}
	}
}

func (q *queue[K]) next() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var first time.Time
	for _, i := range q.items {
		if !i.readyAt.IsZero() && (first.IsZero() || i.readyAt.Before(first)) {
			first = i.readyAt
		}
	}
	return first, !first.IsZero()
}

// ready is the place of the first key that can be worked on. The caller holds the lock.
func (q *queue[K]) ready() int {
	if q.closed || q.waiting == 0 {
		return -1
	}
	first := -1
	for n, i := range q.items {
		if !i.readyAt.IsZero() || q.working[i.key] {
			continue
		}
		if first < 0 || cmp.Or(cmp.Compare(i.batch, q.items[first].batch), cmp.Compare(i.name, q.items[first].name)) < 0 {
			first = n
		}
	}
	return first
}

func (q *queue[K]) startable() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready() >= 0
}

func (q *queue[K]) start(name func(string)) bool {
	q.mu.Lock()
	i := q.ready()
	if i < 0 {
		q.mu.Unlock()
		return false
	}
	key, keyName := q.items[i].key, q.items[i].name
	q.items = slices.Delete(q.items, i, i+1)
	q.working[key] = true
	q.waiting--
	q.mu.Unlock()
	name(q.name + " " + keyName)
	q.keys <- key
	return true
}
