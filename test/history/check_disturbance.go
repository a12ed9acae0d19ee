package history

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// checkDisturbance holds I18 and the other part of I2: each deletion of a pod or
// PodClique is explained by something that was recorded before, or by somebody else. One
// that is explained only by what was recorded after breaks I2, one that nothing explains I18.
func checkDisturbance(w *world, f *Findings) {
	for _, clique := range w.cliques {
		checkCliqueDeletion(w, f, clique)
	}
	for _, pod := range w.pods {
		deleted := pod.first(isGoing)
		if deleted == nil || w.explainsDeletion(pod, deleted) {
			continue
		}
		related := append(slices.Clone(pod.revs), pod.clique.revs...)
		switch {
		case deleted.Listed:
			f.skip("I18", "how pod %s went is hidden by a gap", pod.name)
		case w.hasGap(Clique) || w.hasGap(Set):
			f.skip("I18", "revisions of PodCliques or their set are missing, and pod %s is deleted without a reason that is known", pod.name)
		case pod.clique.first(pod.reason) != nil || !pod.hadEnded(deleted) && pod.clique.set != nil && pod.clique.set.first(isFailing) != nil:
			f.add("I2", deleted, related, "pod %s is deleted before the reason for it is recorded", pod.name)
		default:
			f.add("I18", deleted, related, "pod %s is deleted without a reason", pod.name)
		}
	}
}

// explainsDeletion says that something that may have been recorded before the deletion
// of a pod explains it.
func (w *world) explainsDeletion(pod *podStory, deleted *Revision) bool {
	if w.userDeleted(pod.name) || pod.first(func(r *Revision) bool { return podCondition(podOf(r), corev1.DisruptionTarget) }) != nil {
		return true
	}
	if w.possibly(pod.clique.story, deleted, pod.reason) || w.possibly(pod.clique.set, deleted, isGoing) {
		return true
	}
	// Finished pods of a job that fails stay, so that they can be read (D12).
	return !pod.hadEnded(deleted) && w.possibly(pod.clique.set, deleted, isFailing)
}

// hadEnded says that a pod had ended before a revision.
func (p *podStory) hadEnded(at *Revision) bool {
	before := p.before(at)
	return before != nil && hasEnded(before)
}

// reason says that a state of its clique is a reason to delete a pod: an update to another
// template, or what ends it otherwise.
func (p *podStory) reason(r *Revision) bool {
	return p.isReplaced(r) || p.endsOtherwise(r)
}

// endsOtherwise says that a state of its clique ends a pod: the clique goes, a higher
// attempt, a smaller size, or a recorded failure of this very pod.
func (p *podStory) endsOtherwise(r *Revision) bool {
	clique := cliqueOf(r)
	return isGoing(r) || clique.Status.ObservedAttempt > p.attempt || clique.Spec.Replicas <= p.index ||
		slices.ContainsFunc(clique.Status.FailedIndexes, func(failed grovev1alpha1.FailedIndex) bool { return failed.PodUID == p.uid })
}

// checkCliqueDeletion looks whether the set or the scaling group of a deleted clique went
// too, or became smaller. All of them are on one server, so the order is exact.
func checkCliqueDeletion(w *world, f *Findings, clique *cliqueStory) {
	deleted := clique.first(isGoing)
	if deleted == nil || w.userDeleted(clique.name) {
		return
	}
	explained := func(s *story, smaller func(*Revision) bool) bool {
		return s != nil && s.first(func(r *Revision) bool {
			return (compareRevisions(r, deleted) < 0 || deleted.Listed) && (isGoing(r) || smaller(r))
		}) != nil
	}
	if clique.set == nil || explained(clique.set, func(r *Revision) bool { return setOf(r).Spec.Replicas <= clique.replica }) ||
		explained(clique.group, func(r *Revision) bool { return groupOf(r).Spec.Replicas <= clique.copy }) {
		return
	}
	if deleted.Listed || w.hasGap(Set) || w.hasGap(Group) {
		f.skip("I18", "why PodClique %s was deleted is hidden by a gap", clique.name)
		return
	}
	f.add("I18", deleted, clique.revs, "PodClique %s is deleted without a reason", clique.name)
}
