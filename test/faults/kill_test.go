package faults

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// killer is a rule that kills the controller manager at each n-th write of a life: before
// the server hears of it, or when it is done and the reply is on its way.
type killer struct {
	manager *manager
	gateway *gateway
	every   int
	before  bool

	mu     sync.Mutex
	writes int
}

func (k *killer) rule(r *http.Request, passOn func()) {
	if !isWrite(r) || !k.isDue() {
		passOn()
		return
	}
	if !k.before {
		k.gateway.unanswered(r)
	}
	k.manager.kill()
}

func (k *killer) isDue() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writes++
	return k.writes%k.every == 0
}

// Wherever between two of its writes the controller manager is killed, and however often,
// all gangs come to their ends.
func TestGangsEndRightThoughTheControllerManagerIsKilledAtItsWrites(t *testing.T) {
	places := []killer{{every: 25}}
	if *deep {
		places = nil
		for _, every := range []int{1, 2, 3, 5, 7, 11, 17, 25} {
			places = append(places, killer{every: every})
			if every > 1 {
				// One that is killed before its first write never writes.
				places = append(places, killer{every: every, before: true})
			}
		}
	}
	for i := range places {
		k := &places[i]
		t.Run(fmt.Sprintf("every=%d,before=%t", k.every, k.before), func(t *testing.T) {
			k.gateway = newGateway(t)
			k.manager = startManager(t, k.gateway)
			k.gateway.obey(k.rule)
			g := applyGangs(t, quiet(i == 0))
			g.run(g.strike)
			if k.manager.deaths() == 0 {
				t.Error("the controller manager was never killed")
			}
			t.Logf("%d writes, %d deaths", k.writes, k.manager.deaths())
		})
	}
}
