package history

// checkWriteAhead holds the part of I2 that speaks of attempts: the set's or group's
// status comes before the clique's spec, that before the clique's status, and that
// before the first pod. (Deletions are checkDisturbance's.)
func checkWriteAhead(w *world, f *Findings) {
	for _, clique := range w.cliques {
		for i, rev := range clique.revs {
			checkAttempt(w, f, clique, i, rev)
		}
		for _, pod := range clique.pods {
			created := pod.revs[0]
			if pod.attempt == 0 || w.possibly(clique.story, created, func(r *Revision) bool { return cliqueOf(r).Status.ObservedAttempt >= pod.attempt }) {
				continue
			}
			f.add("I2", created, clique.revs, "pod %s of attempt %d is made before the status of %s has come to that attempt", pod.name, pod.attempt, clique.name)
		}
	}
}

func checkAttempt(w *world, f *Findings, clique *cliqueStory, i int, rev *Revision) {
	spec, status := cliqueOf(rev).Spec.Attempt, cliqueOf(rev).Status.ObservedAttempt
	if status > spec {
		f.add("I2", rev, nil, "the status of %s speaks of attempt %d, its spec of %d", clique.name, status, spec)
	}
	var related []*Revision
	if i > 0 {
		before := clique.revs[i-1]
		related = append(related, before)
		if cliqueOf(before).Spec.Attempt > spec || cliqueOf(before).Status.ObservedAttempt > status {
			f.add("I2", rev, related, "an attempt of %s falls", clique.name)
		}
		if cliqueOf(before).Spec.Attempt == spec {
			return
		}
	}
	if spec == 0 || clique.set == nil {
		return
	}
	recorded := replicaAttempt(clique.set.before(rev), clique.replica)
	if clique.group != nil {
		recorded += copyAttempt(clique.group.before(rev), clique.copy)
		related = append(related, clique.group.revs...)
	}
	if recorded < spec {
		f.add("I2", rev, append(related, clique.set.revs...), "the spec of %s has attempt %d before it is recorded: its replica and copy have come to %d", clique.name, spec, recorded)
	}
}
