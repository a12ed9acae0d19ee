package gang

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// stuckAfter is how long a terminating pod may outlive its grace period before somebody
// should look at it.
const stuckAfter = 30 * time.Second

// observeTermination names pods that are being deleted and do not go, and says when to
// look again.
func observeTermination(s CliqueSnapshot, status *grovev1alpha1.PodCliqueStatus, now time.Time) (next time.Time) {
	var stuck []string
	for _, pod := range s.Pods {
		if !pod.Terminating() {
			continue
		}
		// When the grace period ends, the node is looked at.
		if pod.DeletionDue.After(now) {
			next = earliest(next, pod.DeletionDue)
		}
		due := pod.DeletionDue.Add(stuckAfter)
		if due.After(now) {
			next = earliest(next, due)
			continue
		}
		stuck = append(stuck, onDeadNode(s, pod))
	}
	if len(stuck) == 0 {
		meta.RemoveStatusCondition(&status.Conditions, grovev1alpha1.ConditionTypePodsStuckTerminating)
		return next
	}
	slices.Sort(stuck)
	setCondition(&status.Conditions, s.Clique.Generation, now, grovev1alpha1.ConditionTypePodsStuckTerminating, metav1.ConditionTrue, grovev1alpha1.ReasonPodsTerminating,
		fmt.Sprintf("still there %s after their grace period: %s", stuckAfter, firstOf(stuck)))
	return next
}

// podsToForce are terminating pods past their grace period on nodes that run nothing any
// more: no kubelet will ever confirm that they have ended (D19).
func podsToForce(s CliqueSnapshot, now time.Time) []Pod {
	var out []Pod
	for _, pod := range s.Pods {
		if _, dead := s.DeadNodes[pod.Node]; dead && pod.Terminating() && !pod.DeletionDue.After(now) {
			out = append(out, pod)
		}
	}
	return out
}

// ForceDeletion tells that a pod of ForceDelete has been removed.
func ForceDeletion(s CliqueSnapshot, pod Pod) Event {
	return Event{corev1.EventTypeWarning, EventPodForceDeleted, onDeadNode(s, pod) + ": it is force-deleted"}
}

// StrayDeletion tells that a stray pod has been removed.
func StrayDeletion(pod Pod) Event {
	return Event{corev1.EventTypeWarning, EventStrayPodDeleted, pod.Name + onNode(&pod) + " is a copy of another pod, or its labels were changed: it is deleted"}
}

// onDeadNode names a pod and its node, and says what is known of a dead one.
func onDeadNode(s CliqueSnapshot, pod Pod) string {
	text := pod.Name + onNode(&pod)
	if why := s.DeadNodes[pod.Node]; why != "" {
		text += ", which " + why
	}
	return text
}

// OverdueNodes are the nodes of terminating pods past their grace period: the controller
// looks at them before it decides.
func OverdueNodes(pods []Pod, now time.Time) []string {
	var out []string
	seen := map[string]bool{}
	for _, pod := range pods {
		if pod.Terminating() && pod.Node != "" && !pod.DeletionDue.After(now) && !seen[pod.Node] {
			seen[pod.Node] = true
			out = append(out, pod.Node)
		}
	}
	return out
}

// Drained says that no pod of an earlier attempt is left in the cliques that restart
// together with one: those of its replica or, when its copy of a scaling group alone was
// recycled, those of the copy (D19). siblings are all cliques of the replica, groups its
// scaling groups by name, and attempt is the replica's.
func Drained(clique *grovev1alpha1.PodClique, siblings []grovev1alpha1.PodClique, groups map[string]*grovev1alpha1.PodCliqueScalingGroup, attempt int32) bool {
	for i := range siblings {
		sibling := &siblings[i]
		if sibling.UID == clique.UID || !RestartTogether(clique, sibling, groups, attempt) {
			continue
		}
		if sibling.Spec.Attempt < WantedAttempt(sibling, groups, attempt) || sibling.Status.ObservedAttempt < sibling.Spec.Attempt || sibling.Status.OldReplicas > 0 {
			return false
		}
	}
	return true
}

// WantedAttempt is the attempt that a clique should be in: the sum of the replica's and of
// its copy's (D3).
func WantedAttempt(clique *grovev1alpha1.PodClique, groups map[string]*grovev1alpha1.PodCliqueScalingGroup, attempt int32) int32 {
	group, index := copyOf(clique)
	return attempt + CopyAttempt(groups[group], index)
}

// RestartTogether says that the old pods of one clique keep the new ones of another from
// being made. A copy that has been recycled since its replica was last restarted had all
// its pods in this attempt of the replica, so what is old in it concerns it alone.
func RestartTogether(a, b *grovev1alpha1.PodClique, groups map[string]*grovev1alpha1.PodCliqueScalingGroup, attempt int32) bool {
	groupA, copyA := copyOf(a)
	groupB, copyB := copyOf(b)
	if groupA != "" && groupA == groupB && copyA == copyB {
		return true
	}
	return recycledSince(groups[groupA], copyA, attempt) == nil && recycledSince(groups[groupB], copyB, attempt) == nil
}
