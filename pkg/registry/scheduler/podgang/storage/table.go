package storage

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// columns shows how far a gang has come and what it waits for.
func columns() internalrest.Columns[*scheduler.PodGang] {
	return internalrest.Columns[*scheduler.PodGang]{
		Clock: clock.RealClock{},
		Definitions: []metav1.TableColumnDefinition{
			internalrest.NameColumn(),
			{Name: "Phase", Type: "string", Description: "how far the gang has come"},
			{Name: "Pods", Type: "integer", Description: "pods that have to be scheduled together"},
			{Name: "Scheduled", Type: "string", Description: "whether the gang was scheduled in this attempt"},
			{Name: "Reason", Type: "string", Description: "what the gang waits for"},
			{Name: "Attempt", Type: "integer", Priority: 1, Description: "attempt that the pods belong to"},
			{Name: "Message", Type: "string", Priority: 1, Description: "what the scheduler says"},
			internalrest.AgeColumn(),
		},
		Cells: func(gang *scheduler.PodGang, now time.Time) []any {
			return []any{
				gang.Name,
				string(gang.Status.Phase),
				members(gang),
				internalrest.ConditionStatus(gang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled),
				internalrest.ConditionReason(gang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled),
				gang.Status.ObservedAttempt,
				internalrest.ConditionMessage(gang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled),
				internalrest.Age(gang, now),
			}
		},
	}
}

func members(gang *scheduler.PodGang) int64 {
	var n int64
	for _, group := range gang.Spec.PodGroups {
		n += int64(group.MinReplicas)
	}
	return n
}
