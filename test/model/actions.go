package model

import (
	"fmt"
	"strings"
)

// actionKind is what is done.
type actionKind uint8

const (
	pass actionKind = iota
	goOn
	crash
	freeze
	thaw
	happens
	clock
	faultsEnd
	deleteSet
)

// action is one step. Who is the controller, On the key or the cache; of an event, Who
// is the event and On the slot.
type action struct {
	Kind    actionKind
	Who, On uint8
}

var (
	controllerNames = [controllers]string{"leader", "second"}
	cacheNames      = [caches]string{"sets", "cliques", "pods"}
	keyNames        = [keys]string{"set", "replica", "a", "b"}
)

// nameOf names an action, in a form that is read back by actionNamed.
func (m *Model) nameOf(a action) string {
	switch a.Kind {
	case pass:
		return fmt.Sprintf("%s:looks-at:%s", controllerNames[a.Who], keyNames[a.On])
	case goOn:
		return fmt.Sprintf("%s:goes-on-with:%s", controllerNames[a.Who], keyNames[a.On])
	case crash:
		return controllerNames[a.Who] + ":crashes"
	case freeze:
		return fmt.Sprintf("%s:stops-to-see:%s", controllerNames[a.Who], cacheNames[a.On])
	case thaw:
		return fmt.Sprintf("%s:sees-again:%s", controllerNames[a.Who], cacheNames[a.On])
	case happens:
		return fmt.Sprintf("%s:%s", m.podName(int(a.On)), podEventNames[a.Who])
	case clock:
		return "clock"
	case deleteSet:
		return "user:deletes-the-set"
	case faultsEnd:
	}
	return "faults-end"
}

// actionNamed is the action with a name.
func (m *Model) actionNamed(name string) (action, error) {
	for _, a := range append(m.allActions(), action{Kind: faultsEnd}, action{Kind: clock}) {
		if m.nameOf(a) == name {
			return a, nil
		}
	}
	return action{}, fmt.Errorf("there is no action %q", name)
}

// allActions are those that this world can see, possible or not at a moment.
func (m *Model) allActions() []action {
	var out []action
	active := 1
	if m.config.SecondPasses > 0 {
		active = controllers
	}
	for who := range uint8(active) {
		for key := range uint8(keyClique + len(m.config.Sizes)) {
			out = append(out, action{pass, who, key}, action{goOn, who, key})
		}
		if m.config.Crashes > 0 {
			out = append(out, action{crash, who, 0})
		}
		if m.config.Freezes > 0 {
			for cache := range uint8(caches) {
				out = append(out, action{freeze, who, cache}, action{thaw, who, cache})
			}
		}
	}
	for number := range m.config.pods() {
		for attempt := range m.config.MaxRestarts + 2 {
			for event := range podEvents {
				out = append(out, action{happens, uint8(event), uint8(slotOf(number, attempt))})
			}
		}
	}
	if m.config.Deleted {
		out = append(out, action{deleteSet, 0, 0})
	}
	if m.config.Ticks > 0 {
		out = append(out, action{clock, 0, 0})
	}
	return out
}

// step carries an action out. It says false when it is not possible or changes nothing.
func (m *Model) step(before *state, a action) (state, bool, error) {
	s := *before
	c := &s.Controllers[a.Who%controllers]
	var err error
	switch a.Kind {
	case pass:
		if c.Flights[a.On].Kind != landed {
			return s, false, nil
		}
		if err = m.passOver(&s, int(a.Who), int(a.On)); err == nil && a.Who > 0 && s != *before && !spend(&s.Used.Passes, m.config.SecondPasses) {
			return s, false, nil
		}
	case goOn:
		if c.Flights[a.On].Kind == landed {
			return s, false, nil
		}
		err = m.land(&s, int(a.Who), int(a.On))
	case crash:
		if c.Flights == [keys]flight{} || !spend(&s.Used.Crashes, m.config.Crashes) {
			return s, false, nil
		}
		*c = controller{}
	case freeze:
		if c.Frozen&(1<<a.On) != 0 || !spend(&s.Used.Freezes, m.config.Freezes) {
			return s, false, nil
		}
		c.Frozen |= 1 << a.On
		c.show(int(a.On), &s.World)
	case thaw:
		if c.Frozen&(1<<a.On) == 0 {
			return s, false, nil
		}
		c.Frozen &^= 1 << a.On
		c.show(int(a.On), &world{})
	case happens:
		if !m.happen(&s, int(a.On), podEvent(a.Who)) {
			return s, false, nil
		}
	case clock:
		limit := m.config.Ticks
		if s.Calm {
			limit = lastTick
		}
		if !spend(&s.Used.Ticks, limit) {
			return s, false, nil
		}
		s.Tick++
	case deleteSet:
		possible := false
		if possible, err = m.userDeletesSet(&s); !possible {
			return s, false, err
		}
	case faultsEnd:
		s.endFaults()
	}
	if err != nil || s == *before {
		return s, false, err
	}
	return s, true, m.checkState(&s)
}

