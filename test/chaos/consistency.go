package chaos

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a read waits, as in the controller manager.
const patience = 5 * time.Second

// consistency makes reads from a cache wait for the instance's own writes, as the client
// of the controller manager does: for those under way, and then until the cache has seen
// them, but no longer than its patience. A write whose reply was lost is not waited for.
type consistency struct {
	mu       sync.Mutex
	next     int
	inFlight map[Kind]map[int]types.NamespacedName
	minimum  map[Kind]map[types.NamespacedName]int64
	observed map[Kind]int64
	deletes  map[Kind]map[types.UID]types.NamespacedName
	waiters  []*waiter
	dead     bool
}

// waiter is a read that waits. It goes on when the driver says so, so that one worker
// runs at a time.
type waiter struct {
	name  string
	may   func() bool
	until time.Time
	wake  chan struct{}
}

// mayGoOn says that a read has what it waits for, or no patience left.
func (w *waiter) mayGoOn() bool { return w.may() || !time.Now().Before(w.until) }

func newConsistency() *consistency {
	c := &consistency{
		inFlight: map[Kind]map[int]types.NamespacedName{}, minimum: map[Kind]map[types.NamespacedName]int64{},
		observed: map[Kind]int64{}, deletes: map[Kind]map[types.UID]types.NamespacedName{},
	}
	for _, k := range allKinds() {
		c.inFlight[k], c.minimum[k], c.deletes[k] = map[int]types.NamespacedName{}, map[types.NamespacedName]int64{}, map[types.UID]types.NamespacedName{}
	}
	return c
}

func (c *consistency) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// waitFor blocks until may holds, patience ends, or the instance is dead. The caller holds
// the lock.
func (c *consistency) waitFor(name string, until time.Time, may func() bool) error {
	w := &waiter{name: name, may: may, until: until, wake: make(chan struct{})}
	if !c.dead && !w.mayGoOn() {
		c.waiters = append(c.waiters, w)
		c.mu.Unlock()
		<-w.wake
		c.mu.Lock()
	}
	if c.dead {
		return errCrashed
	}
	return nil
}

// release lets the first of the reads go on that may, and says whether there was one.
func (c *consistency) release() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.waiters, func(a, b *waiter) int { return cmp.Compare(a.name, b.name) })
	n := slices.IndexFunc(c.waiters, (*waiter).mayGoOn)
	if n < 0 {
		return false
	}
	close(c.waiters[n].wake)
	c.waiters = slices.Delete(c.waiters, n, n+1)
	return true
}

// nextEnd is when the patience of a read ends; zero when none waits.
func (c *consistency) nextEnd() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var next time.Time
	for _, w := range c.waiters {
		if next.IsZero() || w.until.Before(next) {
			next = w.until
		}
	}
	return next
}

// kill lets all reads fail.
func (c *consistency) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	for _, w := range c.waiters {
		close(w.wake)
	}
	c.waiters = nil
}

// read waits until a read of a kind, or of one object of it, may be answered.
func (c *consistency) read(p pass, k Kind, concerns func(types.NamespacedName) bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := time.Now().Add(patience)
	var writes []int
	for id, key := range c.inFlight[k] {
		if concerns(key) {
			writes = append(writes, id)
		}
	}
	if err := c.waitFor(p.key, until, func() bool {
		return !slices.ContainsFunc(writes, func(id int) bool { _, under := c.inFlight[k][id]; return under })
	}); err != nil {
		return err
	}
	var revision int64
	for key, minimum := range c.minimum[k] {
		if concerns(key) {
			revision = max(revision, minimum)
		}
	}
	var deletes []types.UID
	for uid, key := range c.deletes[k] {
		if concerns(key) {
			deletes = append(deletes, uid)
		}
	}
	return c.waitFor(p.key, until, func() bool {
		return c.observed[k] >= revision && !slices.ContainsFunc(deletes, func(uid types.UID) bool { _, pending := c.deletes[k][uid]; return pending })
	})
}

// saw notes what a cache has seen: of a new list, the objects and not the list's own
// revision, and of an object that another has replaced there, not its end. That is what
// controller-runtime v0.25 learns. So a read may wait in vain.
func (c *consistency) saw(ch change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observed[ch.kind] = max(c.observed[ch.kind], revisionOf(ch.object()))
	for key, minimum := range c.minimum[ch.kind] {
		if minimum <= c.observed[ch.kind] {
			delete(c.minimum[ch.kind], key)
		}
	}
	if ch.before != nil && ch.after == nil {
		delete(c.deletes[ch.kind], ch.before.GetUID())
	}
}

func revisionOf(obj client.Object) int64 {
	revision, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return revision
}
