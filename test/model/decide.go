package model

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
)

// cliqueKey is a snapshot of a clique.
type cliqueKey struct {
	clique     uint16
	which      uint8
	parent     gang.Parent
	tick, lost uint8
	// drained is CliqueSnapshot.OthersDrained.
	drained bool
	pods    podSet
}

// cliqueDecision is what follows from it.
type cliqueDecision struct {
	next    uint16
	record  bool
	creates uint8
	deletes uint16
	// due is the tick at which the clique is looked at though nothing has happened; 0 for never.
	due uint8
}

// dueAt is the first tick at which a moment has come, 0 for none.
func dueAt(moment time.Time) uint8 {
	if moment.IsZero() {
		return 0
	}
	return uint8((moment.Sub(now(0)) + tick - 1) / tick)
}

// podsOf keeps the pods of one clique, without what decisions do not see.
func (m *Model) podsOf(which int, pods *podSet) podSet {
	var out podSet
	first, end := m.numbers(which)
	for slot := first * maxAttempts; slot < end*maxAttempts; slot++ {
		if pods[slot].exists() {
			out[slot] = pods[slot] &^ strayBit
		}
	}
	return out
}

// gangPods are pods as pkg/gang sees them.
func (m *Model) gangPods(pods *podSet, at uint8) []gang.Pod {
	var out []gang.Pod
	for slot, p := range pods {
		if !p.exists() {
			continue
		}
		_, index := m.owner(slot / maxAttempts)
		name := m.podName(slot)
		seen := gang.Pod{
			Name: name, UID: uidOf(name, p), Index: int32(index), Attempt: int32(slot % maxAttempts), TemplateHash: templateHash,
			Phase: p.phase(), Ready: p.life() == ready, Scheduled: p.life() != pending, Started: p.life() != pending,
			AtBarrier: p.life() == waiting || p.is(passedBit),
		}
		if p.ended() {
			seen.FinishedAt = now(p.endedAt())
		}
		if p.life() == failed {
			seen.Failure = "failed (exit code 1)"
		}
		if p.is(terminatingBit) {
			requested := now(at)
			if p.ended() {
				// What ended after the request did so within its second; what ended before it, well before.
				requested = seen.FinishedAt
				if p.is(evidenceBit) {
					requested = requested.Add(time.Minute)
				}
			}
			seen.DeletionRequested = &requested
			// Nothing is stuck here: what has not ended yet may always end.
			seen.DeletionDue = now(at).Add(lastTick * tick)
		}
		out = append(out, seen)
	}
	return out
}

func uidOf(name string, p pod) types.UID {
	return types.UID(fmt.Sprintf("%s.%d", name, p.generation()))
}

// missingNumbers are the pods that a clique should have and of which none is among pods.
func (m *Model) missingNumbers(which int, clique uint16, pods podSet) uint8 {
	key := cliqueKey{clique: clique, which: uint8(which), pods: pods}
	if mask, known := m.missing[key]; known {
		return mask
	}
	first, _ := m.numbers(which)
	var mask uint8
	for _, index := range m.decide.Missing(m.cliques.objects[clique], m.gangPods(&pods, 0)) {
		mask |= 1 << (first + int(index))
	}
	m.missing[key] = mask
	return mask
}

func (m *Model) decideClique(key cliqueKey) (cliqueDecision, error) {
	if d, known := m.cliqueDecisions[key]; known {
		return d, nil
	}
	object := m.cliques.objects[key.clique]
	first, _ := m.numbers(int(key.which))
	snapshot := gang.CliqueSnapshot{
		Clique: object, Parent: key.parent, Turn: gang.CliqueTurn{PodTemplateHash: templateHash},
		Membership: gang.Membership{Known: true, Scheduled: true, BaseScheduled: true},
		Pods:       m.gangPods(&key.pods, key.tick),

		OthersDrained:    key.drained,
		TerminationDelay: gang.TerminationDelay(m.sets.objects[m.start.World.Set], object),
	}
	for number := range maxPods {
		if key.lost&(1<<number) != 0 {
			snapshot.Lost = append(snapshot.Lost, int32(number-first))
		}
	}
	decided := m.decide.Clique(snapshot, now(key.tick))
	d := cliqueDecision{next: key.clique, record: decided.Record, due: dueAt(decided.Next)}
	if decided.Changed {
		next := object.DeepCopy()
		next.Status = decided.Status
		var err error
		if d.next, err = m.cliques.number(plainClique(next)); err != nil {
			return d, err
		}
		if err := m.vetClique(key.clique, d.next, next); err != nil {
			return d, err
		}
	}
	for _, index := range decided.Create {
		d.creates |= 1 << (first + int(index))
	}
	for _, p := range decided.Delete {
		for slot, have := range key.pods {
			if have.exists() && uidOf(m.podName(slot), have) == p.UID {
				d.deletes |= 1 << slot
			}
		}
	}
	m.cliqueDecisions[key] = d
	return d, nil
}

