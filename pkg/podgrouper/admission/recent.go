package admission

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
)

const (
	// recentGroups bounds the groups that are remembered, and recentFor for how long: until
	// their object has been made and has come into the cache.
	recentGroups = 4096
	recentFor    = time.Minute
)

// Recent remembers which class the first pod of a group was given. Pods of one owner can ask
// for different classes, and come within milliseconds of each other, before the group is
// there that all have to agree with. Each replica remembers what it was asked itself.
type Recent struct {
	mu      sync.Mutex
	classes *cache.LRUExpireCache
}

// NewRecent returns an empty memory.
func NewRecent(clock clock.PassiveClock) *Recent {
	return &Recent{classes: cache.NewLRUExpireCacheWithClock(recentGroups, clock)}
}

// first is the class that the first pod of a group was given; this one's if it is the first.
// A pod that is only tried out is not the first.
func (r *Recent) first(group types.NamespacedName, class string, dryRun bool) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, ok := r.classes.Get(group); ok {
		if before, ok := before.(string); ok {
			return before
		}
	}
	if !dryRun {
		r.classes.Add(group, class, recentFor)
	}
	return class
}
