// Package pace keeps writes of mere counts to at most one a second per object. It
// remembers nothing that matters: after a restart a count is written a little earlier.
package pace

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// interval is the least time between two writes of counts (design section 5).
const interval = time.Second

// Pace remembers when objects were last written.
type Pace struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

// New returns a Pace that has seen no write.
func New() *Pace {
	return &Pace{last: map[types.UID]time.Time{}}
}

// Wait is how long counts of an object still have to wait; 0 when they may be written now.
func (p *Pace) Wait(uid types.UID, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[uid]
	if !ok {
		return 0
	}
	return max(interval-now.Sub(last), 0)
}

// Wrote remembers a write.
func (p *Pace) Wrote(uid types.UID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[uid] = now
}

// Forget drops what is remembered of an object that is gone.
func (p *Pace) Forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, uid)
}
