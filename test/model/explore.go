package model

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Result is what a search came to.
type Result struct {
	// States that were seen, Steps between them, and the greatest distance from the start.
	States, Steps, Depth int
	// Complete says that no limit ended the search.
	Complete bool
	// Samples is how many states were run to their end.
	Samples int
	// Ended counts the runs by the phase that they ended with.
	Ended map[string]int
	// Decisions is how many different snapshots were decided on.
	Decisions int
	Time      time.Duration
	// Violation is the first thing found that must not be, nil for none.
	Violation *Counterexample
}

func (r *Result) String() string {
	return fmt.Sprintf("%d states, %d steps, depth %d, complete %t, %d decisions, %d run to the end %v, %.1f s (%.0f states/s)",
		r.States, r.Steps, r.Depth, r.Complete, r.Decisions, r.Samples, r.Ended, r.Time.Seconds(), float64(r.States)/r.Time.Seconds())
}

// Counterexample is a way to what must not be.
type Counterexample struct {
	Text string
	// Actions lead there from the start, by name.
	Actions []string
	// Story tells of each step and what it changed.
	Story []string
}

func (c *Counterexample) String() string {
	return fmt.Sprintf("%s\n%s\nreplay: -model.trace=%s", c.Text, strings.Join(c.Story, "\n"), strings.Join(c.Actions, ","))
}

// Explore visits the states that can be reached, nearest first.
func (m *Model) Explore(limits Limits) (*Result, error) {
	began := time.Now()
	g := newGraph()
	g.add(&m.start, 0, action{})
	all := m.allActions()
	result := &Result{Complete: true, Ended: map[string]int{}}
	// lastOfDepth is the last state at the present depth.
	lastOfDepth := 0
	for i := 0; i < g.n && result.Violation == nil; i++ {
		if i > lastOfDepth {
			lastOfDepth = g.n - 1
			result.Depth++
		}
		if limits.States > 0 && g.n >= limits.States || limits.Depth > 0 && result.Depth >= limits.Depth {
			result.Complete = false
			break
		}
		current := &g.at(i).state
		for _, a := range all {
			next, changed, err := m.step(current, a)
			if err != nil {
				if result.Violation, err = m.counterexample(append(g.path(uint32(i)), a), err); err != nil {
					return nil, err
				}
				break
			}
			if !changed {
				continue
			}
			result.Steps++
			g.add(&next, uint32(i), a)
		}
		if limits.SampleEvery > 0 && i%limits.SampleEvery == 0 && result.Violation == nil {
			result.Samples++
			phase, tail, err := m.runToEnd(current)
			if err != nil {
				if result.Violation, err = m.counterexample(append(g.path(uint32(i)), tail...), err); err != nil {
					return nil, err
				}
			}
			result.Ended[phase]++
		}
	}
	result.States = g.n
	result.Complete = result.Complete && result.Violation == nil
	result.Decisions = len(m.setDecisions) + len(m.cliqueDecisions)
	result.Time = time.Since(began)
	return result, nil
}

// counterexample tells of a way to a violation; other errors are returned.
func (m *Model) counterexample(way []action, err error) (*Counterexample, error) {
	var v *violation
	if !errors.As(err, &v) {
		return nil, err
	}
	c := &Counterexample{Text: m.config.Name + ": " + v.text}
	for _, a := range way {
		c.Actions = append(c.Actions, m.nameOf(a))
	}
	c.Story, _ = m.tell(way)
	return c, nil
}

// tell carries a way out, and tells of it. It stops at the first violation.
func (m *Model) tell(way []action) ([]string, error) {
	s := m.start
	story := []string{fmt.Sprintf("  0 start: %s", m.describe(&s))}
	for i, a := range way {
		next, _, err := m.step(&s, a)
		s = next
		story = append(story, fmt.Sprintf("%3d %s\n      %s", i+1, m.nameOf(a), m.describe(&s)))
		if err != nil {
			return append(story, "    => "+err.Error()), err
		}
	}
	return story, nil
}

// Replay carries out the actions with these names, and tells of them.
func (m *Model) Replay(names []string) ([]string, error) {
	way := make([]action, 0, len(names))
	for _, name := range names {
		a, err := m.actionNamed(name)
		if err != nil {
			return nil, err
		}
		way = append(way, a)
	}
	return m.tell(way)
}
