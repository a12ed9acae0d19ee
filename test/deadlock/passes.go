package deadlock

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/replica"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// do is one pass of a controller, or of the scheduler: it observes, decides, records and
// applies as the reconcilers do. All of them see everything as it is.
func (l *life) do(p pass) {
	delete(l.timers, p)
	var next time.Time
	switch p.controller {
	case "set":
		next = l.passSet()
	case "replica":
		index, _ := strconv.ParseInt(p.name, 10, 32)
		next = l.passReplica(int32(index))
	case "clique":
		next = l.passClique(l.cliques()[p.name])
	case "group":
		next = l.passGroup(l.groups()[p.name])
	case "gang":
		l.passGang(l.gangs()[p.name])
	case "scheduler":
		l.nodes.schedule()
	}
	if !next.IsZero() {
		l.timers[p] = next
	}
}

// tell puts those in the queue who watch an object. What lets an event through to the
// replica controller is the controller's own; the others hear of everything. before is nil
// for a new object.
func (l *life) tell(before, obj client.Object) {
	l.enqueue(pass{"set", ""})
	if set, ok := obj.(*grovev1alpha1.PodCliqueSet); ok {
		// The others look at nothing else of a set either.
		if replica.Hears(before, set, true) {
			l.enqueueAll()
		}
		return
	}
	_, have := l.replicaOf(obj)
	if replica.Hears(before, obj, len(have.gates) > 0) {
		l.enqueue(pass{"replica", obj.GetLabels()[labels.ReplicaIndex]})
	}
	switch obj := obj.(type) {
	case *grovev1alpha1.PodClique:
		l.enqueue(pass{"clique", obj.Name})
		l.enqueue(pass{"gang", obj.Labels[labels.PodGang]})
		if group := obj.Labels[labels.ScalingGroup]; group != "" {
			l.enqueue(pass{"group", group})
		}
		if obj.Spec.Attempt > 0 {
			// Those who restart together wait for each other.
			l.tellCliques(obj, func(*grovev1alpha1.PodClique) bool { return true })
		}
	case *grovev1alpha1.PodCliqueScalingGroup:
		l.enqueue(pass{"group", obj.Name})
		l.tellCliques(obj, func(*grovev1alpha1.PodClique) bool { return true })
	case *schedulerv1alpha1.PodGang:
		l.enqueue(pass{"gang", obj.Name})
		l.enqueue(pass{"scheduler", ""})
		l.tellCliques(obj, func(c *grovev1alpha1.PodClique) bool {
			return c.Labels[labels.PodGang] == obj.Name || c.Labels[labels.BasePodGang] == obj.Name
		})
	case *grovev1alpha1.StartGate:
		for _, name := range slices.Sorted(maps.Keys(l.groups())) {
			l.enqueue(pass{"group", name})
		}
	}
}

func (l *life) tellCliques(of client.Object, matches func(*grovev1alpha1.PodClique) bool) {
	_, have := l.replicaOf(of)
	for _, name := range slices.Sorted(maps.Keys(have.cliques)) {
		if matches(have.cliques[name]) {
			l.enqueue(pass{"clique", name})
		}
	}
}

func (l *life) passSet() time.Time {
	s := gang.SetSnapshot{Set: l.set, Cliques: l.cliques(), Groups: l.groups(), Gangs: l.gangs(), Gates: l.gates()}
	if due := gang.RuntimeDeadline(l.set); !due.IsZero() && !l.now.Before(due) && gang.ParentOf(l.set) == gang.ParentActive {
		pods := map[types.UID][]gang.Pod{}
		for _, clique := range s.Cliques {
			pods[clique.UID] = l.podsOf(clique.UID)
		}
		s.FinishedAt = gang.FinishedAt(s, pods, l.now)
	}
	s.NoActivePods = !slices.ContainsFunc(l.nodes.pods, func(p *podOnNode) bool { return !p.hasEnded() })
	for _, clique := range s.Cliques {
		s.NoActivePods = s.NoActivePods && gang.KnowsOfFailure(clique)
	}
	decision := l.engine.set(s, l.now)
	if decision.Changed {
		updated := l.set.DeepCopy()
		updated.Status = decision.Status
		l.checkStages(updated)
		l.updated(updated, l.set, true)
	}
	return decision.Next
}

func (l *life) passReplica(index int32) time.Time {
	have := l.replicas[index]
	create, update, remove := l.plan(have.all, l.set, index)
	for _, obj := range remove {
		l.fail("%T %s is removed though nobody has asked for it", obj, obj.GetName())
	}
	for _, obj := range update {
		l.updated(obj, have.before(obj), false)
	}
	for _, obj := range create {
		l.created(obj)
	}
	gate := have.gates[naming.Replica(l.set.Name, index)]
	if gate == nil || !gang.NeedsGate(l.set) || gang.ParentOf(l.set) != gang.ParentActive || l.err != nil {
		return time.Time{}
	}
	decision := l.gate(gang.GateSnapshot{Set: l.set, Replica: index, Gate: gate, Cliques: have.cliques, Groups: have.groups}, l.now)
	updated := gate.DeepCopy()
	updated.Status = decision.Status
	if !sameGate(gate, updated) {
		l.checkGate(gate, updated)
		l.updated(updated, gate, true)
	}
	return decision.Next
}

