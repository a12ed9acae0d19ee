package storage

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// columns shows how far a group has come and why it is not scheduled.
func columns() internalrest.Columns[*scheduler.PodGroup] {
	return internalrest.Columns[*scheduler.PodGroup]{
		Clock: clock.RealClock{},
		Definitions: []metav1.TableColumnDefinition{
			internalrest.NameColumn(),
			{Name: "Phase", Type: "string", Description: "how far the group has come"},
			{Name: "Min Member", Type: "integer", Description: "pods that have to be scheduled together"},
			{Name: "Running", Type: "integer", Description: "pods that run"},
			{Name: "Pending", Type: "integer", Description: "pods that wait for a node"},
			{Name: "Queue", Type: "string", Description: "queue of the group"},
			{Name: "Reason", Type: "string", Description: "why the group is not scheduled"},
			{Name: "Priority", Type: "string", Priority: 1, Description: "PriorityClass of the group"},
			internalrest.AgeColumn(),
		},
		Cells: func(group *scheduler.PodGroup, now time.Time) []any {
			return []any{
				group.Name,
				string(group.Status.Phase),
				ptr.Deref(group.Spec.MinMember, 0),
				group.Status.Running,
				group.Status.Pending,
				group.Spec.Queue,
				reason(group),
				group.Spec.PriorityClassName,
				internalrest.Age(group, now),
			}
		},
	}
}

// reason is that of the newest condition.
func reason(group *scheduler.PodGroup) string {
	conditions := group.Status.SchedulingConditions
	if len(conditions) == 0 || len(conditions[len(conditions)-1].Reasons) == 0 {
		return ""
	}
	return conditions[len(conditions)-1].Reasons[0].Reason
}
