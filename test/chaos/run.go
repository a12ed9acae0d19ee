package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxSteps and maxTime bound a run that does not come to rest.
const (
	maxSteps = 20000
	maxTime  = 12 * time.Hour
	// shortLag is how long caches lag at most, unless they may lag for long: less than
	// what the scripts of pods take, and than the patience of a read.
	shortLag = 3 * time.Second
	longLag  = 10 * time.Minute
)

// Run is one run of a scenario with a fault. It lives in a synctest bubble.
type Run struct {
	scenario Scenario
	fault    Fault
	lots     *rand.Rand
	scheme   *runtime.Scheme
	mapper   meta.RESTMapper
	ours     *server
	cluster  *server
	world    *world
	checker  *checker
	began    time.Time

	live      []*instance
	instances int
	step      int
	writes    int
	// quiet are the writes before which, since the write before them, nothing but the
	// controllers has done anything.
	quiet []bool
	idle  bool
	// passes counts the passes of each key, whose name begins with its controller's.
	passes map[string]int
	// events is how many events have been delivered.
	events int
	// lagSince is when caches began to lag.
	lagSince time.Time
	// cutUntil is the step until which the servers of the fault's kinds are out of reach.
	cutUntil int
	failures []string

	mu      sync.Mutex
	arrived []*write
	pending []*write
	lines   []line
}

// write is a write that a controller waits for.
type write struct {
	instance *instance
	pass     pass
	verb     string
	kind     Kind
	key      types.NamespacedName
	object   client.Object
	do       func() (client.Object, error)
	result   client.Object
	err      error
	replied  chan struct{}
}

// String says what the write is.
func (w *write) String() string {
	return fmt.Sprintf("%s: %s %s %s", w.pass.key, w.verb, w.kind, w.key.Name)
}

// NewRun prepares a run.
func NewRun(scenario Scenario, fault Fault) (*Run, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	r := &Run{
		scenario: scenario, fault: fault, scheme: scheme, mapper: newRESTMapper(), began: time.Now(),
		ours: newServer("ours", 1000, ourRules(scheme)), cluster: newServer("cluster", 500000, clusterRulesOf()),
		lots: rand.New(rand.NewPCG(fault.Seed, 0)), passes: map[string]int{},
	}
	r.world = newWorld(r)
	r.checker = newChecker(r)
	r.ours.changed = r.checker.changed
	r.cluster.changed = r.checker.changed
	return r, nil
}

func (r *Run) serverOf(k Kind) *server {
	if slices.Contains(OurKinds(), k) {
		return r.ours
	}
	return r.cluster
}

// stillExists says that an object that was written is there, if only to be finalized.
func (r *Run) stillExists(k Kind, obj client.Object) bool {
	current, err := r.serverOf(k).get(k, client.ObjectKeyFromObject(obj))
	return err == nil && current.GetUID() == obj.GetUID()
}

func (r *Run) partitioned(k Kind) bool {
	return r.step < r.cutUntil && slices.ContainsFunc(r.fault.Kinds, func(cut Kind) bool { return r.serverOf(cut) == r.serverOf(k) })
}

// trace adds a line to what is printed when the run fails.
func (r *Run) trace(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line{at: time.Since(r.began).Round(time.Millisecond), step: r.step, format: format, args: args})
}

// line is a line of the trace. It is put into words only when a run fails.
type line struct {
	at     time.Duration
	step   int
	format string
	args   []any
}

// String puts the line into words.
func (l line) String() string {
	return fmt.Sprintf("%10s %5d  %s", l.at, l.step, fmt.Sprintf(l.format, l.args...))
}

// fail notes what is wrong; the run ends.
func (r *Run) fail(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	r.failures = append(r.failures, message)
	r.trace("!!! %s", message)
}

// Trace is what has happened, with the writes numbered.
func (r *Run) Trace() string {
	var out strings.Builder
	for _, l := range r.lines {
		fmt.Fprintln(&out, l)
	}
	return out.String()
}

// Writes are the writes that the controllers have tried, in their order. True means that
// nothing but the controllers has done anything since the write before: to crash before
// this one is to crash after that one.
func (r *Run) Writes() []bool { return r.quiet }

// Passes are how often the controllers have looked at each key, whose name begins with
// that of its controller.
func (r *Run) Passes() map[string]int { return r.passes }

// Do runs the scenario to its end, and returns what is wrong.
func (r *Run) Do() ([]string, error) {
	if _, err := r.cluster.create(KindNode, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}); err != nil {
		return nil, fmt.Errorf("create the node: %w", err)
	}
	if _, err := r.ours.create(KindSet, r.scenario.Set); err != nil {
		return nil, fmt.Errorf("create the set: %w", err)
	}
	leaders := 1
	if r.fault.Kind == TwoLeaders {
		leaders = 2
	}
	defer func() {
		for _, i := range r.live {
			i.kill()
		}
	}()
	for range leaders {
		if _, err := r.startInstance(nil); err != nil {
			return nil, err
		}
	}
	for len(r.failures) == 0 && r.next() {
		// Nobody sees the number of the step while it changes.
		synctest.Wait()
		r.step++
		if r.step > maxSteps || time.Since(r.began) > maxTime {
			r.fail("the system does not come to rest: %d steps and %d writes in %s", r.step, r.writes, time.Since(r.began))
		}
	}
	if len(r.failures) == 0 {
		r.checker.end()
	}
	return r.failures, nil
}

