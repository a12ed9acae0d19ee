package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

const (
	// failureMemory is how long an index has to be well again for its count to start anew.
	failureMemory = 10 * time.Minute
	// maxFailures is the count at which an index ends its attempt in Training, though
	// minAvailable tolerates it: a crash loop within the tolerance would never end (D8).
	maxFailures = 6
)

// exitedWithZero says that a pod is evidence of a finished index: it succeeded, and
// not only because it was asked to stop. A trainer that exits with 0 on SIGTERM in a
// drain has not finished (D9). Both times are whole seconds: most pods that stop on
// SIGTERM do so within the second of the request, so that second proves nothing.
func exitedWithZero(pod *Pod) bool {
	if pod.Phase != corev1.PodSucceeded {
		return false
	}
	return pod.DeletionRequested == nil || (!pod.FinishedAt.IsZero() && pod.FinishedAt.Before(*pod.DeletionRequested))
}

// wasToldToGo says that the pod is on record as one that ended only because it was asked to
// stop. What is seen of it later, when somebody has asked once more, takes nothing of that
// back.
func wasToldToGo(status *grovev1alpha1.PodCliqueStatus, pod *Pod) bool {
	failed := brokenIndex(status, pod.Index)
	return pod.Terminating() && failed != nil && failed.PodUID == pod.UID
}

// observeCompletion adds finished indexes to the record. A finished index stays
// finished though its pod goes away later.
func observeCompletion(s CliqueSnapshot, current podsByIndex, status *grovev1alpha1.PodCliqueStatus) indexset.Set {
	completed := completedOf(status)
	if !isTraining(s.Clique) {
		return completed
	}
	var finished []int32
	for pod := range current.all() {
		if exitedWithZero(pod) && !wasToldToGo(status, pod) {
			finished = append(finished, pod.Index)
		}
	}
	completed = indexset.Union(completed, indexset.Of(finished...))
	status.CompletedIndexes = completed.String()
	return completed
}

// observeFailures adds failed and lost pods to the record, each pod UID once, and says
// whether there were any. In Inference a pod that ended has failed, whatever its exit
// code, and one that was deleted is simply made again.
func observeFailures(s CliqueSnapshot, current podsByIndex, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus, now time.Time) bool {
	if s.Parent != ParentActive {
		// What ends below a parent that is failing, finished or going ends because of it.
		return false
	}
	recorded := false
	for pod := range current.all() {
		if !hasFailed(s.Clique, pod) || completed.Has(pod.Index) {
			continue
		}
		message := pod.Name + " " + pod.Failure
		if pod.Failure == "" {
			message = pod.Name + " ended"
			if pod.Terminating() {
				message = pod.Name + " exited with 0 only after its deletion was requested"
			}
		}
		recorded = recordFailure(status, pod.Index, pod.UID, failedAt(pod, now), message) || recorded
	}
	if !isTraining(s.Clique) {
		return recorded
	}
	for _, index := range s.Lost {
		if current.at(index) != nil || completed.Has(index) || brokenIndex(status, index) != nil {
			continue
		}
		recorded = recordFailure(status, index, "", now, fmt.Sprintf("the pod of index %d of %s is gone", index, s.Clique.Name)) || recorded
	}
	return recorded
}

// failedAt is when a pod failed, as its node says. A node whose clock is wrong is not
// believed beyond what other clocks know: a time to come would hold the pod's replacement
// back, and one long past would let a crash loop run without back-off (D10).
func failedAt(pod *Pod, now time.Time) time.Time {
	at := pod.FinishedAt
	if at.Before(pod.Created) {
		at = pod.Created
	}
	if pod.FinishedAt.IsZero() || at.After(now) {
		at = now
	}
	return at
}

func hasFailed(clique *grovev1alpha1.PodClique, pod *Pod) bool {
	if isTraining(clique) && pod.CrashLooping && !pod.Terminating() {
		return true
	}
	if !pod.Ended() {
		return false
	}
	if isTraining(clique) {
		return !exitedWithZero(pod)
	}
	// A pod that ends because it is being deleted has not failed.
	return !pod.Terminating()
}

// recordFailure breaks an index, and says whether that is news. A pod counts once, however
// often its containers fail.
func recordFailure(status *grovev1alpha1.PodCliqueStatus, index int32, uid types.UID, at time.Time, message string) bool {
	if failed := brokenIndex(status, index); failed != nil && uid != "" && failed.PodUID == uid {
		return false
	}
	shortenRecoveries(status)
	i, known := findFailure(status, index)
	if !known {
		var entry grovev1alpha1.FailedIndex
		if entry, known = takeRecovery(status, index); !known {
			if len(status.FailedIndexes)+len(status.RecoveredIndexes) >= grovev1alpha1.MaxFailedIndexes {
				if !forgetRecovered(status) {
					return false
				}
				i, _ = findFailure(status, index)
			}
			entry.Index = index
		}
		if len(status.FailedIndexes) >= maxFailureMessages {
			message = ""
		}
		status.FailedIndexes = slices.Insert(status.FailedIndexes, i, entry)
	}
	failed := &status.FailedIndexes[i]
	// Of a pod that is kept in short only the beginning of its UID is known.
	samePod := known && failed.PodUID != "" && strings.HasPrefix(string(uid), string(failed.PodUID))
	if known && at.Before(failed.LastTime.Time) {
		// The clocks of two nodes differ. The API server lets no time go back, and would
		// refuse this failure for ever.
		at = failed.LastTime.Time
	}
	if !samePod {
		if failed.RecoveredTime != nil && at.Sub(failed.RecoveredTime.Time) >= failureMemory {
			failed.Count = 0
		}
		failed.Count++
	}
	failed.LastTime = metav1.NewTime(at)
	failed.RecoveredTime = nil
	failed.PodUID = uid
	failed.Message = message
	return true
}

