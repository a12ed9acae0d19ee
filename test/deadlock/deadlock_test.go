package deadlock

import (
	"errors"
	"flag"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/replica"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/lots"
)

// The hunt for sets that wait for ever: sets are drawn by lot, brought through the server's
// defaults and validation, and those that are admitted live with all of the controllers'
// decisions until nothing happens any more. Then every pod has started, or the set has
// failed and says why, or it waits for room and says so.

var (
	huntDeep = flag.Bool("hunt.deep", os.Getenv("HUNT_DEEP") != "", "draw many more sets")
	huntSeed = flag.Uint64("hunt.seed", 0, "draw the set of this seed alone")
)

func TestMain(m *testing.M) {
	// Lives are short, and leave much behind.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

var bounds = lots.Bounds{Pods: 24, TooBig: 12, Timeouts: [2]int32{1, 90}}

// trial brings the set of a seed to its end, and says which. A mistake in the engine may
// admit what the server refuses.
func trial(seed uint64, rules *admission, e engine) (end string, err error) {
	lot := lots.Draw(seed, bounds)
	if e.admit != "" && lot.Mistake != e.admit {
		return "", nil
	}
	l := newLife(lot, rules, e)
	errs, err := rules.create(l.set)
	switch refused := len(errs) > 0; {
	case err != nil:
		return "", err
	case refused && lot.Field == "":
		return "", errors.New("a set without a mistake is refused: " + errs.ToAggregate().Error())
	case refused && !names(errs, lot.Field):
		return "", errors.New("it is not said that " + lot.Mistake + ", at " + lot.Field + ": " + errs.ToAggregate().Error())
	case refused && lot.Mistake != e.admit:
		return endRefused, nil
	case !refused && lot.Field != "":
		return "", errors.New("a set is admitted though " + lot.Mistake)
	}
	if err = l.run(); err == nil {
		end, err = l.judge()
	}
	if err != nil {
		err = errors.New(err.Error() + "\n" + l.describe())
	}
	return end, err
}

// names says that one of several errors is about a field, or about what is in it.
func names(errs field.ErrorList, path string) bool {
	for _, err := range errs {
		if strings.HasPrefix(err.Field, path) {
			return true
		}
	}
	return false
}

func TestNoSetWaitsForEver(t *testing.T) {
	t.Parallel()
	if *huntSeed > 0 {
		if _, err := trial(*huntSeed, newAdmission(), realEngine()); err != nil {
			t.Fatal(err)
		}
		return
	}
	seeds := uint64(2000)
	if *huntDeep {
		seeds = 20000
	}
	const hunters = 4
	ends := hunt(seeds, hunters, realEngine(), func(seed uint64, err error) { t.Errorf("seed %d: %v", seed, err) })
	for _, end := range []string{endRefused, endStarted, endSucceeded, endFailed, endWaiting} {
		t.Logf("%6d %s", ends[end], end)
		// Each end has to be among them, or nothing was hunted.
		if ends[end] < seeds/50 {
			t.Errorf("only %d of %d sets: %s", ends[end], seeds, end)
		}
	}
}

// hunt lets sets live until one is found that comes to no good end, and counts the ends.
func hunt(seeds, hunters uint64, e engine, found func(seed uint64, err error)) map[string]uint64 {
	var (
		mu    sync.Mutex
		stop  bool
		ends  = map[string]uint64{}
		group sync.WaitGroup
	)
	for hunter := range hunters {
		group.Go(func() {
			rules := newAdmission()
			for seed := hunter + 1; seed <= seeds; seed += hunters {
				end, err := trial(seed, rules, e)
				mu.Lock()
				ends[end]++
				if err != nil && !stop {
					stop = true
					found(seed, err)
				}
				done := stop
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	group.Wait()
	return ends
}

// A seed that is printed leads to what was found.
func TestASeedLeadsToTheSameLife(t *testing.T) {
	t.Parallel()
	rules := newAdmission()
	for seed := range uint64(60) {
		var lives [2]*life
		for i := range lives {
			lives[i] = newLife(lots.Draw(seed, bounds), rules, realEngine())
			if errs, err := rules.create(lives[i].set); err != nil || len(errs) > 0 {
				// There is no life.
				continue
			}
			if err := lives[i].run(); err != nil {
				t.Fatal(err)
			}
		}
		one, other := lives[0], lives[1]
		if one.writes != other.writes || !one.now.Equal(other.now) || !apiequality.Semantic.DeepEqual(one.set, other.set) {
			t.Errorf("seed %d: once %d writes in %s, once %d in %s", seed, one.writes, one.now.Sub(one.began), other.writes, other.now.Sub(other.began))
		}
	}
}

// What the hunt is for, it finds: engines with a mistake each let a set wait for ever.
func TestAMistakeLetsSomeSetWaitForEver(t *testing.T) {
	t.Parallel()
	mistakes := map[string]struct {
		put func(*engine)
		// want is what is said of the set that is found.
		want string
	}{
		"a gate counts all pods of a clique that others wait for": {
			put: func(e *engine) {
				e.gate = gateOf(func(c *grovev1alpha1.PodClique) { c.Spec.MinAvailable = &c.Spec.Replicas })
			},
			// The controller does not look again when one more comes than are waited for.
			want: "nobody was told that there is something to do",
		},
		"a gate wants that to be Ready which has succeeded": {
			put: func(e *engine) {
				e.gate = gateOf(func(c *grovev1alpha1.PodClique) {
					c.Status.CompletedIndexes = ""
					meta.RemoveStatusCondition(&c.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded)
				})
			},
			want: "waits for ever though there is room",
		},
		"a gate looks at one pod of a clique that others wait for": {
			put: func(e *engine) {
				e.gate = gateOf(func(c *grovev1alpha1.PodClique) { c.Spec.MinAvailable = ptr.To[int32](1) })
			},
			want: "is opened before",
		},
		"scaled gangs are forgotten": {
			put: func(e *engine) {
				e.plan = func(c replica.Children, set *grovev1alpha1.PodCliqueSet, index int32) (create, update, remove []client.Object) {
					create, update, remove = c.Plan(set, index)
					return slices.DeleteFunc(create, func(obj client.Object) bool {
						_, isGang := obj.(*schedulerv1alpha1.PodGang)
						return isGang && obj.GetLabels()[labels.BasePodGang] != ""
					}), update, remove
				}
			},
			want: "is never made",
		},
		"nothing is said of what is waited for": {
			put: func(e *engine) {
				e.set = func(s gang.SetSnapshot, now time.Time) gang.SetDecision {
					decision := gang.DecideSet(s, now)
					for i := range decision.Status.ReplicaStatuses {
						decision.Status.ReplicaStatuses[i].WaitingFor = nil
					}
					decision.Changed = !apiequality.Semantic.DeepEqual(s.Set.Status, decision.Status)
					return decision
				}
			},
			want: "waits in silence",
		},
		"cliques that start after each other are admitted": {
			put: func(e *engine) {
				e.admit = "cliques start after each other"
			},
			want: "waits for ever though there is room",
		},
		"a clique that starts after one that there is not is admitted": {
			put: func(e *engine) {
				e.admit = "a clique starts after one that there is not"
			},
			want: "waits for ever though there is room",
		},
		"targets of the barrier of which one waits for the other are admitted": {
			put: func(e *engine) {
				e.admit = "one target of the barrier waits for another"
			},
			want: "waits for ever though there is room",
		},
	}
	for name, mistake := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, found := realEngine(), ""
			mistake.put(&e)
			// One hunter finds the same set each time.
			hunt(10000, 1, e, func(_ uint64, err error) { found = err.Error() })
			if said, _, _ := strings.Cut(found, "\n"); !strings.Contains(said, mistake.want) {
				t.Errorf("found %q, want %q", said, mistake.want)
			}
		})
	}
}

// gateOf decides about gates by PodCliques that are seen differently.
func gateOf(see func(*grovev1alpha1.PodClique)) func(gang.GateSnapshot, time.Time) gang.GateDecision {
	return func(s gang.GateSnapshot, now time.Time) gang.GateDecision {
		cliques := map[string]*grovev1alpha1.PodClique{}
		for name, clique := range s.Cliques {
			cliques[name] = clique.DeepCopy()
			see(cliques[name])
		}
		s.Cliques = cliques
		return gang.DecideGate(s, now)
	}
}