func (m *Model) passOver(s *state, who, key int) error {
	switch key {
	case keySet:
		return m.passSet(s, who)
	case keyReplica:
		return m.passReplica(s, who)
	default:
		return m.passClique(s, who, key-keyClique)
	}
}

// describe tells of a state in one line.
func (m *Model) describe(s *state) string {
	var out strings.Builder
	m.describeWorld(&out, &s.World)
	for who := range s.Controllers {
		c := &s.Controllers[who]
		for key, f := range c.Flights {
			if f.Kind != landed {
				fmt.Fprintf(&out, " | %s is at %s: %s", controllerNames[who], keyNames[key], m.describeFlight(f))
			}
		}
		if c.Frozen == 0 {
			continue
		}
		seen := s.view(who)
		fmt.Fprintf(&out, " | %s sees [", controllerNames[who])
		m.describeWorld(&out, &seen)
		out.WriteString("]")
	}
	return out.String()
}

func (m *Model) describeWorld(out *strings.Builder, w *world) {
	status := &m.sets.objects[w.Set].Status
	if m.sets.objects[w.Set].DeletionTimestamp != nil {
		out.WriteString("deleted ")
	}
	fmt.Fprintf(out, "set %s attempt %d restarts %d%s", status.Phase, m.attempt(w.Set), status.RestartCount, trueConditions(status.Conditions))
	for i := range m.config.Sizes {
		clique := m.cliques.objects[w.Cliques[i]]
		if m.cliqueIsGone(w.Cliques[i]) {
			fmt.Fprintf(out, " | %s gone", cliqueNames[i])
			continue
		}
		if clique.DeletionTimestamp != nil {
			out.WriteString(" | deleted")
		}
		fmt.Fprintf(out, " | %s attempt %d/%d", cliqueNames[i], clique.Status.ObservedAttempt, clique.Spec.Attempt)
		if clique.Status.OldReplicas > 0 {
			fmt.Fprintf(out, " old %d", clique.Status.OldReplicas)
		}
		if clique.Status.CompletedIndexes != "" {
			fmt.Fprintf(out, " completed %s", clique.Status.CompletedIndexes)
		}
		for _, f := range clique.Status.FailedIndexes {
			fmt.Fprintf(out, " failed %d(%dx)", f.Index, f.Count)
		}
		fmt.Fprintf(out, " created %d%s", clique.Status.CreatedReplicas, trueConditions(clique.Status.Conditions))
	}
	out.WriteString(" |")
	for slot, p := range w.Pods {
		if p.exists() {
			fmt.Fprintf(out, " %s %s", m.podName(slot), p)
		}
	}
}

func (m *Model) describeFlight(f flight) string {
	switch f.Kind {
	case writeSet:
		status := &m.sets.objects[f.Next].Status
		return fmt.Sprintf("writes %s attempt %d%s", status.Phase, m.attempt(f.Next), trueConditions(status.Conditions))
	case writeClique:
		return "writes a status"
	case raiseAttempt:
		return fmt.Sprintf("raises %s to %d", cliqueNames[f.Clique], m.cliques.objects[f.Next].Spec.Attempt)
	case writePods:
		var parts []string
		for slot := range slots {
			if f.Deletes&(1<<slot) != 0 {
				parts = append(parts, "delete "+m.podName(slot))
			}
		}
		for number := range maxPods {
			if f.Creates&(1<<number) != 0 {
				parts = append(parts, "create "+m.podName(slotOf(number, int32(f.Attempt))))
			}
		}
		return strings.Join(parts, ", ")
	case endSet, endClique:
		return "deletes or lets go"
	case landed:
	}
	return "nothing"
}
