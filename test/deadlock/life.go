package deadlock

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/replica"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/lots"
)

const (
	// maxSteps bounds a life that does not come to rest, and maxLife does in its own time.
	maxSteps = 50000
	maxLife  = 240 * time.Hour
)

// engine is what decides when who starts. Tests put mistakes into it.
type engine struct {
	plan func(replica.Children, *grovev1alpha1.PodCliqueSet, int32) (create, update, remove []client.Object)
	gate func(gang.GateSnapshot, time.Time) gang.GateDecision
	set  func(gang.SetSnapshot, time.Time) gang.SetDecision
	// admit is a mistake that the server does not refuse, empty for none. Sets without it are
	// left out.
	admit string
}

func realEngine() engine {
	return engine{plan: replica.Children.Plan, gate: gang.DecideGate, set: gang.DecideSet}
}

// life is what becomes of one set: the decisions of all controllers, and around them
// nodes and a scheduler. Whose turn it is, is drawn by lot.
type life struct {
	engine
	lot      lots.Lot
	lots     *rand.Rand
	rules    *admission
	now      time.Time
	began    time.Time
	set      *grovev1alpha1.PodCliqueSet
	replicas []children
	nodes    nodes
	// todo are the passes of controllers that something has happened for, and timers when
	// others want to look again.
	todo   []pass
	timers map[pass]time.Time
	writes int
	// scaleAt is when the user adds a copy to a scaling group; zero for never.
	scaleAt time.Time
	// record is what the judge remembers.
	record record
	err    error
}

// pass is the work of a controller on one object.
type pass struct{ controller, name string }

func newLife(lot lots.Lot, rules *admission, e engine) *life {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := &life{
		engine: e, lot: lot, rules: rules, lots: rand.New(rand.NewPCG(lot.Seed, 0x11fe)), now: began, began: began,
		set: lot.Set.DeepCopy(), timers: map[pass]time.Time{}, record: newRecord(),
	}
	l.set.Namespace = "ns"
	l.nodes = newNodes(l)
	if !l.isTraining() && len(l.set.Spec.Template.PodCliqueScalingGroups) > 0 && l.lots.IntN(2) == 0 {
		l.scaleAt = began.Add(time.Duration(l.lots.IntN(60)) * time.Second)
	}
	return l
}

// scaleOut adds a copy to a scaling group, as a user or an autoscaler does.
func (l *life) scaleOut() {
	groups := l.groups()
	names := slices.Sorted(maps.Keys(groups))
	before := groups[names[l.lots.IntN(len(names))]]
	scaled := before.DeepCopy()
	scaled.Spec.Replicas++
	l.scaleAt = time.Time{}
	l.updated(scaled, before, false)
}

// run lets the set live until nothing happens any more.
func (l *life) run() error {
	for range l.set.Spec.Replicas {
		l.replicas = append(l.replicas, newChildren())
	}
	l.enqueueAll()
	for step := 0; l.err == nil; step++ {
		if step > maxSteps || l.now.Sub(l.began) > maxLife {
			return fmt.Errorf("the set does not come to rest: %d steps in %s", step, l.now.Sub(l.began))
		}
		due := l.nodes.due()
		if !l.scaleAt.IsZero() && !l.scaleAt.After(l.now) && len(l.groups()) > 0 {
			due = append(due, l.scaleOut)
		}
		switch n := len(l.todo) + len(due); {
		case n > 0:
			if choice := l.lots.IntN(n); choice < len(l.todo) {
				p := l.todo[choice]
				l.todo = slices.Delete(l.todo, choice, choice+1)
				l.do(p)
			} else {
				due[choice-len(l.todo)]()
			}
		case l.waitForTime():
		default:
			// Whoever was not told that something has happened would find it now.
			writes := l.writes
			for _, p := range l.passes() {
				l.do(p)
			}
			if l.writes == writes && len(l.todo) == 0 {
				return l.err
			}
			return fmt.Errorf("nobody was told that there is something to do: %v", l.todo)
		}
	}
	return l.err
}

