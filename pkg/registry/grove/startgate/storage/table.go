package storage

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/copse-dev/copse/pkg/apis/grove"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// columns shows how many cliques wait at a gate.
func columns() internalrest.Columns[*grove.StartGate] {
	return internalrest.Columns[*grove.StartGate]{
		Clock: clock.RealClock{},
		Definitions: []metav1.TableColumnDefinition{
			internalrest.NameColumn(),
			{Name: "Open", Type: "integer", Description: "cliques that may start"},
			{Name: "Cliques", Type: "integer", Description: "cliques that wait or have waited"},
			{Name: "Expired", Type: "integer", Description: "cliques whose deadline has passed"},
			internalrest.AgeColumn(),
		},
		Cells: func(gate *grove.StartGate, now time.Time) []any {
			return []any{
				gate.Name,
				count(gate, func(c grove.StartGateClique) bool { return c.Open }),
				len(gate.Status.Cliques),
				count(gate, func(c grove.StartGateClique) bool { return c.Expired }),
				internalrest.Age(gate, now),
			}
		},
	}
}

func count(gate *grove.StartGate, matches func(grove.StartGateClique) bool) int {
	n := 0
	for _, clique := range gate.Status.Cliques {
		if matches(clique) {
			n++
		}
	}
	return n
}
