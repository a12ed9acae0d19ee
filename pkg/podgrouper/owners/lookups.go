package owners

import (
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
)

const (
	defaultCacheSize = 4096
	defaultCacheTTL  = 10 * time.Second
)

// key of a look-up. The UID alone would do for honest references; with the namespace and
// name, one that borrows the UID of an object elsewhere finds nothing of it.
type key struct {
	kind            schema.GroupKind
	namespace, name string
	uid             types.UID
}

// lookup is what became of a reference: an object, or the reason why there is none.
type lookup struct {
	object  *metav1.PartialObjectMetadata
	node    bool
	reason  Reason
	message string
}

// lookups keeps the latest look-ups. What does not exist is not kept: it may come.
type lookups struct {
	entries *cache.LRUExpireCache
	ttl     time.Duration
	// removed counts what was removed: an owner that has changed while it was looked up is not
	// kept as it was.
	removed atomic.Int64
}

func newLookups(options Options) *lookups {
	if options.CacheSize <= 0 {
		options.CacheSize = defaultCacheSize
	}
	if options.CacheTTL <= 0 {
		options.CacheTTL = defaultCacheTTL
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &lookups{entries: cache.NewLRUExpireCacheWithClock(options.CacheSize, options.Clock), ttl: options.CacheTTL}
}

func (l *lookups) get(k key) (lookup, bool) {
	value, ok := l.entries.Get(k)
	if !ok {
		return lookup{}, false
	}
	found, ok := value.(lookup)
	return found, ok
}

// add keeps a look-up that began when so many had been removed.
func (l *lookups) add(k key, found lookup, removed int64) {
	if l.removed.Load() == removed {
		l.entries.Add(k, found, l.ttl)
	}
}

func (l *lookups) remove(k key) {
	l.removed.Add(1)
	l.entries.Remove(k)
}
