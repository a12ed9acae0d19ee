package model

import (
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
)

// The passes of the controllers. They do what pkg/controllers does around the decisions,
// in the same order: a pass that reads caches alone and then writes is one step, because
// it may as well have started later with caches that lag; after a live read the rest is
// a flight of its own.

// view is what a controller's caches show.
func (s *state) view(who int) world {
	c := &s.Controllers[who]
	out := s.World
	if c.Frozen&(1<<cacheOfSets) != 0 {
		out.Set = c.View.Set
	}
	if c.Frozen&(1<<cacheOfCliques) != 0 {
		out.Cliques = c.View.Cliques
	}
	if c.Frozen&(1<<cacheOfPods) != 0 {
		out.Pods = c.View.Pods
	}
	return out
}

// wrote lets a controller's own cache see what it wrote.
func (m *Model) wrote(s *state, who, cache int) {
	c := &s.Controllers[who]
	if m.config.ForgetOwnWrites || c.Frozen&(1<<cache) == 0 {
		return
	}
	c.show(cache, &s.World)
}

func (c *controller) show(cache int, w *world) {
	switch cache {
	case cacheOfSets:
		c.View.Set = w.Set
	case cacheOfCliques:
		c.View.Cliques = w.Cliques
	case cacheOfPods:
		c.View.Pods = w.Pods
	}
}

// putSet writes the status of the set, unless the version is another one by now.
func (m *Model) putSet(s *state, who int, base, next uint16) error {
	if s.World.Set != base || base == next {
		return nil
	}
	if text := m.refusals[update{base: base, next: next}]; text != "" {
		return violated("the server refuses a status of the set: %s", text)
	}
	if err := m.checkSetWrite(s, base, next); err != nil {
		return err
	}
	s.World.Set = next
	m.wrote(s, who, cacheOfSets)
	s.settle()
	return nil
}

// putClique writes a clique, unless the version is another one by now. It says whether
// the write was made.
func (m *Model) putClique(s *state, who, which int, base, next uint16, status bool) (bool, error) {
	if s.World.Cliques[which] != base {
		return false, nil
	}
	if base == next {
		return true, nil
	}
	if status {
		if text := m.refusals[update{clique: true, base: base, next: next}]; text != "" {
			return false, violated("the server refuses a status of clique %s: %s", cliqueNames[which], text)
		}
		if err := m.checkCliqueWrite(s, which, base, next); err != nil {
			return false, err
		}
	}
	s.World.Cliques[which] = next
	m.wrote(s, who, cacheOfCliques)
	s.settle()
	return true, nil
}

// passSet is a pass of the controller of sets.
func (m *Model) passSet(s *state, who int) error {
	seen := s.view(who)
	if m.sets.objects[seen.Set].DeletionTimestamp != nil {
		return m.finishSet(s, who, &seen)
	}
	key, live := m.lookAtSet(s, &seen)
	d, err := m.decideSet(key)
	if err != nil || d.next == seen.Set {
		return err
	}
	if !m.confirmed(s, &seen, d.confirm) {
		return nil
	}
	if live || d.confirm != 0 {
		s.Controllers[who].Flights[keySet] = flight{Kind: writeSet, Base: seen.Set, Next: d.next}
		s.settle()
		return nil
	}
	return m.putSet(s, who, seen.Set, d.next)
}

// lookAtSet makes the reads of a pass over the set, and says whether one of them was live.
func (m *Model) lookAtSet(s *state, seen *world) (setKey, bool) {
	key := setKey{set: seen.Set, cliques: seen.Cliques, tick: s.Tick}
	live := m.isFailing(seen.Set) && m.allKnowOfFailure(seen) && !hasActive(&seen.Pods)
	key.noActive = live && m.allKnowOfFailure(&s.World) && !hasActive(&s.World.Pods)
	object := m.sets.objects[seen.Set]
	if deadline := gang.RuntimeDeadline(object); !deadline.IsZero() && !now(s.Tick).Before(deadline) && gang.ParentOf(object) == gang.ParentActive {
		live, key.looked, key.live = true, true, s.World.Cliques
		for i := range m.config.Sizes {
			for slot, p := range m.podsOf(i, &s.World.Pods) {
				key.pods[slot] |= p
			}
		}
	}
	return key, live
}

