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
)

func TestColumns(t *testing.T) {
	now := time.Unix(1700000000, 0)
	tests := map[string]struct {
		obj  *grove.PodCliqueSet
		want map[string]any
	}{
		"training set at its end": {
			obj: &grove.PodCliqueSet{
				ObjectMeta: metav1.ObjectMeta{Name: "llama-ft", CreationTimestamp: metav1.NewTime(now.Add(-3 * time.Hour))},
				Spec: grove.PodCliqueSetSpec{
					Replicas: 2, WorkloadType: grove.WorkloadTypeTraining, TrainingSpec: &grove.TrainingSpec{MaxRestarts: ptr.To[int32](3)},
				},
				Status: grove.PodCliqueSetStatus{
					Phase: grove.PodCliqueSetSucceeded, RestartCount: 1, AvailableReplicas: 2, AvailablePods: 16, Pods: 16, UpdatedReplicas: 2,
					StartTime:             ptr.To(metav1.NewTime(now.Add(-2 * time.Hour))),
					CompletionTime:        ptr.To(metav1.NewTime(now.Add(-90 * time.Minute))),
					CurrentGenerationHash: ptr.To("hash"),
				},
			},
			want: map[string]any{
				"Name": "llama-ft", "Type": "Training", "Phase": "Succeeded", "Replicas": "2/2", "Pods": "16/16", "Restarts": "1/3",
				"Waiting For": "", "Age": "3h", "Started": "120m", "Duration": "30m", "Updated": "", "Hash": "hash",
			},
		},
		"inference set that waits": {
			obj: &grove.PodCliqueSet{
				ObjectMeta: metav1.ObjectMeta{Name: "serve", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
				Spec:       grove.PodCliqueSetSpec{Replicas: 2, WorkloadType: grove.WorkloadTypeInference},
				Status: grove.PodCliqueSetStatus{
					Phase: grove.PodCliqueSetPending, Pods: 24, UpdatedReplicas: 1,
					ReplicaStatuses: []grove.PodCliqueSetReplicaStatus{
						{Index: 0},
						{Index: 1, WaitingFor: &grove.WaitingFor{Clique: "router", Status: "Ready", Have: 1, Want: 3}},
						{Index: 2, WaitingFor: &grove.WaitingFor{Clique: "worker", Status: "Ready"}},
					},
				},
			},
			want: map[string]any{
				"Name": "serve", "Type": "Inference", "Phase": "Pending", "Replicas": "0/2", "Pods": "0/24", "Restarts": "",
				"Waiting For": "router Ready (1/3)", "Age": "60m", "Started": "<none>", "Duration": "<none>", "Updated": "1/2", "Hash": "",
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
	list := &grove.PodCliqueSetList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"}, Items: make([]grove.PodCliqueSet, 2)}
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

func TestPhaseColumn(t *testing.T) {
	with := func(phase grove.PodCliqueSetPhase, conditions ...metav1.Condition) *grove.PodCliqueSet {
		return &grove.PodCliqueSet{Status: grove.PodCliqueSetStatus{Phase: phase, Conditions: conditions}}
	}
	failing := metav1.Condition{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue, Reason: "MaxRestartsExceeded"}
	deleted := with(grove.PodCliqueSetFailed, failing)
	deleted.DeletionTimestamp = ptr.To(metav1.Unix(1700000000, 0))
	for name, tc := range map[string]struct {
		pcs  *grove.PodCliqueSet
		want string
	}{
		"none yet": {with(""), "<none>"},
		"running":  {with(grove.PodCliqueSetRunning), "Running"},
		"failing":  {with(grove.PodCliqueSetRunning, failing), "Failing"},
		"failed":   {with(grove.PodCliqueSetFailed, failing), "Failed"},
		"deleted":  {deleted, "Terminating"},
	} {
		if got := phase(tc.pcs); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// inOrder is a set whose clique trainer starts after init, which has started.
func inOrder(pcs *grove.PodCliqueSet, open ...string) *grove.PodCliqueSet {
	pcs.Spec.StartupPolicy = &grove.StartupPolicy{StartupPolicyOrder: grove.StartupPolicyInOrder}
	pcs.Spec.Template.Cliques = []grove.PodCliqueTemplateSpec{{Name: "init"}, {Name: "trainer"}}
	pcs.Status.ReplicaStatuses[0].OpenStages = append([]string{"init"}, open...)
	return pcs
}

func TestWaitingForColumn(t *testing.T) {
	waits := func(waiting grove.WaitingFor) *grove.PodCliqueSet {
		return &grove.PodCliqueSet{Status: grove.PodCliqueSetStatus{ReplicaStatuses: []grove.PodCliqueSetReplicaStatus{{WaitingFor: &waiting}}}}
	}
	failed := waits(grove.WaitingFor{Status: "Ready"})
	failed.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue, Reason: "MaxRestartsExceeded"}}
	recovered := waits(grove.WaitingFor{Status: "Ready"})
	recovered.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionFalse, Reason: "Other"}}
	for name, tc := range map[string]struct {
		pcs  *grove.PodCliqueSet
		want string
	}{
		"nothing":           {&grove.PodCliqueSet{}, ""},
		"a stage":           {inOrder(waits(grove.WaitingFor{Clique: "init", Status: "Succeeded", Have: 0, Want: 1})), "trainer: init Succeeded (0/1)"},
		"the last stage":    {inOrder(waits(grove.WaitingFor{Clique: "trainer", Status: "Ready", Have: 0, Want: 1}), "trainer"), "trainer Ready (0/1)"},
		"a stage's gang":    {inOrder(waits(grove.WaitingFor{Status: "NotEnoughResources", Message: "no GPU"})), "NotEnoughResources: no GPU"},
		"a clique":          {waits(grove.WaitingFor{Clique: "init", Status: "Succeeded", Have: 0, Want: 1}), "init Succeeded (0/1)"},
		"no clique":         {waits(grove.WaitingFor{Status: "Scheduled", Have: 8, Want: 24}), "Scheduled (8/24)"},
		"a message":         {waits(grove.WaitingFor{Clique: "init", Status: "NotEnoughResources", Message: "8 of 24 nvidia.com/gpu"}), "NotEnoughResources: 8 of 24 nvidia.com/gpu"},
		"why it failed":     {failed, "MaxRestartsExceeded"},
		"a False condition": {recovered, "Ready (0/0)"},
	} {
		if got := waitingFor(tc.pcs); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestRestartsColumn(t *testing.T) {
	for name, tc := range map[string]struct {
		spec grove.PodCliqueSetSpec
		want string
	}{
		"inference":       {grove.PodCliqueSetSpec{WorkloadType: grove.WorkloadTypeInference}, ""},
		"no trainingSpec": {grove.PodCliqueSetSpec{WorkloadType: grove.WorkloadTypeTraining}, "2/0"},
		"no maxRestarts":  {grove.PodCliqueSetSpec{WorkloadType: grove.WorkloadTypeTraining, TrainingSpec: &grove.TrainingSpec{}}, "2/0"},
		"maxRestarts":     {grove.PodCliqueSetSpec{WorkloadType: grove.WorkloadTypeTraining, TrainingSpec: &grove.TrainingSpec{MaxRestarts: ptr.To[int32](3)}}, "2/3"},
	} {
		pcs := &grove.PodCliqueSet{Spec: tc.spec, Status: grove.PodCliqueSetStatus{RestartCount: 2}}
		if got := restarts(pcs); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