// waitForTime lets time go on to when something is due; false when nothing is.
func (l *life) waitForTime() bool {
	next := l.nodes.next()
	if at := l.scaleAt; !at.IsZero() && (next.IsZero() || at.Before(next)) {
		next = at
	}
	for _, at := range l.timers {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if next.IsZero() {
		return false
	}
	if next.After(l.now) {
		l.now = next
	}
	for p, at := range maps.Clone(l.timers) {
		if !at.After(l.now) {
			delete(l.timers, p)
			l.enqueue(p)
		}
	}
	// Maps have no order, and a life has to be the same each time.
	slices.SortFunc(l.todo, func(a, b pass) int { return strings.Compare(a.controller+"/"+a.name, b.controller+"/"+b.name) })
	return true
}

func (l *life) enqueue(p pass) {
	if !slices.Contains(l.todo, p) {
		l.todo = append(l.todo, p)
	}
}

func (l *life) enqueueAll() {
	for _, p := range l.passes() {
		l.enqueue(p)
	}
}

// passes are all that there is to look at.
func (l *life) passes() []pass {
	out := []pass{{"set", ""}, {"scheduler", ""}}
	for i := range l.replicas {
		out = append(out, pass{"replica", fmt.Sprint(i)})
	}
	for _, name := range slices.Sorted(maps.Keys(l.cliques())) {
		out = append(out, pass{"clique", name})
	}
	for _, name := range slices.Sorted(maps.Keys(l.groups())) {
		out = append(out, pass{"group", name})
	}
	for _, name := range slices.Sorted(maps.Keys(l.gangs())) {
		out = append(out, pass{"gang", name})
	}
	return out
}

func merged[T any](l *life, of func(children) map[string]T) map[string]T {
	out := map[string]T{}
	for _, have := range l.replicas {
		maps.Copy(out, of(have))
	}
	return out
}

func (l *life) cliques() map[string]*grovev1alpha1.PodClique {
	return merged(l, func(c children) map[string]*grovev1alpha1.PodClique { return c.cliques })
}

func (l *life) groups() map[string]*grovev1alpha1.PodCliqueScalingGroup {
	return merged(l, func(c children) map[string]*grovev1alpha1.PodCliqueScalingGroup { return c.groups })
}

func (l *life) gangs() map[string]*schedulerv1alpha1.PodGang {
	return merged(l, func(c children) map[string]*schedulerv1alpha1.PodGang { return c.gangs })
}

func (l *life) gates() map[string]*grovev1alpha1.StartGate {
	return merged(l, func(c children) map[string]*grovev1alpha1.StartGate { return c.gates })
}

// replicaOf is where the children are that an object is one of.
func (l *life) replicaOf(obj client.Object) (int32, children) {
	index, _ := labels.ParseIndex(obj.GetLabels()[labels.ReplicaIndex])
	return index, l.replicas[index]
}

// store puts an object where it is read from, and tells those who watch it.
func (l *life) store(before, obj client.Object) {
	l.writes++
	if set, ok := obj.(*grovev1alpha1.PodCliqueSet); ok {
		l.set = set
	} else {
		_, have := l.replicaOf(obj)
		have.put(obj)
	}
	l.tell(before, obj)
}

// children are what a replica consists of.
type children struct {
	// all is how its controller sees it.
	all     replica.Children
	groups  map[string]*grovev1alpha1.PodCliqueScalingGroup
	cliques map[string]*grovev1alpha1.PodClique
	gangs   map[string]*schedulerv1alpha1.PodGang
	gates   map[string]*grovev1alpha1.StartGate
}

func newChildren() children {
	return children{
		all: replica.NewChildren(), groups: map[string]*grovev1alpha1.PodCliqueScalingGroup{}, cliques: map[string]*grovev1alpha1.PodClique{},
		gangs: map[string]*schedulerv1alpha1.PodGang{}, gates: map[string]*grovev1alpha1.StartGate{},
	}
}

func (c children) put(obj client.Object) {
	c.all.Put(obj)
	switch obj := obj.(type) {
	case *grovev1alpha1.PodCliqueScalingGroup:
		c.groups[obj.Name] = obj
	case *grovev1alpha1.PodClique:
		c.cliques[obj.Name] = obj
	case *schedulerv1alpha1.PodGang:
		c.gangs[obj.Name] = obj
	case *grovev1alpha1.StartGate:
		c.gates[obj.Name] = obj
	}
}

// created stores a new object as the server would.
func (l *life) created(obj client.Object) {
	if errs, err := l.rules.create(obj); err != nil || len(errs) > 0 {
		l.fail("the server refuses to create %T %s: %v %v", obj, obj.GetName(), err, errs)
		return
	}
	l.store(nil, obj)
}

// updated stores a change of an object, or of its status alone.
func (l *life) updated(obj, before client.Object, status bool) {
	if err := l.rules.update(obj, before, status); err != nil {
		l.fail("the server refuses to update %T %s: %v", obj, obj.GetName(), err)
		return
	}
	l.store(before, obj)
}

func (l *life) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
	}
}

func (l *life) podsOf(uid types.UID) []gang.Pod {
	var out []gang.Pod
	for _, p := range l.nodes.pods {
		if p.owner == uid {
			out = append(out, p.seen)
		}
	}
	return out
}

// isTraining says that pods finish.
func (l *life) isTraining() bool {
	return l.set.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining
}