func (m *Model) allKnowOfFailure(w *world) bool {
	for i := range m.config.Sizes {
		if !gang.KnowsOfFailure(m.cliques.objects[w.Cliques[i]]) {
			return false
		}
	}
	return true
}

func hasActive(pods *podSet) bool {
	for _, p := range pods {
		if p.active() {
			return true
		}
	}
	return false
}

// passReplica is a pass of the controller of replicas: it raises the attempt of a clique, and
// opens the gate.
func (m *Model) passReplica(s *state, who int) error {
	seen := s.view(who)
	if m.parent(seen.Set) == gang.ParentDeleting {
		return m.deleteCliques(s, who, &seen)
	}
	if m.parent(seen.Set) != gang.ParentActive {
		return nil
	}
	attempt := m.attempt(seen.Set)
	for which := range m.config.Sizes {
		clique := m.cliques.objects[seen.Cliques[which]]
		if clique.Spec.Attempt >= attempt || clique.DeletionTimestamp != nil {
			continue
		}
		if m.parent(s.World.Set) != m.parent(seen.Set) || m.attempt(s.World.Set) != attempt {
			return nil
		}
		number, err := m.raised(seen.Cliques[which], attempt)
		if err != nil {
			return err
		}
		s.Controllers[who].Flights[keyReplica] = flight{Kind: raiseAttempt, Clique: uint8(which), Base: seen.Cliques[which], Next: number}
		s.settle()
		break
	}
	// The gate is decided by the same view, whatever becomes of that write.
	return m.passGate(s, &seen)
}

// passClique is a pass of the controller of cliques over one of them.
func (m *Model) passClique(s *state, who, which int) error {
	seen := s.view(who)
	if m.cliqueIsGone(seen.Cliques[which]) {
		return nil
	}
	key, live := m.lookAtClique(s, &seen, which)
	d, err := m.decideClique(key)
	if err != nil {
		return err
	}
	if live && d.next != key.clique {
		// The rest of the pass, if it is not over with this write, is left to the next one.
		s.Controllers[who].Flights[keyClique+which] = flight{Kind: writeClique, Clique: uint8(which), Base: key.clique, Next: d.next}
		s.settle()
		return nil
	}
	if d.next != key.clique {
		if made, err := m.putClique(s, who, which, key.clique, d.next, true); err != nil || !made {
			return err
		}
	}
	switch {
	case d.record:
		return nil
	case m.cliques.objects[key.clique].DeletionTimestamp != nil && key.pods == (podSet{}):
		return m.finishClique(s, who, which, d.next)
	case d.creates == 0 && d.deletes == 0:
		return nil
	}
	return m.startWriting(s, who, which, seen.Set, &key, d)
}

// lookAtClique makes the reads of a pass over a clique, and says whether one of them was live.
func (m *Model) lookAtClique(s *state, seen *world, which int) (cliqueKey, bool) {
	key := cliqueKey{
		clique: seen.Cliques[which], which: uint8(which), parent: m.parent(seen.Set), tick: s.Tick,
		drained: m.othersDrained(seen, which), pods: m.podsOf(which, &seen.Pods),
	}
	live := false
	if missing := m.missingNumbers(which, key.clique, key.pods); missing != 0 && key.parent == gang.ParentActive {
		if key.lost = missing; !m.config.TrustCache {
			live = true
			key.pods = m.podsOf(which, &s.World.Pods)
			key.lost &= m.missingNumbers(which, key.clique, key.pods)
		}
	}
	return key, live
}

// othersDrained asks the statuses of the other cliques for old pods (D19).
func (m *Model) othersDrained(seen *world, which int) bool {
	clique := m.cliques.objects[seen.Cliques[which]]
	if !gang.IsBeginning(clique) {
		return true
	}
	key := drainedKey{cliques: seen.Cliques, which: uint8(which), attempt: m.attempt(seen.Set)}
	answer, known := m.drained[key]
	if !known {
		var siblings []grovev1alpha1.PodClique
		for i := range m.config.Sizes {
			siblings = append(siblings, *m.cliques.objects[seen.Cliques[i]])
		}
		answer = m.decide.Drained(clique, siblings, nil, key.attempt)
		m.drained[key] = answer
	}
	return answer
}

