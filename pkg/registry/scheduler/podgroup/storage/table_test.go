package storage

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
)

func TestColumns(t *testing.T) {
	now := time.Unix(1700000000, 0)
	tests := map[string]struct {
		obj  *scheduler.PodGroup
		want map[string]any
	}{
		"full": {
			obj: &scheduler.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Name: "job", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
				Spec:       scheduler.PodGroupSpec{MinMember: ptr.To[int32](4), Queue: "team-a", PriorityClassName: "train"},
				Status: scheduler.PodGroupStatus{
					Phase: scheduler.PodGroupPending, Running: 1, Pending: 3,
					SchedulingConditions: []scheduler.SchedulingCondition{
						{Reasons: []scheduler.UnschedulableExplanation{{Reason: "Old"}}},
						{Reasons: []scheduler.UnschedulableExplanation{{Reason: "OverLimit"}, {Reason: "Other"}}},
					},
				},
			},
			want: map[string]any{
				"Name": "job", "Phase": "Pending", "Min Member": int32(4), "Running": int32(1), "Pending": int32(3), "Queue": "team-a",
				"Reason": "OverLimit", "Priority": "train", "Age": "60m",
			},
		},
		"condition without reasons": {
			obj: &scheduler.PodGroup{Status: scheduler.PodGroupStatus{SchedulingConditions: make([]scheduler.SchedulingCondition, 1)}},
			want: map[string]any{
				"Name": "", "Phase": "", "Min Member": int32(0), "Running": int32(0), "Pending": int32(0), "Queue": "",
				"Reason": "", "Priority": "", "Age": "<unknown>",
			},
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
	list := &scheduler.PodGroupList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"}, Items: make([]scheduler.PodGroup, 2)}
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