// next does the next thing, and says whether there was one.
func (r *Run) next() bool {
	if r.fault.byLot() {
		if r.nextByLot() {
			return true
		}
	} else {
		r.settle()
		if len(r.pending) > 0 {
			r.execute(0)
			return true
		}
		if actions := r.world.due(); len(actions) > 0 {
			r.act(actions[0])
			return true
		}
	}
	return r.pass()
}

// settle delivers events and lets the controllers work until nothing is left but writes,
// the world, and time.
func (r *Run) settle() {
	for busy := true; busy && len(r.failures) == 0; {
		busy = false
		r.collect()
		for _, i := range r.live {
			for _, k := range allKinds() {
				for i.deliverable(k) {
					i.deliver(k)
					busy = true
				}
			}
		}
		r.collect()
		for _, i := range r.live {
			for _, q := range i.queues {
				q.promote(time.Now())
				if i.startKey(q) {
					r.collect()
					busy = true
				}
			}
		}
	}
}

// collect waits until every goroutine waits for the driver or for events, and puts the
// writes that have come in order.
func (r *Run) collect() {
	synctest.Wait()
	for _, i := range r.live {
		for i.consistency.release() {
			synctest.Wait()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.arrived, func(a, b *write) int {
		return cmp.Or(cmp.Compare(a.instance.number, b.instance.number), cmp.Compare(a.kind, b.kind), cmp.Compare(a.key.Name, b.key.Name), cmp.Compare(a.verb, b.verb))
	})
	r.pending = append(r.pending, r.arrived...)
	r.arrived = nil
}

// nextByLot does one of the things that can happen next.
func (r *Run) nextByLot() bool {
	r.collect()
	var options []func()
	for n := range r.pending {
		options = append(options, func() { r.execute(n) })
	}
	for _, i := range r.live {
		for _, k := range allKinds() {
			if i.deliverable(k) {
				options = append(options, func() { i.deliver(k) })
			}
		}
		for _, q := range i.queues {
			q.promote(time.Now())
			if q.startable() {
				options = append(options, func() { i.startKey(q) })
			}
		}
	}
	for _, a := range r.world.due() {
		options = append(options, func() { r.act(a) })
	}
	if len(options) == 0 {
		return false
	}
	options[r.lots.IntN(len(options))]()
	return true
}

func (r *Run) act(a action) {
	r.idle = false
	r.trace("  world: %s", a.name)
	a.do()
}

// pass lets time go on to the next moment at which something can happen. When there is
// none, or it is too far away, what is frozen thaws; when nothing is, the run is over.
func (r *Run) pass() bool {
	next := r.world.next()
	for _, i := range r.live {
		if at := i.consistency.nextEnd(); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
		for _, q := range i.queues {
			if at, ok := q.next(); ok && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	if until, lagging := r.lagging(); lagging && (next.IsZero() || next.After(until)) {
		r.thaw()
		return true
	}
	if next.IsZero() {
		return false
	}
	r.idle = false
	<-time.After(time.Until(next))
	return true
}

// lagging says that something is frozen, hidden or cut off, and until when at most.
func (r *Run) lagging() (time.Time, bool) {
	lagging := r.cutUntil > r.step
	for _, i := range r.live {
		for _, informer := range i.informers {
			lagging = lagging || informer.frozenUntil > r.step || informer.ghostUntil > 0
		}
	}
	if r.fault.Long {
		return r.lagSince.Add(longLag), lagging
	}
	return r.lagSince.Add(shortLag), lagging
}

// thaw ends what makes caches lag.
func (r *Run) thaw() {
	r.trace("  THAW")
	r.cutUntil = 0
	for _, i := range r.live {
		for _, informer := range i.informers {
			informer.frozenUntil = 0
			if informer.ghostUntil > 0 {
				informer.ghostUntil = r.step
			}
		}
	}
}

// submit hands a write to the driver.
func (r *Run) submit(w *write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.instance.isDead() {
		w.err = errCrashed
		close(w.replied)
		return
	}
	r.arrived = append(r.arrived, w)
}

// abandon answers the writes of a dead instance: they have not been done.
func (r *Run) abandon(i *instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := func(w *write) bool {
		if w.instance != i {
			return false
		}
		w.err = errCrashed
		close(w.replied)
		return true
	}
	r.arrived = slices.DeleteFunc(r.arrived, gone)
	r.pending = slices.DeleteFunc(r.pending, gone)
}

// set is the set of the scenario as it is; nil when it is gone.
func (r *Run) set() client.Object {
	obj, err := r.ours.get(KindSet, client.ObjectKeyFromObject(r.scenario.Set))
	if err != nil {
		return nil
	}
	return obj
}

// deleteSet is what kubectl delete does.
func (r *Run) deleteSet() {
	if _, err := r.ours.delete(KindSet, client.ObjectKeyFromObject(r.scenario.Set), nil, nil); err != nil {
		r.trace("  the user's deletion: %v", err)
	}
}
