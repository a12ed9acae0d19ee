package model

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// The bounds of the world. They are part of the layout of a state.
const (
	maxCliques  = 2
	maxPods     = 3
	maxAttempts = 4
	controllers = 2
	slots       = maxPods * maxAttempts
)

// life is how far a pod has come.
type life uint16

const (
	absent life = iota
	pending
	ready
	unready
	succeeded
	failed
	// waiting is where a pod has come to the barrier.
	waiting
)

var lifeNames = [...]string{"absent", "Pending", "Ready", "Unready", "Succeeded", "Failed", "Waiting"}

// pod is one pod in few bits, so that a state is small.
//
//	0-2  life
//	3    deletion was requested
//	4    it exited with 0 before its deletion was requested
//	5    stray: made by a request whose live read was out of date when it was carried out
//	6-7  tick at which it ended
//	8-10 generation: how many pods of this name there have been; it makes the UID
//	11   it has passed the barrier
type pod uint16

const (
	terminatingBit pod = 1 << 3
	evidenceBit    pod = 1 << 4
	strayBit       pod = 1 << 5
	passedBit      pod = 1 << 11
	endedShift         = 6
	endedMask      pod = 3 << endedShift
	genShift           = 8
	genMask        pod = 7 << genShift
)

func (p pod) life() life         { return life(p & 7) }
func (p pod) is(bit pod) bool    { return p&bit != 0 }
func (p pod) exists() bool       { return p.life() != absent }
func (p pod) generation() int    { return int(p&genMask) >> genShift }
func (p pod) endedAt() uint8     { return uint8(p & endedMask >> endedShift) }
func (p pod) with(l life) pod    { return p&^7 | pod(l) }
func (p pod) gone() pod          { return p & genMask }
func (p pod) end(tick uint8) pod { return p&^endedMask | pod(tick)<<endedShift&endedMask }

// ended says that no container of the pod will run again.
func (p pod) ended() bool { return p.life() == succeeded || p.life() == failed }

// active says that a container of the pod may still run.
func (p pod) active() bool { return p.exists() && !p.ended() }

func (p pod) phase() corev1.PodPhase {
	switch p.life() {
	case pending, waiting:
		return corev1.PodPending
	case succeeded:
		return corev1.PodSucceeded
	case failed:
		return corev1.PodFailed
	default:
		return corev1.PodRunning
	}
}

func (p pod) String() string {
	text := lifeNames[p.life()]
	if p.is(terminatingBit) {
		text += "/terminating"
	}
	if p.is(strayBit) {
		text += "/stray"
	}
	return text
}

// podSet holds the pods of the world: the pod of number n in attempt a is in slot
// n*maxAttempts+a. Numbers go over the cliques in order.
type podSet [slots]pod

func slotOf(number int, attempt int32) int { return number*maxAttempts + int(attempt) }

// world is what servers hold, or what a cache shows of it. Objects are numbers in the
// tables of a model.
type world struct {
	Set     uint16
	Cliques [maxCliques]uint16
	// Gate is not cached: a write by an older one is a conflict.
	Gate uint16
	Pods podSet
}

// Kinds of caches.
const (
	cacheOfSets = iota
	cacheOfCliques
	cacheOfPods
	caches
)

// Keys of a controller's work queues: passes over one key follow each other, passes
// over different keys overlap.
const (
	keySet = iota
	keyReplica
	keyClique
	keys = keyClique + maxCliques
)

// flightKind is what a pass has still to do after its live read.
type flightKind uint8

const (
	landed flightKind = iota
	writeSet
	writeClique
	raiseAttempt
	writePods
	endSet
	endClique
)

// flight is the rest of a pass whose live read has been made.
type flight struct {
	Kind flightKind
	// Clique is the clique to write, or whose pods to write.
	Clique uint8
	// Attempt is that of the pods to make, and Creates their numbers.
	Attempt, Creates uint8
	// Base is the version that is written on, Next what is written.
	Base, Next uint16
	// Deletes are the slots of pods to delete. A slot is struck off when its pod goes:
	// the deletion is by UID and would miss the next one.
	Deletes uint16
}

// controller is one process.
type controller struct {
	// Frozen has a bit for each cache that does not follow; View is what it shows.
	Frozen  uint8
	View    world
	Flights [keys]flight
}

// budget counts how often something was used of which a Config allows only so much.
type budget struct {
	Failures, Deletions, Flaps, Exits, Crashes, Freezes, Passes, Ticks uint8
}

// history is what the checks have to remember.
type history struct {
	// Evidence has a bit for each slot in which a pod succeeded on its own.
	Evidence uint16
	// Broken has a bit for each attempt in which a clique was below its minimum after a pod
	// of it had failed, was lost or became unready.
	Broken uint8
	// Gathered has a bit for each clique and attempt of which all pods have been at the
	// barrier at once.
	Gathered uint8
}

// state is all there is at one moment. It holds no pointers: two equal states have the
// same future.
type state struct {
	World       world
	Tick        uint8
	Controllers [controllers]controller
	Used        budget
	History     history
	// Calm says that faults are over.
	Calm bool
}

// strike removes a pod that is gone from what flights have to delete.
func (s *state) strike(slot int) {
	for c := range s.Controllers {
		for k := range s.Controllers[c].Flights {
			s.Controllers[c].Flights[k].Deletes &^= 1 << slot
		}
	}
	s.settle()
}

// settle ends flights that cannot do anything any more: one that has nothing left, or
// whose write would be a conflict. Versions do not come back.
func (s *state) settle() {
	for c := range s.Controllers {
		for k := range s.Controllers[c].Flights {
			f := &s.Controllers[c].Flights[k]
			over := false
			switch f.Kind {
			case writeSet, endSet:
				over = f.Base != s.World.Set
			case writeClique, raiseAttempt, endClique:
				over = f.Base != s.World.Cliques[f.Clique]
			case writePods:
				over = f.Creates == 0 && f.Deletes == 0
			case landed:
			}
			if over {
				*f = flight{}
			}
		}
	}
}

// podName tells of a slot as clique, index and attempt: a1@2.
func (m *Model) podName(slot int) string {
	number := slot / maxAttempts
	clique, index := m.owner(number)
	return fmt.Sprintf("%s%d@%d", cliqueNames[clique], index, slot%maxAttempts)
}
