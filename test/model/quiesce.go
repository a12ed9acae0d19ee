package model

// enough is more than a fair run of this world needs.
const enough = 1000

// lastTick is how far the clock goes in a world without faults.
const lastTick = 3

// endFaults takes the second controller away and lets all caches follow.
func (s *state) endFaults() {
	s.Calm = true
	s.Controllers[1] = controller{}
	s.Controllers[0].Frozen, s.Controllers[0].View = 0, world{}
}

// runToEnd lets the world go on without faults: the leader does all it can, then pods
// start and stop as they should, then one succeeds, then the clock moves. It returns the
// phase at which nothing moves any more, and the way there.
func (m *Model) runToEnd(from *state) (string, []action, error) {
	way := []action{{Kind: faultsEnd}}
	s := *from
	s.endFaults()
	for range enough {
		a, next, err := m.fairStep(&s)
		if err != nil {
			return "", append(way, a), err
		}
		if next == s {
			return m.endOfRun(&s), way, m.checkRest(&s)
		}
		way = append(way, a)
		if a.Kind == clock {
			if err := m.checkAlarms(&s, &next); err != nil {
				return "", way, err
			}
		}
		s = next
	}
	return "", way, violated("the world does not come to rest within %d steps: %s", enough, m.describe(&s))
}

// fairStep makes the first step that changes something.
func (m *Model) fairStep(s *state) (action, state, error) {
	for _, try := range m.fairActions() {
		next, changed, err := m.step(s, try)
		if changed || err != nil {
			return try, next, err
		}
	}
	return action{}, *s, nil
}

// fairActions are those of a world in which nothing goes wrong, most urgent first.
func (m *Model) fairActions() []action {
	var out []action
	for key := range uint8(keyClique + len(m.config.Sizes)) {
		out = append(out, action{goOn, 0, key}, action{pass, 0, key})
	}
	for _, event := range []podEvent{terminate, collected, come, becomeReady} {
		for slot := range uint8(slots) {
			out = append(out, action{happens, uint8(event), slot})
		}
	}
	for slot := range uint8(slots) {
		out = append(out, action{happens, uint8(succeed), slot})
	}
	return append(out, action{clock, 0, 0})
}

// endOfRun is what a run came to.
func (m *Model) endOfRun(s *state) string {
	if m.setIsGone(s.World.Set) {
		return "Gone"
	}
	return string(m.sets.objects[s.World.Set].Status.Phase)
}

func hasAny(pods *podSet) bool {
	for _, p := range pods {
		if p.exists() {
			return true
		}
	}
	return false
}

// checkRest is what holds when nothing moves any more: the set has ended, and nothing
// runs below it.
func (m *Model) checkRest(s *state) error {
	if m.sets.objects[s.World.Set].DeletionTimestamp != nil {
		if !m.setIsGone(s.World.Set) || hasAny(&s.World.Pods) {
			return violated("the set was deleted and something is left: %s", m.describe(s))
		}
		return nil
	}
	if !isTerminal(&m.sets.objects[s.World.Set].Status) {
		return violated("the world comes to rest and the set has not ended: %s", m.describe(s))
	}
	if hasActive(&s.World.Pods) {
		return violated("the set has ended and pods are left: %s", m.describe(s))
	}
	return nil
}

// checkAlarms wants that whoever has something to do because the time has come had asked
// to be woken.
func (m *Model) checkAlarms(before, after *state) error {
	seen := before.view(0)
	for key := range uint8(keyClique + len(m.config.Sizes)) {
		if _, changed, err := m.step(after, action{pass, 0, key}); err != nil || !changed {
			continue
		}
		due, err := m.dueOf(before, &seen, int(key))
		if err != nil {
			return err
		}
		if due == 0 || due > after.Tick {
			return violated("nobody looks at %s at tick %d", keyNames[key], after.Tick)
		}
	}
	return nil
}

func (m *Model) dueOf(s *state, seen *world, key int) (uint8, error) {
	switch key {
	case keySet:
		look, _ := m.lookAtSet(s, seen)
		d, err := m.decideSet(look)
		return d.due, err
	case keyReplica:
		return 0, nil
	default:
		look, _ := m.lookAtClique(s, seen, key-keyClique)
		d, err := m.decideClique(look)
		return d.due, err
	}
}