// maxFailureMessages is how many failures are told in words: the words are most of what a
// failure takes in the status.
const maxFailureMessages = 500

// findFailure is where the failures of an index are on record, which is in the order of the
// indexes, or would be.
func findFailure(status *grovev1alpha1.PodCliqueStatus, index int32) (int, bool) {
	return slices.BinarySearchFunc(status.FailedIndexes, index, func(f grovev1alpha1.FailedIndex, index int32) int { return int(f.Index) - int(index) })
}

// observeRecovery mends broken indexes whose pods are Ready again (D8).
func observeRecovery(current podsByIndex, status *grovev1alpha1.PodCliqueStatus, now time.Time) bool {
	recovered := false
	for i := range status.FailedIndexes {
		failed := &status.FailedIndexes[i]
		pod := current.at(failed.Index)
		if failed.RecoveredTime != nil || pod == nil || !pod.Ready || pod.Ended() || pod.Terminating() || pod.CrashLooping {
			continue
		}
		at := now
		if at.Before(failed.LastTime.Time) {
			at = failed.LastTime.Time
		}
		failed.RecoveredTime = ptr.To(metav1.NewTime(at))
		recovered = true
	}
	return recovered
}

func failureOf(status *grovev1alpha1.PodCliqueStatus, index int32) *grovev1alpha1.FailedIndex {
	if i, known := findFailure(status, index); known {
		return &status.FailedIndexes[i]
	}
	return nil
}

// tellFailure says for people how an index failed.
func tellFailure(failed *grovev1alpha1.FailedIndex) string {
	return cmp.Or(failed.Message, fmt.Sprintf("the pod of index %d failed", failed.Index))
}

// brokenIndex is the failure of an index from which it has not recovered, or nil (D8).
func brokenIndex(status *grovev1alpha1.PodCliqueStatus, index int32) *grovev1alpha1.FailedIndex {
	if failed := failureOf(status, index); failed != nil && failed.RecoveredTime == nil {
		return failed
	}
	return nil
}

// ExhaustedIndex is a broken index of a clique in Training that has failed too often for
// its attempt to go on, or nil (D8).
func ExhaustedIndex(clique *grovev1alpha1.PodClique) *grovev1alpha1.FailedIndex {
	return exhaustedIndex(clique, &clique.Status)
}

func exhaustedIndex(clique *grovev1alpha1.PodClique, status *grovev1alpha1.PodCliqueStatus) *grovev1alpha1.FailedIndex {
	if !isTraining(clique) {
		return nil
	}
	completed := completedOf(status)
	for i := range status.FailedIndexes {
		if failed := &status.FailedIndexes[i]; failed.RecoveredTime == nil && failed.Count >= maxFailures && failed.Index < clique.Spec.Replicas && !completed.Has(failed.Index) {
			return failed
		}
	}
	return nil
}

// observeCreation records that all pods of the attempt exist, so that a missing one is
// known to be lost and not simply not there yet (D9).
func observeCreation(s CliqueSnapshot, current podsByIndex, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus) bool {
	replicas := s.Clique.Spec.Replicas
	if createdThisAttempt(s.Clique, status) && status.CreatedReplicas >= replicas {
		lowered := status.CreatedReplicas > replicas
		status.CreatedReplicas = replicas
		return lowered
	}
	for index := range replicas {
		if current.at(index) == nil && !completed.Has(index) {
			return false
		}
	}
	status.CreatedAttempt = ptr.To(s.Clique.Spec.Attempt)
	status.CreatedReplicas = replicas
	return true
}

func createdThisAttempt(clique *grovev1alpha1.PodClique, status *grovev1alpha1.PodCliqueStatus) bool {
	return status.CreatedAttempt != nil && *status.CreatedAttempt == clique.Spec.Attempt && status.ObservedAttempt == clique.Spec.Attempt
}

// MissingIndexes are the indexes whose pods were all seen once and of which none is
// seen now: the controller has to read them live before it calls them lost.
func MissingIndexes(clique *grovev1alpha1.PodClique, pods []Pod) []int32 {
	if !isTraining(clique) || !createdThisAttempt(clique, &clique.Status) {
		return nil
	}
	seen := make(map[int32]bool, len(pods))
	for _, pod := range pods {
		if !pod.Stray && pod.Attempt == clique.Spec.Attempt {
			seen[pod.Index] = true
		}
	}
	completed := completedOf(&clique.Status)
	var missing []int32
	for index := range min(clique.Status.CreatedReplicas, clique.Spec.Replicas) {
		if !seen[index] && !completed.Has(index) && brokenIndex(&clique.Status, index) == nil {
			missing = append(missing, index)
		}
	}
	return missing
}

// observeSuccess records that every index has finished. It is recorded before any pod
// is cleaned up (seed 000).
func observeSuccess(s CliqueSnapshot, completed indexset.Set, status *grovev1alpha1.PodCliqueStatus, now time.Time) bool {
	if !isTraining(s.Clique) || meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeSucceeded) {
		return false
	}
	replicas := s.Clique.Spec.Replicas
	if replicas == 0 || completed.CountBelow(replicas) < int(replicas) {
		return false
	}
	setCondition(&status.Conditions, s.Clique.Generation, now, grovev1alpha1.ConditionTypeSucceeded, metav1.ConditionTrue,
		grovev1alpha1.ReasonAllPodsSucceeded, fmt.Sprintf("all %d pods exited with 0", replicas))
	return true
}
