package history

import (
	"k8s.io/utils/ptr"
)

// checkRestarts holds I1: attempts and restartCount never fall, in Training they rise
// together, by one at a time, within the budget of the write that raises them, and not
// once the set fails or has ended. In Inference nothing is counted.
func checkRestarts(w *world, f *Findings) {
	for _, set := range w.of(Set) {
		for i, rev := range set.revs {
			checkCount(f, rev)
			if i > 0 {
				checkRise(w, f, set.revs[i-1], rev)
			}
		}
	}
	for _, group := range w.of(Group) {
		for i, rev := range group.revs[1:] {
			before := group.revs[i]
			for _, attempt := range groupOf(before).Status.ReplicaAttempts {
				if now := copyAttempt(rev, attempt.Index); now < attempt.Attempt {
					f.add("I1", rev, []*Revision{before}, "the attempt of copy %d of %s falls from %d to %d", attempt.Index, group.name, attempt.Attempt, now)
				}
			}
		}
	}
}

func checkCount(f *Findings, rev *Revision) {
	status := &setOf(rev).Status
	var sum int32
	for _, replica := range status.ReplicaStatuses {
		sum += replica.Attempt
	}
	switch {
	case isTraining(rev) && sum != status.RestartCount:
		f.add("I1", rev, nil, "restartCount of %s is %d, its attempts sum up to %d", rev.Object.GetName(), status.RestartCount, sum)
	case !isTraining(rev) && status.RestartCount != 0:
		f.add("I1", rev, nil, "restartCount of %s is %d in Inference", rev.Object.GetName(), status.RestartCount)
	}
}

func checkRise(w *world, f *Findings, before, rev *Revision) {
	name := rev.Object.GetName()
	related := []*Revision{before}
	was, is := &setOf(before).Status, &setOf(rev).Status
	if is.RestartCount < was.RestartCount {
		f.add("I1", rev, related, "restartCount of %s falls from %d to %d", name, was.RestartCount, is.RestartCount)
	}
	gap := w.gapBetween(Set, before.RV, rev.RV)
	if spec := setOf(rev).Spec.TrainingSpec; isTraining(rev) && is.RestartCount > was.RestartCount {
		var budget int32
		if spec != nil {
			budget = ptr.Deref(spec.MaxRestarts, 0)
		}
		switch {
		case is.RestartCount <= budget:
		case gap:
			f.skip("I1", "revisions of %s are missing where its restartCount passes maxRestarts", name)
		default:
			f.add("I1", rev, related, "restartCount of %s rises to %d, maxRestarts is %d", name, is.RestartCount, budget)
		}
	}
	rose := false
	for _, replica := range was.ReplicaStatuses {
		if now := replicaAttempt(rev, replica.Index); now < replica.Attempt {
			f.add("I1", rev, related, "the attempt of replica %d of %s falls from %d to %d", replica.Index, name, replica.Attempt, now)
		}
	}
	for _, replica := range is.ReplicaStatuses {
		by := replica.Attempt - replicaAttempt(before, replica.Index)
		rose = rose || by > 0
		switch {
		case by > 1 && gap:
			f.skip("I1", "revisions of %s are missing where the attempt of replica %d rises by %d", name, replica.Index, by)
		case by > 1:
			f.add("I1", rev, related, "the attempt of replica %d of %s rises by %d in one write", replica.Index, name, by)
		}
	}
	if rose && (isFailing(before) || isFinished(before)) {
		f.add("I1", rev, related, "%s is restarted after it has failed or ended", name)
	}
}
