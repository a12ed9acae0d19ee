package replica

import (
	"errors"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

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

var bounds = lots.Bounds{Pods: 24, TooBig: 12, Timeouts: [2]int32{1, 90}}

// trial brings the set of a seed to its end, and says which. A mistake in the engine may
// admit what the server refuses.
func trial(seed uint64, rules *admission, e engine) (end string, err error) {
	lot := lots.Draw(seed, bounds)
	l := newLife(lot, rules, e)
	errs, err := rules.create(l.set)
	switch refused := len(errs) > 0; {
	case err != nil:
		return "", err
	case refused && lot.Field == "":
		return "", errors.New("a set without a mistake is refused: " + errs.ToAggregate().Error())
	case refused && !names(errs, lot.Field):
		return "", errors.New("it is not said that " + lot.Mistake + ", at " + lot.Field + ": " + errs.ToAggregate().Error())
	case refused && !e.admit(l.set):
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
		seeds = 50000
	}
	ends := hunt(t, seeds, realEngine(), func(seed uint64, err error) { t.Errorf("seed %d: %v", seed, err) })
	for _, end := range []string{endRefused, endStarted, endSucceeded, endFailed, endWaiting} {
		t.Logf("%6d %s", ends[end], end)
		// Each end has to be among them, or nothing was hunted.
		if ends[end] < seeds/50 {
			t.Errorf("only %d of %d sets: %s", ends[end], seeds, end)
		}
	}
}

// hunt lets sets live until some are found that come to no good end, and counts the ends.
func hunt(t *testing.T, seeds uint64, e engine, found func(seed uint64, err error)) map[string]uint64 {
	t.Helper()
	const hunters, enough = 4, 3
	var (
		mu    sync.Mutex
		bad   int
		ends  = map[string]uint64{}
		group sync.WaitGroup
	)
	for hunter := range uint64(hunters) {
		group.Go(func() {
			rules := newAdmission()
			for seed := hunter + 1; seed <= seeds; seed += hunters {
				end, err := trial(seed, rules, e)
				mu.Lock()
				ends[end]++
				if err != nil {
					bad++
					found(seed, err)
				}
				stop := bad >= enough
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	group.Wait()
	return ends
}