// before is an object as it is until a pass changes it.
func (c children) before(obj client.Object) client.Object {
	if _, ok := obj.(*grovev1alpha1.PodClique); ok {
		return c.cliques[obj.GetName()]
	}
	return c.gangs[obj.GetName()]
}

func sameGate(a, b *grovev1alpha1.StartGate) bool {
	return slices.EqualFunc(a.Status.Cliques, b.Status.Cliques, func(x, y grovev1alpha1.StartGateClique) bool {
		return x.Name == y.Name && x.Attempt == y.Attempt && x.Open == y.Open && x.Expired == y.Expired && x.FirstStarted.Equal(y.FirstStarted)
	})
}

func (l *life) passClique(clique *grovev1alpha1.PodClique) time.Time {
	index, have := l.replicaOf(clique)
	attempt := gang.ReplicaAttempt(l.set, index)
	s := gang.CliqueSnapshot{
		Clique: clique, Parent: gang.ParentOf(l.set), Turn: gang.TurnOf(l.set, clique, index, have.groups[clique.Labels[labels.ScalingGroup]]),
		TerminationDelay: gang.TerminationDelay(l.set, clique), Pods: l.podsOf(clique.UID), Membership: l.membership(clique, have),
	}
	s.Lost = gang.MissingIndexes(clique, s.Pods)
	var siblings []grovev1alpha1.PodClique
	for _, name := range slices.Sorted(maps.Keys(have.cliques)) {
		siblings = append(siblings, *have.cliques[name])
	}
	s.OthersDrained = clique.Spec.Attempt == 0 || gang.Drained(clique, siblings, have.groups, attempt)
	decision := gang.DecideClique(s, l.now)
	if decision.Changed {
		updated := clique.DeepCopy()
		updated.Status = decision.Status
		l.updated(updated, clique, true)
	}
	if decision.Record || l.err != nil {
		return time.Time{}
	}
	for _, pod := range decision.Delete {
		l.nodes.remove(pod.UID)
	}
	if clique.Spec.Attempt >= gang.WantedAttempt(clique, have.groups, attempt) {
		for _, podIndex := range decision.Create {
			l.nodes.create(clique, podIndex, have.gangs[clique.Labels[labels.PodGang]])
		}
	}
	return decision.Next
}

// membership is what the gangs of a clique are, as its controller reads them.
func (l *life) membership(clique *grovev1alpha1.PodClique, have children) gang.Membership {
	podGang := have.gangs[clique.Labels[labels.PodGang]]
	if podGang == nil {
		return gang.Membership{}
	}
	m := gang.Membership{Scheduled: gang.WasScheduled(podGang), BaseScheduled: true}
	for _, group := range podGang.Spec.PodGroups {
		if group.Name == clique.Name {
			first := naming.Pod(clique.Name, clique.UID, 0, clique.Spec.Attempt)
			m.Known = (len(group.PodReferences) == 0 || group.PodReferences[0].Name == first) && gang.IsTold(podGang)
		}
	}
	if base := clique.Labels[labels.BasePodGang]; base != "" {
		m.BaseScheduled = have.gangs[base] != nil && gang.WasScheduled(have.gangs[base])
	}
	return m
}

func (l *life) passGroup(group *grovev1alpha1.PodCliqueScalingGroup) time.Time {
	index, have := l.replicaOf(group)
	s := gang.GroupSnapshot{
		Group: group, SetAttempt: gang.ReplicaAttempt(l.set, index), Parent: gang.ParentOf(l.set),
		TerminationDelay: gang.GroupTerminationDelay(l.set, group), Gate: have.gates[naming.Replica(l.set.Name, index)],
	}
	for _, name := range slices.Sorted(maps.Keys(have.cliques)) {
		if clique := have.cliques[name]; clique.Labels[labels.ScalingGroup] == group.Name {
			s.Cliques = append(s.Cliques, *clique)
		}
	}
	decision := gang.DecideGroup(s, l.now)
	if decision.Changed {
		updated := group.DeepCopy()
		updated.Status = decision.Status
		l.updated(updated, group, true)
	}
	return decision.Next
}

func (l *life) passGang(podGang *schedulerv1alpha1.PodGang) {
	if podGang == nil {
		// A clique may be there before its gang.
		return
	}
	_, have := l.replicaOf(podGang)
	s := gang.GangSnapshot{PodGang: podGang, Cliques: map[string]*grovev1alpha1.PodClique{}}
	s.Scheduled, s.Why = l.nodes.observe(podGang)
	for _, group := range podGang.Spec.PodGroups {
		if clique := have.cliques[group.Name]; clique != nil {
			s.Cliques[group.Name] = clique
		}
	}
	if status, changed := gang.DecideGang(s, l.now); changed {
		updated := podGang.DeepCopy()
		updated.Status = status
		l.updated(updated, podGang, true)
	}
}
