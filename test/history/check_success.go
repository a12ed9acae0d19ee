package history

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// checkSuccess holds I4: an index is complete only if a pod of it exited with 0, a clique
// has succeeded only if all indexes are complete, a set only if all cliques have. Within
// an attempt nothing of it is taken back.
func checkSuccess(w *world, f *Findings) {
	for _, clique := range w.cliques {
		var before *Revision
		for _, rev := range clique.revs {
			if before != nil && cliqueOf(before).Status.ObservedAttempt != cliqueOf(rev).Status.ObservedAttempt {
				before = nil
			}
			checkCompletion(w, f, clique, before, rev)
			before = rev
		}
	}
	for _, set := range w.of(Set) {
		end := set.first(func(r *Revision) bool { return setOf(r).Status.Phase == grovev1alpha1.PodCliqueSetSucceeded })
		if end != nil {
			checkSetSuccess(w, f, set, end)
		}
	}
}

// checkCompletion compares a revision of a clique with the one before in its attempt,
// nil for the first.
func checkCompletion(w *world, f *Findings, clique *cliqueStory, before, rev *Revision) {
	completed := completedOf(rev)
	var was indexset.Set
	var related []*Revision
	if before != nil {
		was = completedOf(before)
		related = append(related, before)
		if !completed.Contains(was) {
			f.add("I4", rev, related, "completed indexes of %s are taken back", clique.name)
		}
		if hasSucceeded(before) && !hasSucceeded(rev) {
			f.add("I4", rev, related, "Succeeded of %s is taken back", clique.name)
		}
	}
	replicas := cliqueOf(rev).Spec.Replicas
	if hasSucceeded(rev) && (before == nil || !hasSucceeded(before)) && completed.CountBelow(replicas) < int(replicas) {
		f.add("I4", rev, related, "%s has succeeded with only %q of %d indexes complete", clique.name, completed, replicas)
	}
	for index := range replicas {
		if !completed.Has(index) || was.Has(index) || hasEvidence(w, clique, rev, index) {
			continue
		}
		if w.hasGap(Pod) {
			f.skip("I4", "revisions of pods are missing, and no pod of index %d of %s was seen to exit with 0", index, clique.name)
			continue
		}
		for _, pod := range clique.pods {
			if pod.index == index {
				related = append(related, pod.revs...)
			}
		}
		f.add("I4", rev, related, "index %d of %s is complete, and no pod of it had exited with 0", index, clique.name)
	}
}

// hasEvidence says that a pod of an index may have been seen to exit with 0.
func hasEvidence(w *world, clique *cliqueStory, rev *Revision, index int32) bool {
	attempt := cliqueOf(rev).Status.ObservedAttempt
	for _, pod := range clique.pods {
		if pod.index == index && pod.attempt == attempt && w.possibly(pod.story, rev, func(r *Revision) bool { return exitedWithZero(podOf(r)) }) {
			return true
		}
	}
	return false
}

// exitedWithZero says that a pod succeeded by itself, and not as it was told to go (D9).
func exitedWithZero(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodSucceeded {
		return false
	}
	if pod.DeletionTimestamp == nil {
		return true
	}
	grace := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
	if grace == 0 {
		// A kubelet asks once more when the containers have ended, and the time of the first
		// request is lost.
		return false
	}
	requested := pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
	return !finishedAt(pod).After(requested)
}

func finishedAt(pod *corev1.Pod) time.Time {
	var last time.Time
	for _, status := range pod.Status.ContainerStatuses {
		if t := status.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return last
}

func completedOf(r *Revision) indexset.Set {
	set, err := indexset.Parse(cliqueOf(r).Status.CompletedIndexes)
	if err != nil {
		return indexset.Set{}
	}
	return set
}

func checkSetSuccess(w *world, f *Findings, set *story, end *Revision) {
	pcs := setOf(end)
	succeeded := map[int32]int{}
	var related []*Revision
	for _, clique := range w.cliquesOf(set) {
		last := clique.before(end)
		if last == nil || last.Deleted {
			continue
		}
		related = append(related, last)
		attempt := cliqueOf(last).Status.ObservedAttempt
		if hasSucceeded(last) && attempt == cliqueOf(last).Spec.Attempt && attempt >= replicaAttempt(end, clique.replica) {
			succeeded[clique.replica]++
		}
	}
	want := cliquesPerReplica(pcs)
	for replica := range pcs.Spec.Replicas {
		switch {
		case succeeded[replica] == want:
		case w.hasGap(Clique):
			f.skip("I4", "revisions of PodCliques are missing, so whether all had succeeded before %s did is not known", set.name)
		default:
			f.add("I4", end, related, "%s is Succeeded while %d of %d PodCliques of replica %d are", set.name, succeeded[replica], want, replica)
		}
	}
}

// cliquesPerReplica counts from the template, whose sizes are immutable in Training.
func cliquesPerReplica(pcs *grovev1alpha1.PodCliqueSet) int {
	count := len(pcs.Spec.Template.Cliques)
	for _, group := range pcs.Spec.Template.PodCliqueScalingGroups {
		count += len(group.CliqueNames) * int(ptr.Deref(group.Replicas, 1)-1)
	}
	return count
}
