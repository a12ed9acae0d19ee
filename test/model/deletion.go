package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A set that a user deletes goes when its cliques are gone, and they when their pods
// are. An object without its finalizer that is deleted is gone; it keeps its number, so
// that caches may still show it.

func isGone(meta *metav1.ObjectMeta) bool {
	return meta.DeletionTimestamp != nil && len(meta.Finalizers) == 0
}

func (m *Model) setIsGone(set uint16) bool { return isGone(&m.sets.objects[set].ObjectMeta) }

func (m *Model) cliqueIsGone(clique uint16) bool {
	return isGone(&m.cliques.objects[clique].ObjectMeta)
}

// cliquesAreGone says that a world holds no clique any more.
func (m *Model) cliquesAreGone(w *world) bool {
	for which := range m.config.Sizes {
		if !m.cliqueIsGone(w.Cliques[which]) {
			return false
		}
	}
	return true
}

// endOf is the next version of an object on its way out: deleted, then without finalizer.
func endOf(meta *metav1.ObjectMeta) {
	if meta.DeletionTimestamp == nil {
		meta.DeletionTimestamp = ptr.To(metav1.NewTime(now(0)))
		return
	}
	meta.Finalizers = nil
}

func (m *Model) endOfSet(set uint16) (uint16, error) {
	next := m.sets.objects[set].DeepCopy()
	endOf(&next.ObjectMeta)
	return m.sets.number(next)
}

func (m *Model) endOfClique(clique uint16) (uint16, error) {
	next := m.cliques.objects[clique].DeepCopy()
	endOf(&next.ObjectMeta)
	return m.cliques.number(next)
}

// userDeletesSet marks the set as deleted.
func (m *Model) userDeletesSet(s *state) (bool, error) {
	if !m.config.Deleted || m.sets.objects[s.World.Set].DeletionTimestamp != nil {
		return false, nil
	}
	next, err := m.endOfSet(s.World.Set)
	s.World.Set = next
	s.settle()
	return true, err
}

// finishSet lets a deleted set go once nothing is below it, in the cache nor live.
func (m *Model) finishSet(s *state, who int, seen *world) error {
	if m.setIsGone(seen.Set) || !m.cliquesAreGone(seen) || !m.cliquesAreGone(&s.World) {
		return nil
	}
	return m.endLater(s, who, keySet, flight{Kind: endSet, Base: seen.Set})
}

// deleteCliques deletes those of a deleted set, one at a time.
func (m *Model) deleteCliques(s *state, who int, seen *world) error {
	for which := range m.config.Sizes {
		if m.cliques.objects[seen.Cliques[which]].DeletionTimestamp != nil {
			continue
		}
		if m.sets.objects[s.World.Set].DeletionTimestamp == nil || m.setIsGone(s.World.Set) {
			return nil
		}
		return m.endLater(s, who, keyReplica, flight{Kind: endClique, Clique: uint8(which), Base: seen.Cliques[which]})
	}
	return nil
}

// finishClique lets a deleted clique go once a live list shows no pod of it.
func (m *Model) finishClique(s *state, who, which int, clique uint16) error {
	if m.podsOf(which, &s.World.Pods) != (podSet{}) {
		return nil
	}
	return m.endLater(s, who, keyClique+which, flight{Kind: endClique, Clique: uint8(which), Base: clique})
}

// endLater starts a flight that ends an object.
func (m *Model) endLater(s *state, who, key int, f flight) error {
	var err error
	if f.Kind == endSet {
		f.Next, err = m.endOfSet(f.Base)
	} else {
		f.Next, err = m.endOfClique(f.Base)
	}
	s.Controllers[who].Flights[key] = f
	s.settle()
	return err
}
