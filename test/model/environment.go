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
	podEvents
)

var podEventNames = [podEvents]string{"ready", "unready", "succeed", "fail", "user-deletes", "gone", "exit-0", "exit-1"}

// happen lets an event happen to a pod, if it can and the budget allows it.
func (m *Model) happen(s *state, slot int, event podEvent) bool {
	p := s.World.Pods[slot]
	if !p.exists() {
		return false
	}
	terminating := p.is(terminatingBit)
	attemptBit := uint8(1) << (slot % maxAttempts)
	switch event {
	case becomeReady:
		if terminating || p.life() != pending && p.life() != unready {
			return false
		}
		s.World.Pods[slot] = p.with(ready)
	case becomeUnready:
		if terminating || p.life() != ready || !spend(&s.Used.Flaps, m.config.Flaps) {
			return false
		}
		s.World.Pods[slot] = p.with(unready)
		s.History.Broken |= attemptBit
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
		s.History.Broken |= attemptBit
	case userDeletes:
		if terminating || !spend(&s.Used.Deletions, m.config.Deletions) {
			return false
		}
		s.History.Broken |= attemptBit
		m.requestDeletion(s, slot)
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
		if event == exitWithOne {
			how = failed
		}
		s.World.Pods[slot] = p.with(how).end(s.Tick)
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
