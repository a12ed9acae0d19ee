package storage

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func TestColumns(t *testing.T) {
	now := time.Unix(1700000000, 0)
	tests := map[string]struct {
		obj  *grove.StartGate
		want map[string]any
	}{
		"full": {
			obj: &grove.StartGate{
				ObjectMeta: metav1.ObjectMeta{Name: "llm-0", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
				Status:     grove.StartGateStatus{Cliques: []grove.StartGateClique{{Open: true}, {Open: true}, {Expired: true}, {}}},
			},
			want: map[string]any{"Name": "llm-0", "Open": 2, "Cliques": 4, "Expired": 1, "Age": "60m"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			columns, cells := columns(), map[string]any{}
			for i, cell := range columns.Cells(tc.obj, now) {
				cells[columns.Definitions[i].Name] = cell
			}
			if diff := cmp.Diff(tc.want, cells); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEmptyObjectHasACellForEachColumn(t *testing.T) {
	list := &grove.StartGateList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"}, Items: make([]grove.StartGate, 2)}
	for _, noHeaders := range []bool{false, true} {
		table, err := columns().ConvertToTable(context.Background(), list, &metav1.TableOptions{NoHeaders: noHeaders})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(table.ColumnDefinitions) == 0; got != noHeaders {
			t.Errorf("no headers is %t, want %t", got, noHeaders)
		}
		if table.ResourceVersion != "9" || table.Continue != "more" {
			t.Errorf("metadata of the list is %v", table.ListMeta)
		}
		if len(table.Rows) != 2 {
			t.Fatalf("%d rows, want 2", len(table.Rows))
		}
		for _, row := range table.Rows {
			if got, want := len(row.Cells), len(columns().Definitions); got != want {
				t.Errorf("%d cells in %d columns", got, want)
			}
		}
	}
}