// setKey is a snapshot of a set.
type setKey struct {
	set      uint16
	cliques  [maxCliques]uint16
	noActive bool
	// looked says that cliques and pods were listed live after the runtime deadline; these
	// are they.
	looked bool
	live   [maxCliques]uint16
	pods   podSet
	tick   uint8
}

// setDecision is what follows from it.
type setDecision struct {
	next uint16
	// confirm has a bit for each clique whose breach has to be looked at live.
	confirm uint8
	// due is the tick at which the set is looked at though nothing has happened; 0 for never.
	due uint8
}

func (m *Model) decideSet(key setKey) (setDecision, error) {
	if d, known := m.setDecisions[key]; known {
		return d, nil
	}
	object := m.sets.objects[key.set]
	snapshot := gang.SetSnapshot{Set: object, Cliques: map[string]*grovev1alpha1.PodClique{}, NoActivePods: key.noActive}
	for i := range m.config.Sizes {
		clique := m.cliques.objects[key.cliques[i]]
		snapshot.Cliques[clique.Name] = clique
	}
	if key.looked {
		pods := map[types.UID][]gang.Pod{}
		current := gang.SetSnapshot{Set: object, Cliques: map[string]*grovev1alpha1.PodClique{}}
		for i := range m.config.Sizes {
			clique := m.cliques.objects[key.live[i]]
			current.Cliques[clique.Name] = clique
			own := m.podsOf(i, &key.pods)
			pods[clique.UID] = m.gangPods(&own, key.tick)
		}
		snapshot.FinishedAt = gang.FinishedAt(current, pods, now(key.tick))
	}
	decided := m.decide.Set(snapshot, now(key.tick))
	d := setDecision{next: key.set, due: dueAt(decided.Next)}
	if decided.Changed {
		next := object.DeepCopy()
		next.Status = decided.Status
		var err error
		if d.next, err = m.sets.number(plainSet(next)); err != nil {
			return d, err
		}
		if err := m.vetSet(key.set, d.next, next); err != nil {
			return d, err
		}
	}
	for _, clique := range decided.Confirm {
		for i := range m.config.Sizes {
			if m.cliques.objects[key.cliques[i]] == clique {
				d.confirm |= 1 << i
			}
		}
	}
	m.setDecisions[key] = d
	return d, nil
}

// confirmKey is a look at a breach: from what it was decided, and what is there.
type confirmKey struct {
	from, current uint16
	tick          uint8
	pods          podSet
}

// confirmed looks live at the breaches because of which a set decided, as package confirm does.
func (m *Model) confirmed(s *state, seen *world, cliques uint8) bool {
	for i := range m.config.Sizes {
		if cliques&(1<<i) != 0 && !m.breached(confirmKey{from: seen.Cliques[i], current: s.World.Cliques[i], tick: s.Tick, pods: m.podsOf(i, &s.World.Pods)}) {
			return false
		}
	}
	return true
}

func (m *Model) breached(key confirmKey) bool {
	if answer, known := m.breaches[key]; known {
		return answer
	}
	current := m.cliques.objects[key.current]
	answer := gang.MayConfirm(m.cliques.objects[key.from], current) &&
		(gang.BreachedByFailures(current, now(key.tick)) || gang.StillBreached(current, m.gangPods(&key.pods, key.tick), now(key.tick)))
	m.breaches[key] = answer
	return answer
}

// drainedKey is a question for old pods in the other cliques.
type drainedKey struct {
	cliques [maxCliques]uint16
	which   uint8
	attempt int32
}

// raiseKey is a clique and the attempt that it is raised to.
type raiseKey struct {
	clique  uint16
	attempt int32
}

// raised is a clique with a higher attempt.
func (m *Model) raised(clique uint16, attempt int32) (uint16, error) {
	key := raiseKey{clique, attempt}
	if number, known := m.raises[key]; known {
		return number, nil
	}
	next := m.cliques.objects[clique].DeepCopy()
	next.Spec.Attempt = attempt
	number, err := m.cliques.number(next)
	if err == nil {
		m.raises[key] = number
	}
	return number, err
}
