package model

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var (
	deep  = flag.Bool("model.deep", os.Getenv("MODEL_DEEP") != "", "explore the large worlds")
	only  = flag.String("model.world", "", "explore or replay this world alone")
	trace = flag.String("model.trace", "", "names of actions to replay, separated by commas")
	depth = flag.Int("model.depth", 0, "explore no deeper than this")
	most  = flag.Int("model.states", 0, "explore no more states than this in each world")
)

func explore(t *testing.T, config Config, decide Decisions, limits Limits) *Result {
	t.Helper()
	m, err := New(config, decide)
	if err != nil {
		t.Fatal(err)
	}
	result, err := m.Explore(limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(result)
	return result
}

// TestSafety explores what the product's decisions lead to. What must hold is in
// safety.go, and what must come of it in the end in quiesce.go.
func TestSafety(t *testing.T) {
	for _, w := range worlds() {
		if *only != "" && *only != w.config.Name || w.deep != *deep && *only == "" {
			continue
		}
		t.Run(w.config.Name, func(t *testing.T) {
			limits := w.limits
			if *depth > 0 {
				limits.Depth = *depth
			}
			if *most > 0 {
				limits.States = *most
			}
			if result := explore(t, w.config, Real(), limits); result.Violation != nil {
				t.Error(result.Violation)
			}
		})
	}
}

// TestValidationRefusesNothing: the decisions are safe by themselves, so a server that
// accepts every status makes no difference.
func TestValidationRefusesNothing(t *testing.T) {
	for _, w := range worlds() {
		if w.config.Name != "stale-pair" && w.config.Name != "second" {
			continue
		}
		limits := Limits{}
		with := explore(t, w.config, Real(), limits)
		w.config.SkipValidation = true
		without := explore(t, w.config, Real(), limits)
		if with.States != without.States || without.Violation != nil {
			t.Errorf("%s: %d states with validation, %d without, %v", w.config.Name, with.States, without.States, without.Violation)
		}
	}
}

func TestReplay(t *testing.T) {
	if *trace == "" {
		t.Skip("-model.trace and -model.world say what to replay")
	}
	for _, w := range worlds() {
		if w.config.Name != *only {
			continue
		}
		m, err := New(w.config, Real())
		if err != nil {
			t.Fatal(err)
		}
		story, err := m.Replay(strings.Split(*trace, ","))
		t.Logf("\n%s", strings.Join(story, "\n"))
		if err != nil {
			t.Error(err)
		}
		return
	}
	t.Errorf("there is no world %q", *only)
}

// A counterexample can be replayed, and says the same again.
func TestCounterexamplesReplay(t *testing.T) {
	config := Config{Name: "trusting", Sizes: []int32{1, 1}, MaxRestarts: 1, Failures: 1, Freezes: 1, SecondPasses: 3, TrustCache: true}
	m, err := New(config, Real())
	if err != nil {
		t.Fatal(err)
	}
	result, err := m.Explore(Limits{})
	if err != nil || result.Violation == nil {
		t.Fatal(result, err)
	}
	again, err := New(config, Real())
	if err != nil {
		t.Fatal(err)
	}
	story, err := again.Replay(result.Violation.Actions)
	if err == nil || !strings.HasSuffix(result.Violation.Text, err.Error()) {
		t.Errorf("%v, %s", err, strings.Join(story, "\n"))
	}
}
