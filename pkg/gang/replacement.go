package gang

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// Back-off between the failure of a pod and its replacement (D10).
const (
	firstBackoff = 10 * time.Second
	maxBackoff   = 5 * time.Minute
)

// backoff is how long an index that has failed count times in a row waits.
func backoff(count int32) time.Duration {
	delay := firstBackoff
	for range count - 1 {
		if delay *= 2; delay >= maxBackoff {
			return maxBackoff
		}
	}
	return delay
}

// backoffEnds is when a broken index may have another pod.
func backoffEnds(failed *grovev1alpha1.FailedIndex) time.Time {
	return failed.LastTime.Add(backoff(failed.Count))
}

// endsAt is when the attempt ends because of the clique; zero when nothing ends it. It is
// then for the set to decide what follows.
func endsAt(s CliqueSnapshot, status *grovev1alpha1.PodCliqueStatus) time.Time {
	if !isTraining(s.Clique) {
		return time.Time{}
	}
	if failed := exhaustedIndex(s.Clique, status); failed != nil {
		return failed.LastTime.Time
	}
	breach := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
	if breach == nil || breach.Status != metav1.ConditionTrue || s.TerminationDelay == nil {
		return time.Time{}
	}
	return deadline(breach.LastTransitionTime, *s.TerminationDelay)
}

// mayReplace says that pods that failed are replaced: within the tolerance of minAvailable,
// and between a breach and the end of its delay (D10).
func mayReplace(s CliqueSnapshot, status *grovev1alpha1.PodCliqueStatus, now time.Time) bool {
	end := endsAt(s, status)
	return s.Parent == ParentActive && (end.IsZero() || end.After(now))
}

// podsToDelete are the pods that have no place any more, and the next moment at which a
// failed one makes room. Absence of anything is never a reason: only a deletion, a
// recorded decision, or the size is (D11).
func podsToDelete(s CliqueSnapshot, pods podsOf, status *grovev1alpha1.PodCliqueStatus, now time.Time) (remove []Pod, next time.Time) {
	add := func(pod Pod) {
		if !pod.Terminating() {
			remove = append(remove, pod)
		}
	}
	if s.Clique.DeletionTimestamp != nil {
		for _, pod := range s.Pods {
			add(pod)
		}
		return remove, next
	}
	if s.Parent == ParentDeleting {
		// Whether the clique goes along or is orphaned shows in the clique itself.
		return nil, next
	}
	for _, pod := range pods.old {
		add(pod)
	}
	for _, pod := range pods.surplus {
		add(pod)
	}
	for _, pod := range pods.strays {
		// Below a parent that is over, what has ended stays to be read, as others do (D12).
		if s.Parent == ParentActive || (!pod.Ended() && !pod.Failing) {
			add(pod)
		}
	}
	completed := completedOf(status)
	for pod := range pods.current.all() {
		if s.Parent != ParentActive {
			// Finished pods stay, so that their logs can be read, and with them one that is
			// Failed in a moment. An active one below a parent that is over is there because
			// two controllers overlapped (D11, D12).
			if !pod.Ended() && !pod.Failing {
				add(*pod)
			}
			continue
		}
		failed := brokenIndex(status, pod.Index)
		if !pod.Ended() || failed == nil || failed.PodUID != pod.UID || completed.Has(pod.Index) || !mayReplace(s, status, now) {
			continue
		}
		// In Training a failed pod stays as long as it can, so that it can be looked at.
		if due := backoffEnds(failed); isTraining(s.Clique) && due.After(now) {
			if mayReplace(s, status, due) {
				next = earliest(next, due)
			}
			continue
		}
		add(*pod)
	}
	if s.Parent == ParentActive {
		for _, pod := range podsToUpdate(s, pods) {
			if !slices.ContainsFunc(remove, func(other Pod) bool { return other.UID == pod.UID }) {
				add(pod)
			}
		}
	}
	return remove, next
}

// podsToCreate are the indexes to make pods for now, and the next moment at which a
// back-off ends.
func podsToCreate(s CliqueSnapshot, pods podsOf, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus, now time.Time) (create []int32, next time.Time) {
	if s.Parent != ParentActive || s.Clique.DeletionTimestamp != nil || !s.Membership.Known || status.ObservedAttempt != s.Clique.Spec.Attempt {
		return nil, time.Time{}
	}
	// A pod that is made when the attempt is due to end only has to go again.
	if isTraining(s.Clique) && !mayReplace(s, status, now) {
		return nil, time.Time{}
	}
	// No pod of a new attempt before all old ones are gone (D19).
	if len(pods.old) > 0 || !s.OthersDrained {
		return nil, time.Time{}
	}
	need, awake := effectiveMinAvailable(&s.Clique.Spec), isAwake(s, status)
	for index := range s.Clique.Spec.Replicas {
		if pods.current.at(index) != nil || completed.Has(index) || !mayJoin(s.Membership, index < need) || (index >= need && !awake) {
			continue
		}
		failed := brokenIndex(status, index)
		if failed == nil && isTraining(s.Clique) && createdThisAttempt(s.Clique, status) && index < status.CreatedReplicas {
			// Whether it is lost is for a live read to say.
			continue
		}
		if failed != nil {
			if due := backoffEnds(failed); due.After(now) && !isOfEarlierTemplate(status, failed) {
				if mayReplace(s, status, due) {
					next = earliest(next, due)
				}
				continue
			}
		}
		create = append(create, index)
	}
	return create, next
}

// mayJoin says whether a pod may be made as far as its gang is concerned: members of
// the base gang at once, members of a scaled gang when the base gang was scheduled, and
// pods beyond a gang's minimum when that gang was (D23).
func mayJoin(m Membership, member bool) bool {
	if member {
		return m.BaseScheduled
	}
	return m.BaseScheduled && m.Scheduled
}

// isAwake says that the members of a clique have had a node since it was last scaled to 0. Its
// gang was scheduled without them: surplus pods that come with them could take their room.
func isAwake(s CliqueSnapshot, status *grovev1alpha1.PodCliqueStatus) bool {
	return isTraining(s.Clique) || status.WasAvailable || status.ScheduledReplicas >= effectiveMinAvailable(&s.Clique.Spec)
}

// clearCreationProblems removes the conditions that tell of pods that could not be
// made, once there are none to make.
func clearCreationProblems(s CliqueSnapshot, current podsByIndex, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus) {
	for index := range s.Clique.Spec.Replicas {
		if current.at(index) == nil && !completed.Has(index) {
			return
		}
	}
	meta.RemoveStatusCondition(&status.Conditions, grovev1alpha1.ConditionTypeNameConflict)
	meta.RemoveStatusCondition(&status.Conditions, grovev1alpha1.ConditionTypePodCreationFailed)
}
