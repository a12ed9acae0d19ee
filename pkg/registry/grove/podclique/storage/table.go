package storage

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// columns shows how many pods of a clique there are and how far they have come.
func columns() internalrest.Columns[*grove.PodClique] {
	return internalrest.Columns[*grove.PodClique]{
		Clock: clock.RealClock{},
		Definitions: []metav1.TableColumnDefinition{
			internalrest.NameColumn(),
			{Name: "Min Available", Type: "integer", Description: "pods that have to be available"},
			{Name: "Replicas", Type: "integer", Description: "pods wanted"},
			{Name: "Ready", Type: "integer", Description: "pods that are Ready"},
			{Name: "Running", Type: "integer", Description: "pods that run"},
			{Name: "Scheduled", Type: "integer", Description: "pods that have a node"},
			{Name: "Succeeded", Type: "integer", Description: "pods that exited with 0"},
			{Name: "Waiting For", Type: "string", Description: "what holds the clique back"},
			{Name: "Breached", Type: "string", Priority: 1, Description: "whether minAvailable is breached"},
			{Name: "Attempt", Type: "integer", Priority: 1, Description: "attempt that the pods belong to"},
			{Name: "Gated", Type: "integer", Priority: 1, Description: "pods that are held by a scheduling gate"},
			{Name: "Updated", Type: "integer", Priority: 1, Description: "pods that follow the current template"},
			{Name: "Message", Type: "string", Priority: 1, Description: "more about what holds the clique back"},
			internalrest.AgeColumn(),
		},
		Cells: func(clique *grove.PodClique, now time.Time) []any {
			waitingFor, message := internalrest.WaitingFor(clique.Status.Conditions, blockers(clique)...)
			return []any{
				clique.Name,
				ptr.Deref(clique.Spec.MinAvailable, clique.Spec.Replicas),
				clique.Spec.Replicas,
				clique.Status.ReadyReplicas,
				clique.Status.RunningReplicas,
				clique.Status.ScheduledReplicas,
				succeeded(clique),
				waitingFor,
				internalrest.ConditionStatus(clique.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached),
				clique.Spec.Attempt,
				clique.Status.ScheduleGatedReplicas,
				clique.Status.UpdatedReplicas,
				message,
				internalrest.Age(clique, now),
			}
		},
	}
}

// blockers are what holds a clique back. What nobody but a person can put right comes
// first, and why it is not available last. A clique that is scaled to 0 needs nothing.
func blockers(clique *grove.PodClique) []internalrest.Blocker {
	blockers := []internalrest.Blocker{
		{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue},
		{Type: grovev1alpha1.ConditionTypeNameConflict, Status: metav1.ConditionTrue, Named: true},
		{Type: grovev1alpha1.ConditionTypePodCreationFailed, Status: metav1.ConditionTrue, Named: true},
		{Type: grovev1alpha1.ConditionTypePodsStuckTerminating, Status: metav1.ConditionTrue, Named: true},
	}
	if clique.Spec.Replicas == 0 {
		return blockers
	}
	return append(blockers,
		internalrest.Blocker{Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionTrue},
		internalrest.Blocker{Type: grovev1alpha1.ConditionTypePodCliqueScheduled, Status: metav1.ConditionFalse},
		internalrest.Blocker{Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionFalse, Reason: grovev1alpha1.ReasonNeverAvailable},
	)
}

func succeeded(clique *grove.PodClique) int {
	completed, err := indexset.Parse(clique.Status.CompletedIndexes)
	if err != nil {
		return 0
	}
	return completed.Len()
}
