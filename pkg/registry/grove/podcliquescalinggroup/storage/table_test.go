package storage

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

func TestColumns(t *testing.T) {
	now := time.Unix(1700000000, 0)
	tests := map[string]struct {
		obj  *grove.PodCliqueScalingGroup
		want map[string]any
	}{
		"full": {
			obj: &grove.PodCliqueScalingGroup{
				ObjectMeta: metav1.ObjectMeta{Name: "llm-0-decode", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
				Spec:       grove.PodCliqueScalingGroupSpec{Replicas: 8, MinAvailable: ptr.To[int32](6)},
				Status: grove.PodCliqueScalingGroupStatus{
					Replicas: 8, AvailableReplicas: 1, ScheduledReplicas: 2, UpdatedReplicas: 3,
					Conditions:      []metav1.Condition{{Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionTrue, Reason: "TooFew", Message: "1 of 6"}},
					ObservedAttempt: 4,
				},
			},
			want: map[string]any{
				"Name": "llm-0-decode", "Min Available": int32(6), "Replicas": int32(8), "Available": int32(1),
				"Scheduled": int32(2), "Updated": int32(3), "Breached": "True", "Age": "60m",
				"Waiting For": "TooFew", "Attempt": int32(4), "Message": "1 of 6",
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
	list := &grove.PodCliqueScalingGroupList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"}, Items: make([]grove.PodCliqueScalingGroup, 2)}
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

func TestWaitingForColumn(t *testing.T) {
	breached := func(replicas int32, status metav1.ConditionStatus, reason string) *grove.PodCliqueScalingGroup {
		return &grove.PodCliqueScalingGroup{Spec: grove.PodCliqueScalingGroupSpec{Replicas: replicas}, Status: grove.PodCliqueScalingGroupStatus{
			Conditions: []metav1.Condition{{Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: status, Reason: reason}},
		}}
	}
	for name, tc := range map[string]struct {
		group *grove.PodCliqueScalingGroup
		want  string
	}{
		"new":             {&grove.PodCliqueScalingGroup{}, ""},
		"available":       {breached(2, metav1.ConditionFalse, "Enough"), ""},
		"never available": {breached(2, metav1.ConditionFalse, grovev1alpha1.ReasonNeverAvailable), "NeverAvailable"},
		"breached":        {breached(2, metav1.ConditionTrue, "TooFew"), "TooFew"},
		"scaled to 0":     {breached(0, metav1.ConditionFalse, grovev1alpha1.ReasonNeverAvailable), ""},
	} {
		if got, _ := internalrest.WaitingFor(tc.group.Status.Conditions, blockers(tc.group)...); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
