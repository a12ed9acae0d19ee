package model

import (
	"flag"
	"fmt"
	"os"
	"strconv"
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
	return result
}

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
			result := explore(t, w.config, Real(), limits)
			t.Log(result)
			if result.Violation != nil {
				t.Error(result.Violation)
			}
		})
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
		fmt.Println(strings.Join(story, "\n"))
		if err != nil {
			t.Error(err)
		}
		return
	}
	t.Errorf("there is no world %s", strconv.Quote(*only))
}
