package model

import (
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
)

// gateKey is a snapshot of a gate. The time does not count: the barrier has no deadline here.
type gateKey struct {
	set, gate uint16
	cliques   [maxCliques]uint16
}

// passGate is the part of a pass over a replica that opens its gate.
func (m *Model) passGate(s *state, seen *world) error {
	if !m.config.Barrier {
		return nil
	}
	key := gateKey{seen.Set, s.World.Gate, seen.Cliques}
	next, known := m.gateDecisions[key]
	if !known {
		snapshot := gang.GateSnapshot{Set: m.sets.objects[key.set], Gate: m.gates.objects[key.gate], Cliques: map[string]*grovev1alpha1.PodClique{}}
		for i := range m.config.Sizes {
			clique := m.cliques.objects[key.cliques[i]]
			snapshot.Cliques[clique.Name] = clique
		}
		gate := &grovev1alpha1.StartGate{Status: m.decide.Gate(snapshot, now(0)).Status}
		for i := range gate.Status.Cliques {
			gate.Status.Cliques[i].Since, gate.Status.Cliques[i].FirstStarted = nil, nil
		}
		var err error
		if next, err = m.gates.number(gate); err != nil {
			return err
		}
		m.gateDecisions[key] = next
	}
	if err := m.checkGateWrite(s, s.World.Gate, next); err != nil {
		return err
	}
	s.World.Gate = next
	return nil
}

// entryOf is what a gate says of a clique; the zero value for nothing.
func (m *Model) entryOf(gate uint16, which int) grovev1alpha1.StartGateClique {
	for _, entry := range m.gates.objects[gate].Status.Cliques {
		if entry.Name == m.cliques.objects[m.start.World.Cliques[which]].Name {
			return entry
		}
	}
	return grovev1alpha1.StartGateClique{}
}

// isOpen says that the waiter of a pod may end.
func (m *Model) isOpen(gate uint16, slot int) bool {
	which, _ := m.owner(slot / maxAttempts)
	entry := m.entryOf(gate, which)
	return entry.Open && entry.Attempt == int32(slot%maxAttempts)
}

// noteGathering remembers that all pods of a clique are at the barrier, after one has come.
func (m *Model) noteGathering(s *state, slot int) {
	which, _ := m.owner(slot / maxAttempts)
	first, end := m.numbers(which)
	for number := first; number < end; number++ {
		p := s.World.Pods[slotOf(number, int32(slot%maxAttempts))]
		if p.is(terminatingBit) || (p.life() != waiting && !p.is(passedBit)) {
			return
		}
	}
	s.History.Gathered |= 1 << (which*maxAttempts + slot%maxAttempts)
}

// haveGathered says that the pods of each clique have been at the barrier in an attempt.
func (m *Model) haveGathered(s *state, attempt int) bool {
	for which := range m.config.Sizes {
		if s.History.Gathered&(1<<(which*maxAttempts+attempt)) == 0 {
			return false
		}
	}
	return true
}

// checkGateWrite is what holds whenever a gate is written: it opens when all have come in
// its attempt, and then it stays open (I12).
func (m *Model) checkGateWrite(s *state, base, next uint16) error {
	for which := range m.config.Sizes {
		before, after := m.entryOf(base, which), m.entryOf(next, which)
		switch {
		case after.Attempt < before.Attempt:
			return violated("the gate of %s goes from attempt %d to %d", cliqueNames[which], before.Attempt, after.Attempt)
		case before.Open && !after.Open && after.Attempt == before.Attempt:
			return violated("the gate of %s is shut in attempt %d", cliqueNames[which], after.Attempt)
		case after.Open && !m.haveGathered(s, int(after.Attempt)):
			return violated("the gate of %s is open in attempt %d though not all pods have come", cliqueNames[which], after.Attempt)
		}
	}
	return nil
}

// checkPassed wants that no container has started before all pods have come (I12).
func (m *Model) checkPassed(s *state) error {
	for slot, p := range s.World.Pods {
		if p.is(passedBit) && !m.haveGathered(s, slot%maxAttempts) {
			return violated("%s has started before all pods have come", m.podName(slot))
		}
	}
	return nil
}
