package faults

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// holder is a rule that holds all writes from the n-th on, so that a server goes down in
// the middle of what the controllers do, at an exact place.
type holder struct {
	mu     sync.Mutex
	left   int
	armed  bool
	held   chan struct{}
	lifted chan struct{}
}

func newHolder(at int) *holder {
	return &holder{left: at, held: make(chan struct{}), lifted: make(chan struct{})}
}

// arm begins to count.
func (h *holder) arm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armed = true
}

func (h *holder) rule(r *http.Request, passOn func()) {
	if isWrite(r) && h.isHeld() {
		select {
		case <-h.lifted:
		case <-r.Context().Done():
			return
		}
	}
	passOn()
}

func (h *holder) isHeld() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.armed {
		return false
	}
	h.left--
	if h.left == 0 {
		close(h.held)
	}
	return h.left <= 0
}

// outage is how long a server is down at least; kube-apiserver takes some seconds more to
// start.
const outage = 2 * time.Second

// Whichever server goes down for a while when the gangs restart, are terminated, succeed
// or are deleted, at whichever write: all of them come to their ends when it is back.
func TestGangsEndRightThoughAServerIsDownForAWhile(t *testing.T) {
	components := []string{"kube-apiserver", "copse-apiserver", "etcd", "copse-etcd"}
	places := map[string][]int{"kube-apiserver": {12}, "copse-etcd": {4}}
	if *deep {
		for _, component := range components {
			places[component] = []int{1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40}
		}
	}
	for _, component := range components {
		for i, at := range places[component] {
			t.Run(fmt.Sprintf("%s,at=%d", component, at), func(t *testing.T) {
				gateway, holder := newGateway(t), newHolder(at)
				startManager(t, gateway)
				gateway.obey(holder.rule)
				g := applyGangs(t, quiet(i == 0))
				g.run(func() {
					holder.arm()
					g.strike()
					g.waitFor(holder.held, "there were not so many writes")
					cluster.Outage(t, component, outage, func() { close(holder.lifted) })
				})
			})
		}
	}
}
