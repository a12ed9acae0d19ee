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
		obj  *grove.PodClique
		want map[string]any
	}{
		"full": {
			obj: &grove.PodClique{
				ObjectMeta: metav1.ObjectMeta{Name: "llm-0-worker", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
				Spec:       grove.PodCliqueSpec{Replicas: 8, MinAvailable: ptr.To[int32](6), Attempt: 2},
				Status: grove.PodCliqueStatus{
					Replicas: 8, ReadyReplicas: 1, RunningReplicas: 2, ScheduledReplicas: 3, UpdatedReplicas: 4, ScheduleGatedReplicas: 5,
					CompletedIndexes: "0-2,7",
					Conditions:       []metav1.Condition{{Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionTrue, Reason: "TooFew", Message: "1 of 6"}},
				},
			},
			want: map[string]any{
				"Name": "llm-0-worker", "Min Available": int32(6), "Replicas": int32(8), "Ready": int32(1), "Running": int32(2),
				"Scheduled": int32(3), "Succeeded": 4, "Breached": "True", "Attempt": int32(2), "Gated": int32(5), "Updated": int32(4),
				"Age": "60m", "Waiting For": "TooFew", "Message": "1 of 6",
			},
		},
		"no minAvailable means all, and unreadable indexes mean none": {
			obj: &grove.PodClique{Spec: grove.PodCliqueSpec{Replicas: 8}, Status: grove.PodCliqueStatus{CompletedIndexes: "junk"}},
			want: map[string]any{
				"Name": "", "Min Available": int32(8), "Replicas": int32(8), "Ready": int32(0), "Running": int32(0),
				"Scheduled": int32(0), "Succeeded": 0, "Breached": "", "Attempt": int32(0), "Gated": int32(0), "Updated": int32(0),
				"Age": "<unknown>", "Waiting For": "", "Message": "",
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
	list := &grove.PodCliqueList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"}, Items: make([]grove.PodClique, 2)}
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

// What a person has to put right is shown before what follows from it.
func TestWaitingForColumn(t *testing.T) {
	type condition struct {
		of     string
		status metav1.ConditionStatus
		reason string
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	const breached, scheduled = grovev1alpha1.ConditionTypeMinAvailableBreached, grovev1alpha1.ConditionTypePodCliqueScheduled
	for name, tc := range map[string]struct {
		replicas   int32
		conditions []condition
		want       string
	}{
		"new":             {3, nil, ""},
		"available":       {3, []condition{{breached, no, "SufficientReadyPods"}, {scheduled, yes, "SufficientScheduledPods"}}, ""},
		"never available": {3, []condition{{breached, no, grovev1alpha1.ReasonNeverAvailable}, {scheduled, yes, "x"}}, "NeverAvailable"},
		"not scheduled":   {3, []condition{{breached, no, grovev1alpha1.ReasonNeverAvailable}, {scheduled, no, "InsufficientScheduledPods"}}, "InsufficientScheduledPods"},
		"breached":        {3, []condition{{scheduled, no, "x"}, {breached, yes, "InsufficientReadyPods"}}, "InsufficientReadyPods"},
		"stuck":           {3, []condition{{breached, yes, "x"}, {grovev1alpha1.ConditionTypePodsStuckTerminating, yes, "PodsTerminating"}}, "PodsStuckTerminating: PodsTerminating"},
		"refused":         {3, []condition{{grovev1alpha1.ConditionTypePodsStuckTerminating, yes, "x"}, {grovev1alpha1.ConditionTypePodCreationFailed, yes, "Forbidden"}}, "PodCreationFailed: Forbidden"},
		"name taken":      {3, []condition{{grovev1alpha1.ConditionTypePodCreationFailed, yes, "x"}, {grovev1alpha1.ConditionTypeNameConflict, yes, "ForeignPod"}}, "NameConflict: ForeignPod"},
		"failing":         {3, []condition{{grovev1alpha1.ConditionTypeNameConflict, yes, "x"}, {grovev1alpha1.ConditionTypeFailureTarget, yes, "PodCliqueSetFailing"}}, "PodCliqueSetFailing"},
		"over":            {3, []condition{{grovev1alpha1.ConditionTypeNameConflict, no, "x"}}, ""},
		"scaled to 0":     {0, []condition{{breached, no, grovev1alpha1.ReasonNeverAvailable}, {scheduled, no, "x"}}, ""},
	} {
		clique := &grove.PodClique{Spec: grove.PodCliqueSpec{Replicas: tc.replicas}}
		for _, c := range tc.conditions {
			clique.Status.Conditions = append(clique.Status.Conditions, metav1.Condition{Type: c.of, Status: c.status, Reason: c.reason})
		}
		if got, _ := internalrest.WaitingFor(clique.Status.Conditions, blockers(clique)...); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
