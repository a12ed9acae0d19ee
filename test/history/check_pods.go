package history

import (
	"time"
)

// createWindow is how long making pods may go on by a size or attempt that was read.
const createWindow = 5 * time.Second

// checkOnePodPerIndex holds I9: at any revision there is at most one pod of an index and
// attempt of a clique that has not ended, and none is made beyond the size. (Both
// together bound the total; a pod beyond the size that was made before a scale-in is one
// that is about to go.)
func checkOnePodPerIndex(w *world, f *Findings) {
	type place struct{ index, attempt int32 }
	for _, clique := range w.cliques {
		seen := map[place][]*podStory{}
		for _, pod := range clique.pods {
			created := pod.revs[0]
			at := place{pod.index, pod.attempt}
			for _, other := range seen[at] {
				switch alive, sure := other.aliveAt(created); {
				case alive && sure:
					f.add("I9", created, other.revs, "there are two pods of index %d and attempt %d of %s", pod.index, pod.attempt, clique.name)
				case alive:
					f.skip("I9", "a gap hides whether there were two pods of index %d of %s", pod.index, clique.name)
				}
			}
			seen[at] = append(seen[at], pod)
			if !mayHaveIndex(w, clique, created, pod.index) {
				f.add("I9", created, clique.revs, "pod %s is made beyond the size of %s", pod.name, clique.name)
			}
		}
	}
}

// mayHaveIndex says that a controller may have seen a size that reaches an index when a
// pod was made.
func mayHaveIndex(w *world, clique *cliqueStory, created *Revision, index int32) bool {
	for i, rev := range clique.revs {
		if w.certainlyAfter(rev, created) {
			break
		}
		if i+1 < len(clique.revs) && clique.revs[i+1].Arrived.Before(created.Arrived.Add(-createWindow)) {
			continue
		}
		if index < cliqueOf(rev).Spec.Replicas {
			return true
		}
	}
	return created.Listed
}

// checkOldPodsFirst holds I11: no pod of an attempt is made while one of an earlier
// attempt is alive, in the same clique or copy, or in the same replica of the set when it
// is the replica that was restarted (D19).
func checkOldPodsFirst(w *world, f *Findings) {
	type replica struct {
		set   *story
		index int32
	}
	before := map[replica][]*podStory{}
	for _, pod := range w.pods {
		at := replica{pod.clique.set, pod.clique.replica}
		if pod.attempt > 0 {
			for _, other := range before[at] {
				checkOldPod(f, pod, other)
			}
		}
		before[at] = append(before[at], pod)
	}
}

// checkOldPod compares a new pod with one that was made before in its replica.
func checkOldPod(f *Findings, pod, other *podStory) {
	same := pod.clique == other.clique || pod.clique.group != nil && pod.clique.group == other.clique.group && pod.clique.copy == other.clique.copy
	older := same && other.attempt < pod.attempt
	if !older {
		lowest, _ := pod.setAttempt()
		_, highest := other.setAttempt()
		older = highest < lowest
	}
	if !older {
		return
	}
	switch alive, sure := other.aliveAt(pod.revs[0]); {
	case alive && sure:
		f.add("I11", pod.revs[0], other.revs, "pod %s of attempt %d is made while %s of attempt %d is alive", pod.name, pod.attempt, other.name, other.attempt)
	case alive:
		f.skip("I11", "a gap hides whether %s was alive when %s was made", other.name, pod.name)
	}
}

// setAttempt bounds the attempt of the set's replica that a pod belongs to: its own less
// that of its copy, where the write of the clique's spec may have followed an earlier
// state of the copy.
func (p *podStory) setAttempt() (lowest, highest int32) {
	if p.clique.group == nil || p.attempt == 0 {
		return p.attempt, p.attempt
	}
	raised := p.clique.first(func(r *Revision) bool { return cliqueOf(r).Spec.Attempt >= p.attempt })
	if raised == nil || p.clique.set == nil {
		return 0, p.attempt
	}
	lowest = max(0, p.attempt-copyAttempt(p.clique.group.before(raised), p.clique.copy))
	highest = min(p.attempt, replicaAttempt(p.clique.set.before(raised), p.clique.replica))
	return lowest, highest
}
