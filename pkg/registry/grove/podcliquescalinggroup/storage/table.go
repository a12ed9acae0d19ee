package storage

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// columns shows how many copies of a scaling group there are and how far they have come.
func columns() internalrest.Columns[*grove.PodCliqueScalingGroup] {
	return internalrest.Columns[*grove.PodCliqueScalingGroup]{
		Clock: clock.RealClock{},
		Definitions: []metav1.TableColumnDefinition{
			internalrest.NameColumn(),
			{Name: "Min Available", Type: "integer", Description: "copies that have to be available"},
			{Name: "Replicas", Type: "integer", Description: "copies wanted"},
			{Name: "Available", Type: "integer", Description: "copies that are available"},
			{Name: "Scheduled", Type: "integer", Description: "copies that are scheduled"},
			{Name: "Waiting For", Type: "string", Description: "what holds the group back"},
			{Name: "Updated", Type: "integer", Priority: 1, Description: "copies that follow the current template"},
			{Name: "Breached", Type: "string", Priority: 1, Description: "whether minAvailable is breached"},
			{Name: "Attempt", Type: "integer", Priority: 1, Description: "attempt that the copies of the replica belong to"},
			{Name: "Message", Type: "string", Priority: 1, Description: "more about what holds the group back"},
			internalrest.AgeColumn(),
		},
		Cells: func(group *grove.PodCliqueScalingGroup, now time.Time) []any {
			waitingFor, message := internalrest.WaitingFor(group.Status.Conditions, blockers(group)...)
			return []any{
				group.Name,
				ptr.Deref(group.Spec.MinAvailable, 1),
				group.Spec.Replicas,
				group.Status.AvailableReplicas,
				group.Status.ScheduledReplicas,
				waitingFor,
				group.Status.UpdatedReplicas,
				internalrest.ConditionStatus(group.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached),
				group.Status.ObservedAttempt,
				message,
				internalrest.Age(group, now),
			}
		},
	}
}

// blockers are what holds a group back. A group that is scaled to 0 needs nothing.
func blockers(group *grove.PodCliqueScalingGroup) []internalrest.Blocker {
	if group.Spec.Replicas == 0 {
		return nil
	}
	return []internalrest.Blocker{
		{Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionTrue},
		{Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionFalse, Reason: grovev1alpha1.ReasonNeverAvailable},
	}
}
