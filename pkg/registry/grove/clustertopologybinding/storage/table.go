package storage

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// columns shows the levels of a topology, from broad to narrow.
func columns() internalrest.Columns[*grove.ClusterTopologyBinding] {
	return internalrest.Columns[*grove.ClusterTopologyBinding]{
		Clock: clock.RealClock{},
		Definitions: []metav1.TableColumnDefinition{
			internalrest.NameColumn(),
			{Name: "Levels", Type: "string", Description: "domains, from broad to narrow"},
			{Name: "Drift", Type: "string", Priority: 1, Description: "whether a scheduler has another topology"},
			internalrest.AgeColumn(),
		},
		Cells: func(binding *grove.ClusterTopologyBinding, now time.Time) []any {
			return []any{
				binding.Name,
				levels(binding),
				internalrest.ConditionStatus(binding.Status.Conditions, grovev1alpha1.ConditionTypeSchedulerTopologyDrift),
				internalrest.Age(binding, now),
			}
		},
	}
}

func levels(binding *grove.ClusterTopologyBinding) string {
	domains := make([]string, 0, len(binding.Spec.Levels))
	for _, level := range binding.Spec.Levels {
		domains = append(domains, level.Domain)
	}
	return strings.Join(domains, " > ")
}
