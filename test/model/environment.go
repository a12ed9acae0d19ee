package model

// What happens to pods without the controllers.

type podEvent uint8

const (
	becomeReady podEvent = iota
	becomeUnready
	succeed
	fail
	userDeletes
	terminate
	exitWithZero
	exitWithOne
	collected
	come
	podEvents
)

var podEventNames = [podEvents]string{"ready", "unready", "succeed", "fail", "user-deletes", "gone", "exit-0", "exit-1", "collected", "comes"}

// happen lets an event happen to a pod, if it can and the budget allows it.
func (m *Model) happen(s *state, slot int, event podEvent) bool {
	p := s.World.Pods[slot]
	if !p.exists() {
		return false
	}
	terminating := p.is(terminatingBit)
	switch event {
	case becomeReady:
		switch {
		case terminating:
			return false
		case p.life() == waiting && m.isOpen(s.World.Gate, slot):
			p |= passedBit
		case p.life() != unready && (p.life() != pending || m.config.Barrier):
			return false
		}
		s.World.Pods[slot] = p.with(ready)
	case come:
		if terminating || !m.config.Barrier || p.life() != pending {
			return false
		}
		s.World.Pods[slot] = p.with(waiting)
		m.noteGathering(s, slot)
	case becomeUnready:
		if terminating || p.life() != ready || !spend(&s.Used.Flaps, m.config.Flaps) {
			return false
		}
		s.World.Pods[slot] = p.with(unready)
		m.noteBreach(s, slot)
	case succeed:
		if terminating || p.life() != ready || m.config.NoSuccess && !s.Calm {
			return false
		}
		s.World.Pods[slot] = p.with(succeeded).end(s.Tick) | evidenceBit
		s.History.Evidence |= 1 << slot
	case fail:
		if terminating || !p.active() || !spend(&s.Used.Failures, m.config.Failures) {
			return false
		}
		s.World.Pods[slot] = p.with(failed).end(s.Tick)
		m.noteBreach(s, slot)
	case userDeletes:
		if terminating || !spend(&s.Used.Deletions, m.config.Deletions) {
			return false
		}
		m.requestDeletion(s, slot)
		m.noteBreach(s, slot)
	case terminate:
		if !terminating {
			return false
		}
		s.World.Pods[slot] = p.gone()
		s.strike(slot)
	case exitWithZero, exitWithOne:
		if !terminating || !p.active() || !spend(&s.Used.Exits, m.config.Exits) {
			return false
		}
		how := succeeded
		if event == exitWithOne || p.life() == waiting {
			how = failed
		}
		s.World.Pods[slot] = p.with(how).end(s.Tick)
	case collected:
		// The garbage collector deletes what has lost its owner.
		which, _ := m.owner(slot / maxAttempts)
		if !m.config.Deleted || terminating || !m.cliqueIsGone(s.World.Cliques[which]) {
			return false
		}
		m.requestDeletion(s, slot)
	case podEvents:
		return false
	}
	return true
}

// spend uses one of a budget.
func spend(used *uint8, limit uint8) bool {
	if *used >= limit {
		return false
	}
	*used++
	return true
}

// noteBreach remembers that a clique is below its minimum after something has happened to
// a pod of it.
func (m *Model) noteBreach(s *state, slot int) {
	which, _ := m.owner(slot / maxAttempts)
	attempt := slot % maxAttempts
	first, end := m.numbers(which)
	available := int32(0)
	for number := first; number < end; number++ {
		p := s.World.Pods[slotOf(number, int32(attempt))]
		if p.is(evidenceBit) || p.life() == ready && !p.is(terminatingBit) {
			available++
		}
	}
	if available < *m.cliques.objects[m.start.World.Cliques[which]].Spec.MinAvailable {
		s.History.Broken |= 1 << attempt
	}
}
