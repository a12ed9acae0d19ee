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
			{Name: "Updated", Type: "integer", Priority: 1, Description: "copies that follow the current template"},
			{Name: "Breached", Type: "string", Priority: 1, Description: "whether minAvailable is breached"},
			internalrest.AgeColumn(),
		},
		Cells: func(group *grove.PodCliqueScalingGroup, now time.Time) []any {
			return []any{
				group.Name,
				ptr.Deref(group.Spec.MinAvailable, 1),
				group.Spec.Replicas,
				group.Status.AvailableReplicas,
				group.Status.ScheduledReplicas,
				group.Status.UpdatedReplicas,
				internalrest.ConditionStatus(group.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached),
				internalrest.Age(group, now),
			}
		},
	}
}
