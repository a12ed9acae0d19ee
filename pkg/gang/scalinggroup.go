package gang

import (
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// GroupSnapshot is all that the status of one scaling group depends on.
type GroupSnapshot struct {
	Group *grovev1alpha1.PodCliqueScalingGroup
	// Cliques are the members that exist, of all copies.
	Cliques []grovev1alpha1.PodClique
}

// DecideGroup returns the next status of a scaling group, and whether it differs.
func DecideGroup(s GroupSnapshot, now time.Time) (grovev1alpha1.PodCliqueScalingGroupStatus, bool) {
	status := s.Group.Status.DeepCopy()
	status.ObservedGeneration = ptr.To(s.Group.Generation)
	status.Selector = ptr.To(labels.PodsOfScalingGroup(s.Group.Name))
	status.Replicas, status.AvailableReplicas, status.ScheduledReplicas, status.UpdatedReplicas = 0, 0, 0, 0

	copies := map[int32][]*grovev1alpha1.PodClique{}
	for i := range s.Cliques {
		clique := &s.Cliques[i]
		index, ok := labels.ParseIndex(clique.Labels[labels.ScalingGroupReplicaIndex])
		if ok && clique.DeletionTimestamp == nil && index < s.Group.Spec.Replicas {
			copies[index] = append(copies[index], clique)
		}
	}
	wasAvailable := false
	for _, members := range copies {
		status.Replicas++
		if len(members) < len(s.Group.Spec.CliqueNames) {
			continue
		}
		available, scheduled, updated, was := true, true, true, true
		for _, clique := range members {
			available = available && IsAvailable(clique)
			scheduled = scheduled && IsScheduled(clique)
			updated = updated && clique.Status.UpdatedReplicas >= effectiveMinAvailable(&clique.Spec)
			was = was && clique.Status.WasAvailable
		}
		wasAvailable = wasAvailable || was
		if available {
			status.AvailableReplicas++
		}
		if scheduled {
			status.ScheduledReplicas++
		}
		if available && updated {
			status.UpdatedReplicas++
		}
	}
	need := min(ptr.Deref(s.Group.Spec.MinAvailable, 1), s.Group.Spec.Replicas)
	breached, reason := metav1.ConditionFalse, grovev1alpha1.ReasonSufficientAvailableReplicas
	switch {
	case status.AvailableReplicas >= need:
	case !wasAvailable:
		reason = grovev1alpha1.ReasonNeverAvailable
	default:
		breached, reason = metav1.ConditionTrue, grovev1alpha1.ReasonInsufficientAvailableReplicas
	}
	setCondition(&status.Conditions, s.Group.Generation, now, grovev1alpha1.ConditionTypeMinAvailableBreached, breached, reason,
		fmt.Sprintf("%d of %d copies are available, at least %d are needed", status.AvailableReplicas, s.Group.Spec.Replicas, need))
	return *status, !apiequality.Semantic.DeepEqual(s.Group.Status, *status)
}
