package gang

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// CliqueTurn is what the levels above let the update of a clique do.
type CliqueTurn struct {
	// Due says that it is the clique's turn, and that it has the template as it is now: its
	// old pods are replaced.
	Due bool
	// Over says that nobody updates the clique for the template as it is now: an update of it
	// that is in course ends.
	Over bool
	// MaxUnavailable is how many of its pods may be away at once.
	MaxUnavailable int32
	// GenerationHash is the set's hash, and PodTemplateHash the clique's in it.
	GenerationHash, PodTemplateHash string
}

// TurnOf reads the turn of a clique. group is the object of its scaling group, nil for a
// standalone clique or when it was not found. A copy of a scaling group is replaced as a whole.
func TurnOf(pcs *grovev1alpha1.PodCliqueSet, clique *grovev1alpha1.PodClique, replica int32, group *grovev1alpha1.PodCliqueScalingGroup) CliqueTurn {
	groupName, copyIndex := copyOf(clique)
	turn := CliqueTurn{
		Over:           isTurnOver(pcs, replica),
		MaxUnavailable: maxUnavailable(pcs),
		GenerationHash: generationHash(pcs),
	}
	if template := TemplateOf(pcs, clique); template != nil {
		turn.PodTemplateHash = TemplateHash(pcs, template.Name)
	}
	turn.Due = PodTemplateHash(clique) == turn.PodTemplateHash && IsReplicaInTurn(pcs, replica)
	if groupName != "" {
		turn.Due = turn.Due && isCopyInTurn(group, copyIndex, turn.GenerationHash)
		turn.MaxUnavailable = clique.Spec.Replicas
	}
	return turn
}

// isUpdating says that an update of a clique is in course.
func isUpdating(status *grovev1alpha1.PodCliqueStatus) bool {
	return status.UpdateProgress != nil && status.UpdateProgress.UpdateEndedAt == nil
}

// observeUpdate records the beginning and the end of an update, and says whether one begins:
// no pod is deleted for it before that is on record, with how many pods were Ready.
func observeUpdate(s CliqueSnapshot, pods podsOf, status *grovev1alpha1.PodCliqueStatus, now time.Time) bool {
	if s.Parent != ParentActive || s.Clique.DeletionTimestamp != nil {
		return false
	}
	hash := PodTemplateHash(s.Clique)
	old := slices.ContainsFunc(s.Pods, func(pod Pod) bool { return !pod.Stray && pod.TemplateHash != hash })
	progress := status.UpdateProgress
	isCurrent := isUpdating(status) && progress.PodTemplateHash == hash
	if s.Turn.Due && !isCurrent && (needsUpdate(pods.current, hash) || mendsFailure(s, pods.current, status)) {
		ready := readyIn(pods.current)
		if isUpdating(status) {
			// The template has changed once more: what was Ready before the first change counts.
			ready = max(ready, progress.ReadyReplicas)
		}
		status.UpdateProgress = &grovev1alpha1.PodCliqueUpdateProgress{
			UpdateStartedAt: metav1.NewTime(now), PodTemplateHash: hash, PodCliqueSetGenerationHash: s.Turn.GenerationHash, ReadyReplicas: ready,
		}
		return true
	}
	if isUpdating(status) && (s.Turn.Over || (!old && isReadyAgain(s, pods, progress))) {
		progress.UpdateEndedAt = ptr.To(metav1.NewTime(now))
	}
	if !isUpdating(status) {
		tellTemplate(s, old, pods.current, status)
	}
	return false
}

// isReadyAgain says that as many pods are Ready as were when the update began.
func isReadyAgain(s CliqueSnapshot, pods podsOf, progress *grovev1alpha1.PodCliqueUpdateProgress) bool {
	return readyIn(pods.current) >= min(progress.ReadyReplicas, s.Clique.Spec.Replicas)
}

// needsUpdate says that pods of the attempt were made from another template. Those of earlier
// attempts go anyway.
func needsUpdate(current podsByIndex, hash string) bool {
	for pod := range current.all() {
		if pod.TemplateHash != hash {
			return true
		}
	}
	return false
}

// mendsFailure says that the template has changed, and that an index which has failed has no pod to
// show it: that one is made by the new template, which does not wait for the failures before it.
func mendsFailure(s CliqueSnapshot, current podsByIndex, status *grovev1alpha1.PodCliqueStatus) bool {
	hash := PodTemplateHash(s.Clique)
	if ptr.Deref(status.CurrentPodTemplateHash, hash) == hash {
		return false
	}
	for index := range s.Clique.Spec.Replicas {
		if current.at(index) == nil && brokenIndex(status, index) != nil {
			return true
		}
	}
	return false
}

// tellTemplate says which template all pods follow. Pods of an earlier one may come up after it
// was said that there are none: a cache that was behind did not show them. That is taken back,
// so that they get their turn.
func tellTemplate(s CliqueSnapshot, old bool, current podsByIndex, status *grovev1alpha1.PodCliqueStatus) {
	hash := PodTemplateHash(s.Clique)
	if old {
		for pod := range current.all() {
			if other := pod.TemplateHash; other != hash {
				status.CurrentPodTemplateHash = ptr.To(other)
				return
			}
		}
		return
	}
	if hash == "" {
		return
	}
	status.CurrentPodTemplateHash = ptr.To(hash)
	if hash == s.Turn.PodTemplateHash {
		status.CurrentPodCliqueSetGenerationHash = ptr.To(s.Turn.GenerationHash)
	}
}

func readyIn(current podsByIndex) int32 {
	n := int32(0)
	for pod := range current.all() {
		if isReadyPod(pod) {
			n++
		}
	}
	return n
}

func isReadyPod(pod *Pod) bool {
	return pod.Ready && !pod.Terminating() && !pod.Ended()
}

// podsToUpdate are the pods that an update replaces now. Those that are not Ready serve nobody
// and go at once; of the Ready ones as many as may be away, in the order of their indexes, so
// that two passes over the same pods choose the same.
//
// That the update has begun is on record: the pass that records it does nothing else.
func podsToUpdate(s CliqueSnapshot, pods podsOf) []Pod {
	// Without a gang that knows the new pods none can be made in their place.
	if !s.Turn.Due || !s.Membership.Known {
		return nil
	}
	away := s.Turn.MaxUnavailable - (s.Clique.Spec.Replicas - readyIn(pods.current))
	var out []Pod
	for pod := range pods.current.all() {
		if pod.TemplateHash == PodTemplateHash(s.Clique) || pod.Terminating() {
			continue
		}
		if isReadyPod(pod) {
			if away <= 0 {
				continue
			}
			away--
		}
		out = append(out, *pod)
	}
	return out
}

// isOfEarlierTemplate says that an index failed before the update that is on record began: the
// new template is tried without waiting, for it may be what mends the failure.
func isOfEarlierTemplate(status *grovev1alpha1.PodCliqueStatus, failed *grovev1alpha1.FailedIndex) bool {
	return status.UpdateProgress != nil && failed.LastTime.Before(&status.UpdateProgress.UpdateStartedAt)
}
