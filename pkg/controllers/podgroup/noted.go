package podgroup

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/lru"

	"github.com/copse-dev/copse/pkg/podgrouper"
)

// notedKept bounds what is remembered of events; what is forgotten may be told twice.
const notedKept = 16384

// noted remembers what was told, so that each is told once per occurrence.
type noted struct {
	mu     sync.Mutex
	groups *lru.Cache
	said   *lru.Cache
}

func newNoted() *noted { return &noted{groups: lru.New(notedKept), said: lru.New(notedKept)} }

// fresh returns the notes of a group that it did not have before.
func (n *noted) fresh(group types.NamespacedName, notes []podgrouper.Note) []podgrouper.Note {
	n.mu.Lock()
	defer n.mu.Unlock()
	known, _ := n.groups.Get(group)
	before, _ := known.(sets.Set[podgrouper.Note])
	var out []podgrouper.Note
	for _, note := range notes {
		if !before.Has(note) {
			out = append(out, note)
		}
	}
	n.groups.Add(group, sets.New(notes...))
	return out
}

// told says whether something was said before.
func (n *noted) told(what string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, told := n.said.Get(what)
	return told
}

// first says whether something is said for the first time.
func (n *noted) first(what string) bool { return n.changed(what, "") }

// changed says whether something else is said about a thing than before.
func (n *noted) changed(about, what string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if before, told := n.said.Get(about); told && before == what {
		return false
	}
	n.said.Add(about, what)
	return true
}

// forget has the next that is said about a thing be said for the first time.
func (n *noted) forget(about string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said.Remove(about)
}
