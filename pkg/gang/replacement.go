package gang

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

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

// podsToDelete are the pods that have no place any more. Absence of anything is never
// a reason: only a deletion, a recorded decision, or the size is (D11).
func podsToDelete(s CliqueSnapshot, pods podsOf) []Pod {
	var out []Pod
	add := func(pod Pod) {
		if !pod.Terminating() {
			out = append(out, pod)
		}
	}
	if s.Clique.DeletionTimestamp != nil {
		for _, pod := range s.Pods {
			add(pod)
		}
		return out
	}
	if s.Parent == ParentDeleting {
		// Whether the clique goes along or is orphaned shows in the clique itself.
		return nil
	}
	for _, pod := range pods.old {
		add(pod)
	}
	for _, pod := range pods.surplus {
		add(pod)
	}
	for _, index := range sortedKeys(pods.current) {
		pod := pods.current[index]
		switch {
		case s.Parent == ParentFailing:
			// Finished pods stay, so that their logs can be read (D12).
			if !pod.Ended() {
				add(pod)
			}
		case s.Parent == ParentActive && !isTraining(s.Clique):
			if failed := failureOf(&s.Clique.Status, index); pod.Ended() && failed != nil && failed.PodUID == pod.UID {
				add(pod)
			}
		}
	}
	return out
}

// podsToCreate are the indexes to make pods for now, and the next moment at which a
// back-off ends.
func podsToCreate(s CliqueSnapshot, pods podsOf, completed indexset.Set, now time.Time) (create []int32, next time.Time) {
	if s.Parent != ParentActive || s.Clique.DeletionTimestamp != nil || !s.Membership.Known || s.Clique.Status.ObservedAttempt != s.Clique.Spec.Attempt {
		return nil, time.Time{}
	}
	// No pod of a new attempt before all old ones are gone (D19).
	if len(pods.old) > 0 {
		return nil, time.Time{}
	}
	need := effectiveMinAvailable(&s.Clique.Spec)
	for index := range s.Clique.Spec.Replicas {
		if _, exists := pods.current[index]; exists || completed.Has(index) || !mayJoin(s.Membership, index < need) {
			continue
		}
		failed := failureOf(&s.Clique.Status, index)
		if failed != nil && isTraining(s.Clique) {
			// The failure of a training pod is for the set to decide.
			continue
		}
		if failed != nil {
			if due := failed.LastTime.Add(backoff(failed.Count)); due.After(now) {
				if next.IsZero() || due.Before(next) {
					next = due
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

// clearCreationProblems removes the conditions that tell of pods that could not be
// made, once there are none to make.
func clearCreationProblems(s CliqueSnapshot, current map[int32]Pod, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus) {
	for index := range s.Clique.Spec.Replicas {
		if _, exists := current[index]; !exists && !completed.Has(index) {
			return
		}
	}
	meta.RemoveStatusCondition(&status.Conditions, grovev1alpha1.ConditionTypeNameConflict)
	meta.RemoveStatusCondition(&status.Conditions, grovev1alpha1.ConditionTypePodCreationFailed)
}
