package chaos

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// deep makes the matrix complete; without it every crash point is tried, and some of the rest.
var deep = flag.Bool("chaos.deep", os.Getenv("CHAOS_DEEP") != "", "try every fault at every write, and more lots")

func TestMain(m *testing.M) {
	// One goroutine runs at a time, and the runs leave much behind.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// result is what a run comes to.
type result struct {
	writes []bool
	passes map[string]int
	state  string
	// trace tells what has happened.
	trace func() string
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
		out.writes, out.passes, out.trace = run.Writes(), run.Passes(), run.Trace
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

// reference plays a scenario without a fault.
func reference(t *testing.T, scenario Scenario) result {
	t.Helper()
	out := play(t, scenario, Fault{Kind: NoFault})
	if t.Failed() {
		t.FailNow()
	}
	return out
}

// compare plays a scenario with a fault, whose end has to be that of the reference.
func compare(t *testing.T, scenario Scenario, fault Fault, want result) {
	t.Helper()
	t.Run(fault.String(), func(t *testing.T) {
		have := play(t, scenario, fault)
		if t.Failed() || scenario.AnyEnd || fault.Long || fault.Kind == DeleteSet {
			return
		}
		if diff := cmp.Diff(strings.Split(want.state, "\n"), strings.Split(have.state, "\n")); diff != "" {
			t.Errorf("the end differs from that without a fault (-want +got):\n%s", diff)
			t.Logf("scenario %s, fault %s:\n%s", scenario.Name, fault, have.trace())
		}
	})
}

// TestReference plays each scenario twice: the driver alone decides what happens.
func TestReference(t *testing.T) {
	for _, scenario := range Scenarios() {
		t.Run(scenario.Name, func(t *testing.T) {
			first, second := reference(t, scenario), reference(t, scenario)
			t.Logf("%d writes", len(first.writes))
			one, other := strings.Split(first.trace(), "\n"), strings.Split(second.trace(), "\n")
			for n := range min(len(one), len(other)) {
				if one[n] != other[n] {
					t.Fatalf("two runs differ from here on:\n%s\n- %s\n+ %s", strings.Join(one[max(n-5, 0):n], "\n"), one[n], other[n])
				}
			}
		})
	}
}

// TestCrash ends the controllers before and after each write.
func TestCrash(t *testing.T) {
	everywhere(t, 1, Fault{Kind: CrashBefore}, Fault{Kind: CrashAfter})
}

// TestReplyLost does each write and tells its controller that it timed out.
func TestReplyLost(t *testing.T) {
	everywhere(t, 3, Fault{Kind: ReplyLost})
}

// TestThePast ends the controllers after each write; the next ones see the past first.
func TestThePast(t *testing.T) {
	everywhere(t, 10,
		Fault{Kind: CrashIntoThePast, Kinds: allKinds(), Steps: 3},
		Fault{Kind: CrashIntoThePast, Kinds: ClusterKinds(), Steps: 3},
		Fault{Kind: CrashIntoThePast, Kinds: OurKinds(), Steps: 12},
		Fault{Kind: CrashIntoThePast, Kinds: []Kind{KindPod}, Steps: 12},
		Fault{Kind: CrashIntoThePast, Kinds: []Kind{KindPod}, Steps: 60},
	)
}

// TestStaleCaches lets caches lag behind from each write on.
func TestStaleCaches(t *testing.T) {
	var faults []Fault
	for _, kind := range []FaultKind{Freeze, FreezeAndRelist} {
		faults = append(faults,
			Fault{Kind: kind, Kinds: OurKinds(), Steps: 20},
			Fault{Kind: kind, Kinds: []Kind{KindSet}, Steps: 20},
			Fault{Kind: kind, Kinds: []Kind{KindClique}, Steps: 20},
			Fault{Kind: kind, Kinds: []Kind{KindPod}, Steps: 20},
			Fault{Kind: kind, Kinds: []Kind{KindPod, KindPodGroup, KindService}, Steps: 60},
			Fault{Kind: kind, Kinds: OurKinds(), Steps: 60, Long: true},
			Fault{Kind: kind, Kinds: []Kind{KindPod}, Steps: 60, Long: true},
		)
	}
	everywhere(t, 24, append(faults, Fault{Kind: HideRemoval, Kinds: []Kind{KindPod}, Steps: 40}, Fault{Kind: HideRemoval, Kinds: []Kind{KindClique}, Steps: 40})...)
}

// TestGatesOfThePast lets single caches of what a gate is decided by show the past, after a
// crash or while the others go on.
func TestGatesOfThePast(t *testing.T) {
	var faults []Fault
	for _, kind := range []Kind{KindGate, KindConfigMap, KindGroup, KindClique} {
		faults = append(faults, Fault{Kind: CrashIntoThePast, Kinds: []Kind{kind}, Steps: 12}, Fault{Kind: Freeze, Kinds: []Kind{kind}, Steps: 20})
	}
	everywhereIn(t, gated(), 8, faults...)
}

// TestPartition cuts the controllers off from one of the servers from each write on.
func TestPartition(t *testing.T) {
	everywhere(t, 12, Fault{Kind: Partition, Kinds: []Kind{KindSet}, Steps: 40}, Fault{Kind: Partition, Kinds: []Kind{KindPod}, Steps: 40},
		Fault{Kind: Partition, Kinds: []Kind{KindSet}, Steps: 80, Long: true}, Fault{Kind: Partition, Kinds: []Kind{KindPod}, Steps: 80, Long: true})
}

// TestDeletion has the user delete the set before each write.
func TestDeletion(t *testing.T) {
	everywhere(t, 4, Fault{Kind: DeleteSet})
}

// TestLots plays with errors, interleavings and leaders that are drawn by lot.
func TestLots(t *testing.T) {
	seeds := uint64(6)
	if *deep {
		seeds = 100
	}
	for _, scenario := range Scenarios() {
		t.Run(scenario.Name, func(t *testing.T) {
			want := reference(t, scenario)
			for _, kind := range []FaultKind{Errors, Interleave, TwoLeaders} {
				for seed := range seeds {
					compare(t, scenario, Fault{Kind: kind, Seed: seed + 1}, want)
				}
			}
		})
	}
}

// everywhere tries faults at the writes of all scenarios: at each stride-th, or at all of
// them in the deep tier.
func everywhere(t *testing.T, stride int, faults ...Fault) {
	t.Helper()
	everywhereIn(t, Scenarios(), stride, faults...)
}

func everywhereIn(t *testing.T, scenarios []Scenario, stride int, faults ...Fault) {
	t.Helper()
	for _, scenario := range scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			stride, want := stride, reference(t, scenario)
			switch {
			case *deep:
				stride = 1
			case scenario.Seldom && stride > 3:
				stride *= 3
			}
			for place, fault := range faults {
				// Not all faults at the same writes.
				for fault.At = 1 + place*7%stride; fault.At <= len(want.writes); fault.At += stride {
					if fault.Kind == CrashBefore && want.writes[fault.At-1] {
						continue
					}
					compare(t, scenario, fault, want)
				}
			}
		})
	}
}