// mayBeginAttempt lists the pods live before the first one after a restart is made.
func (m *Model) mayBeginAttempt(s *state, set uint16, clique *grovev1alpha1.PodClique) bool {
	if !gang.IsBeginning(clique) || clique.Status.Replicas > 0 {
		return true
	}
	for slot, p := range s.World.Pods {
		if p.exists() && int32(slot%maxAttempts) < m.attempt(set) {
			return false
		}
	}
	return true
}

// startWriting makes the live read before pods are made or deleted.
func (m *Model) startWriting(s *state, who, which int, set uint16, key *cliqueKey, d cliqueDecision) error {
	if m.parent(s.World.Set) != key.parent || m.attempt(s.World.Set) != m.attempt(set) {
		return nil
	}
	clique := m.cliques.objects[d.next]
	f := flight{Kind: writePods, Clique: uint8(which), Creates: d.creates, Attempt: uint8(clique.Spec.Attempt)}
	if f.Creates != 0 && !m.mayBeginAttempt(s, set, clique) {
		f.Creates = 0
	}
	if err := m.checkCreation(s, which, f.Creates); err != nil {
		return err
	}
	for slot := range slots {
		// By UID: a pod that is gone, or another of its name, is not hit.
		if current := s.World.Pods[slot]; d.deletes&(1<<slot) != 0 && current.exists() && current.generation() == key.pods[slot].generation() {
			f.Deletes |= 1 << slot
		}
	}
	s.Controllers[who].Flights[keyClique+which] = f
	s.settle()
	return nil
}

// land carries out the next step of a flight.
func (m *Model) land(s *state, who, key int) error {
	f := s.Controllers[who].Flights[key]
	switch f.Kind {
	case writeSet:
		s.Controllers[who].Flights[key] = flight{}
		return m.putSet(s, who, f.Base, f.Next)
	case endSet:
		// A flight whose version is out of date has been ended.
		s.Controllers[who].Flights[key] = flight{}
		s.World.Set = f.Next
		m.wrote(s, who, cacheOfSets)
		s.settle()
	case writeClique, raiseAttempt, endClique:
		s.Controllers[who].Flights[key] = flight{}
		_, err := m.putClique(s, who, int(f.Clique), f.Base, f.Next, f.Kind == writeClique)
		return err
	case writePods:
		return m.writePod(s, who, key)
	case landed:
	}
	return nil
}

// writePod deletes or makes one pod: first those to delete, then those to make.
func (m *Model) writePod(s *state, who, key int) error {
	f := &s.Controllers[who].Flights[key]
	for slot := range slots {
		if f.Deletes&(1<<slot) == 0 {
			continue
		}
		f.Deletes &^= 1 << slot
		if err := m.checkDeletion(s, slot); err != nil {
			return err
		}
		m.requestDeletion(s, slot)
		m.wrote(s, who, cacheOfPods)
		s.settle()
		return nil
	}
	for number := range maxPods {
		if f.Creates&(1<<number) == 0 {
			continue
		}
		f.Creates &^= 1 << number
		slot := slotOf(number, int32(f.Attempt))
		if old := s.World.Pods[slot]; !old.exists() {
			made := pod(pending) | pod(old.generation()+1)<<genShift&genMask
			if m.parent(s.World.Set) != gang.ParentActive || m.attempt(s.World.Set) != int32(f.Attempt) {
				made |= strayBit
			}
			s.World.Pods[slot] = made
			m.wrote(s, who, cacheOfPods)
		}
		s.settle()
		return nil
	}
	return nil
}

// requestDeletion deletes a pod as the API server does: at once if it has ended or has
// no node yet, else its node has to stop it first.
func (m *Model) requestDeletion(s *state, slot int) {
	p := s.World.Pods[slot]
	switch {
	case !p.exists() || p.is(terminatingBit):
	case p.life() == pending || p.ended():
		s.World.Pods[slot] = p.gone()
		s.strike(slot)
	default:
		s.World.Pods[slot] = p | terminatingBit
	}
}
