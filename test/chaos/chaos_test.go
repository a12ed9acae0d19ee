package chaos

import (
	"flag"
	"os"
	"testing"
	"testing/synctest"
)

// deep makes the matrix complete; without it every crash point is tried, and some of the rest.
var deep = flag.Bool("chaos.deep", os.Getenv("CHAOS_DEEP") != "", "try every fault at every write, and more lots")

// result is what a run comes to.
type result struct {
	writes int
	state  string
}

// play runs a scenario with a fault. A run that fails prints all that has happened.
func play(t *testing.T, scenario Scenario, fault Fault) (out result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		run, err := NewRun(scenario, fault)
		if err != nil {
			t.Fatal(err)
		}
		failures, err := run.Do()
		if err != nil {
			t.Fatal(err)
		}
		out.writes = run.Writes()
		if out.state, err = run.State(); err != nil {
			t.Fatal(err)
		}
		for _, failure := range failures {
			t.Error(failure)
		}
		if t.Failed() {
			t.Logf("scenario %s, fault %s:\n%s", scenario.Name, fault, run.Trace())
		}
	})
	return out
}

func TestReference(t *testing.T) {
	for _, scenario := range Scenarios() {
		t.Run(scenario.Name, func(t *testing.T) {
			first := play(t, scenario, Fault{Kind: NoFault})
			t.Logf("%d writes", first.writes)
		})
	}
}
