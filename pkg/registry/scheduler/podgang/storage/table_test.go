package storage

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

func TestColumns(t *testing.T) {
	now := time.Unix(1700000000, 0)
	tests := map[string]struct {
		obj  *scheduler.PodGang
		want map[string]any
	}{
		"full": {
			obj: &scheduler.PodGang{
				ObjectMeta: metav1.ObjectMeta{Name: "llm-0", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
				Spec:       scheduler.PodGangSpec{PodGroups: []scheduler.PodGangPodGroup{{MinReplicas: math.MaxInt32}, {MinReplicas: 1}}},
				Status: scheduler.PodGangStatus{
					Phase: scheduler.PodGangPending, ObservedAttempt: 2,
					Conditions: []metav1.Condition{{
						Type: schedulerv1alpha1.PodGangConditionScheduled, Status: metav1.ConditionFalse, Reason: "NotEnoughResources", Message: "8 of 24",
					}},
				},
			},
			want: map[string]any{
				"Name": "llm-0", "Phase": "Pending", "Pods": int64(1 << 31), "Scheduled": "False", "Reason": "NotEnoughResources",
				"Attempt": int32(2), "Message": "8 of 24", "Age": "60m",
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
	list := &scheduler.PodGangList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"}, Items: make([]scheduler.PodGang, 2)}
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
