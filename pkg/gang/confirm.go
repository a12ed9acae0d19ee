package gang

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// An attempt is ended only after a live look at the breach (D4): a cache may lag behind a
// pod that has become Ready again.

// MayConfirm says that a clique, read live, still says what a decision was made from.
func MayConfirm(decidedFrom, current *grovev1alpha1.PodClique) bool {
	return current.UID == decidedFrom.UID && current.DeletionTimestamp == nil && isIn(current, decidedFrom.Spec.Attempt) &&
		(breachOf(current) != nil || ExhaustedIndex(current) != nil)
}

// BreachedByFailures says that recorded failures alone explain the breach: a pod that was
// seen Failed needs no second look as long as it cannot have been replaced.
func BreachedByFailures(clique *grovev1alpha1.PodClique, now time.Time) bool {
	if ExhaustedIndex(clique) != nil {
		return true
	}
	fresh := clique.Status.DeepCopy()
	fresh.FailedIndexes = slices.DeleteFunc(fresh.FailedIndexes, func(failed grovev1alpha1.FailedIndex) bool {
		return !backoffEnds(&failed).After(now)
	})
	return clique.Spec.Replicas-countBroken(clique, completedOf(fresh), fresh) < effectiveMinAvailable(&clique.Spec)
}

// StillBreached says whether a clique is breached by its pods as a live list shows them.
func StillBreached(clique *grovev1alpha1.PodClique, pods []Pod, now time.Time) bool {
	decision := DecideClique(CliqueSnapshot{Clique: clique, Parent: ParentActive, Pods: pods}, now)
	return meta.IsStatusConditionTrue(decision.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
}

// FinishedAt is when the last pod of a set finished with success, by the pods of its
// cliques as a live list shows them; zero when one has not. A finished pod that is gone
// finished no later than its clique's success was recorded, and when that has not been,
// now (D7).
func FinishedAt(s SetSnapshot, pods map[types.UID][]Pod, now time.Time) time.Time {
	var last time.Time
	for replica := range s.Set.Spec.Replicas {
		for _, expected := range ExpectedCliques(s.Set, replica, s.sizes) {
			clique := s.Cliques[expected.Name]
			if !isCurrent(clique, ReplicaAttempt(s.Set, replica)) {
				return time.Time{}
			}
			finished := cliqueFinishedAt(clique, pods[clique.UID], now)
			if finished.IsZero() {
				return time.Time{}
			}
			if finished.After(last) {
				last = finished
			}
		}
	}
	return last
}

func cliqueFinishedAt(clique *grovev1alpha1.PodClique, pods []Pod, now time.Time) time.Time {
	unknown := now
	if succeeded := meta.FindStatusCondition(clique.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded); succeeded != nil {
		unknown = succeeded.LastTransitionTime.Time
	}
	finished := make(map[int32]time.Time, len(pods))
	for _, pod := range pods {
		if !pod.Stray && pod.Attempt == clique.Spec.Attempt && exitedWithZero(&pod) && !pod.FinishedAt.IsZero() {
			finished[pod.Index] = pod.FinishedAt
		}
	}
	completed := completedOf(&clique.Status)
	var last time.Time
	for index := range clique.Spec.Replicas {
		at, ok := finished[index]
		if !ok {
			if !completed.Has(index) {
				return time.Time{}
			}
			at = unknown
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}
