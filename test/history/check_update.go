package history

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// checkUpdates holds I19: an update leaves of each standalone clique the pods, and of each
// scaling group the copies, that maxUnavailable says, and touches one replica of a set at a
// time. Pods that are not Ready for another reason are not its doing, and may only be known
// after it has decided.
func checkUpdates(w *world, f *Findings) {
	for _, pod := range w.pods {
		deleted := pod.first(isGoing)
		if deleted == nil || deleted.Listed || !w.updates(pod, deleted) || !wasReady(pod, deleted) {
			continue
		}
		if pod.clique.group == nil {
			checkPodFloor(w, f, pod, deleted)
			continue
		}
		checkCopyFloor(w, f, pod, deleted)
	}
}

// updates says that nothing but an update explains the deletion of a pod.
func (w *world) updates(pod *podStory, deleted *Revision) bool {
	disturbed := pod.first(func(r *Revision) bool { return podCondition(podOf(r), corev1.DisruptionTarget) }) != nil
	return !disturbed && !w.userDeleted(pod.name) && !w.possibly(pod.clique.set, deleted, isGoing) &&
		!w.possibly(pod.clique.story, deleted, pod.endsOtherwise) && w.possibly(pod.clique.story, deleted, pod.isReplaced)
}

// isReplaced says that a clique is being updated to another template than a pod's.
func (p *podStory) isReplaced(r *Revision) bool {
	progress := cliqueOf(r).Status.UpdateProgress
	return progress != nil && progress.UpdateEndedAt == nil && progress.PodTemplateHash != podOf(p.revs[0]).Labels[labels.PodTemplateHash]
}

// wasReady says that a pod was Ready when it was deleted, as far as anybody knew.
func wasReady(pod *podStory, deleted *Revision) bool {
	before := pod.before(deleted)
	return before != nil && isPodReady(podOf(before)) && !isGoing(before)
}

// isThere says that a pod served, or had done so until just now, when another was deleted.
func (w *world) isThere(pod *podStory, deleted *Revision) bool {
	if going := pod.first(isGoing); going != nil && compareRevisions(going, deleted) < 0 {
		if w.updates(pod, going) || going.Arrived.Before(deleted.Arrived.Add(-lookWindow)) {
			return false
		}
	}
	for _, seen := range pod.near(deleted, lookWindow) {
		if isPodReady(podOf(seen)) && !hasEnded(seen) {
			return true
		}
	}
	return false
}

// maxUnavailable is the largest that a set ever says.
func maxUnavailable(set *story) int32 {
	most := int32(1)
	for _, r := range set.revs {
		if strategy := setOf(r).Spec.UpdateStrategy; strategy != nil {
			most = max(most, ptr.Deref(strategy.MaxUnavailable, 1))
		}
	}
	return most
}

func checkPodFloor(w *world, f *Findings, pod *podStory, deleted *Revision) {
	size := cliqueOf(pod.clique.revs[0]).Spec.Replicas
	for _, r := range pod.clique.revs {
		size = min(size, cliqueOf(r).Spec.Replicas)
	}
	left, related := int32(0), pod.revs
	for _, other := range pod.clique.pods {
		if other != pod && w.isThere(other, deleted) {
			left++
			related = append(related[:len(related):len(related)], other.revs...)
		}
	}
	if need := size - maxUnavailable(pod.clique.set); left < need {
		f.add("I19", deleted, related, "an update deletes pod %s and leaves %d Ready pods of %s, at least %d have to be", pod.name, left, pod.clique.name, need)
	}
}

func checkCopyFloor(w *world, f *Findings, pod *podStory, deleted *Revision) {
	size := groupOf(pod.clique.group.revs[0]).Spec.Replicas
	for _, r := range pod.clique.group.revs {
		size = min(size, groupOf(r).Spec.Replicas)
	}
	// Of each copy, whether all its cliques have their minimum.
	available := map[int32]bool{}
	for _, member := range w.cliques {
		if member.group != pod.clique.group || member.copy == pod.clique.copy {
			continue
		}
		ready := int32(0)
		for _, other := range member.pods {
			if w.isThere(other, deleted) {
				ready++
			}
		}
		before, seen := available[member.copy]
		available[member.copy] = (before || !seen) && ready >= minimumOf(member)
	}
	left := int32(0)
	for _, is := range available {
		if is {
			left++
		}
	}
	if need := size - maxUnavailable(pod.clique.set); left < need {
		f.add("I19", deleted, pod.revs, "an update deletes pod %s of copy %d and leaves %d available copies of %s, at least %d have to be", pod.name, pod.clique.copy, left, pod.clique.group.name, need)
	}
}

// minimumOf is the smallest that a clique ever needed.
func minimumOf(clique *cliqueStory) int32 {
	least := func(spec grovev1alpha1.PodCliqueSpec) int32 {
		return min(ptr.Deref(spec.MinAvailable, spec.Replicas), spec.Replicas)
	}
	need := least(cliqueOf(clique.revs[0]).Spec)
	for _, r := range clique.revs {
		need = min(need, least(cliqueOf(r).Spec))
	}
	return need
}
