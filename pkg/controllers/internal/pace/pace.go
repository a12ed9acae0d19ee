// Package pace keeps writes of mere counts to at most one a second per object. It
// remembers nothing that matters: after a restart a count is written a little earlier.
package pace

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// interval is the least time between two writes of counts (design section 5).
	interval = time.Second
	// perPod is added to it for each pod that is counted, so that the number of writes
	// follows the number of pods also where each of them takes long.
	perPod = time.Millisecond
)

// Pace remembers when objects were last written.
type Pace struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

// New returns a Pace that has seen no write.
func New() *Pace {
	return &Pace{last: map[types.UID]time.Time{}}
}

// Wait is how long counts of an object, of a number of pods, still have to wait; 0 when
// they may be written now.
func (p *Pace) Wait(uid types.UID, pods int32, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[uid]
	if !ok {
		return 0
	}
	return max(interval+time.Duration(pods)*perPod-now.Sub(last), 0)
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

// Until is how long it takes to a moment, as a result of a pass: 0 when there is none, and
// something when it has come.
func Until(moment, now time.Time) time.Duration {
	if moment.IsZero() {
		return 0
	}
	return max(moment.Sub(now), time.Millisecond)
}
