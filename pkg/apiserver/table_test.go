package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// asTable is what kubectl get asks for.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

func names(columns []metav1.TableColumnDefinition, priority int32) []string {
	var names []string
	for _, column := range columns {
		if column.Priority == priority {
			names = append(names, column.Name)
		}
	}
	return names
}

// What people see of each kind, and what they see by -o wide beside that.
func TestEveryKindHasATable(t *testing.T) {
	s := serve(t, nil)
	for path, want := range map[string][2][]string{
		"grove.io/v1alpha1/podcliquesets": {
			{"Name", "Type", "Phase", "Replicas", "Pods", "Updated", "Restarts", "Waiting For", "Age"}, {"Started", "Duration", "Hash"},
		},
		"grove.io/v1alpha1/podcliques": {
			{"Name", "Min Available", "Replicas", "Ready", "Running", "Scheduled", "Succeeded", "Waiting For", "Age"}, {"Breached", "Attempt", "Gated", "Updated", "Message"},
		},
		"grove.io/v1alpha1/podcliquescalinggroups": {
			{"Name", "Min Available", "Replicas", "Available", "Scheduled", "Waiting For", "Age"}, {"Updated", "Breached", "Attempt", "Message"},
		},
		"grove.io/v1alpha1/startgates":              {{"Name", "Open", "Cliques", "Expired", "Age"}, nil},
		"grove.io/v1alpha1/clustertopologybindings": {{"Name", "Levels", "Age"}, {"Drift"}},
		"scheduler.grove.io/v1alpha1/podgangs":      {{"Name", "Phase", "Pods", "Scheduled", "Reason", "Age"}, {"Attempt", "Message"}},
		"scheduler.grove.io/v1alpha1/podgroups":     {{"Name", "Phase", "Min Member", "Running", "Pending", "Queue", "Reason", "Age"}, {"Priority"}},
	} {
		var table metav1.Table
		getTable(t, s, "/apis/"+path, &table)
		if diff := cmp.Diff(want, [2][]string{names(table.ColumnDefinitions, 0), names(table.ColumnDefinitions, 1)}); diff != "" {
			t.Errorf("%s: columns (-want +got):\n%s", path, diff)
		}
		for _, column := range table.ColumnDefinitions {
			if column.Description == "" || !slices.Contains([]string{"string", "integer"}, column.Type) {
				t.Errorf("%s: column %s has type %q and description %q", path, column.Name, column.Type, column.Description)
			}
		}
	}
}

func getTable(t *testing.T, s served, path string, table *metav1.Table, params ...string) {
	t.Helper()
	request := client(s).Get().AbsPath(path).SetHeader("Accept", asTable)
	for i := 0; i+1 < len(params); i += 2 {
		request = request.Param(params[i], params[i+1])
	}
	raw, err := request.DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	decode(t, raw, table)
	if table.Kind != "Table" {
		t.Fatalf("the answer is a %s: %s", table.Kind, raw)
	}
}

func makeSets(t *testing.T, s served, count int) {
	t.Helper()
	for i := range count {
		pcs := llm()
		pcs.Name = fmt.Sprintf("set-%d", i)
		if _, err := s.copse.GroveV1alpha1().PodCliqueSets(namespace).Create(t.Context(), pcs, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A long list comes in pages, each of which is a table that says where the next begins.
func TestTablesComeInPages(t *testing.T) {
	s := serve(t, nil)
	makeSets(t, s, 5)
	const path = "/apis/grove.io/v1alpha1/namespaces/" + namespace + "/podcliquesets"
	var got []string
	var remaining []int64
	next := ""
	for range 5 {
		var table metav1.Table
		getTable(t, s, path, &table, "limit", "2", "continue", next)
		for _, row := range table.Rows {
			got = append(got, row.Cells[0].(string))
			// The client can tell what a row is of without its spec.
			var object metav1.PartialObjectMetadata
			decode(t, row.Object.Raw, &object)
			if object.Kind != "PartialObjectMetadata" || object.Name != row.Cells[0] {
				t.Errorf("the row has %s", row.Object.Raw)
			}
		}
		if table.ResourceVersion == "" || len(table.ColumnDefinitions) == 0 {
			t.Errorf("a page has resourceVersion %q and columns %v", table.ResourceVersion, table.ColumnDefinitions)
		}
		if table.RemainingItemCount != nil {
			remaining = append(remaining, *table.RemainingItemCount)
		}
		if next = table.Continue; next == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"set-0", "set-1", "set-2", "set-3", "set-4"}, got); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{3, 1}, remaining); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
}

// A watch sends a table for each event, with the columns in the first alone; and a set
// that leaves what is selected is shown to go.
func TestAWatchOfAPhaseIsTables(t *testing.T) {
	s := serve(t, nil)
	makeSets(t, s, 1)
	setPhase := func(phase grovev1alpha1.PodCliqueSetPhase) {
		patch := fmt.Sprintf(`{"status":{"phase":%q,"startTime":"2026-01-01T00:00:00Z"}}`, phase)
		if _, err := s.copse.GroveV1alpha1().PodCliqueSets(namespace).Patch(t.Context(), "set-0", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := client(s).Get().AbsPath("/apis/grove.io/v1alpha1/namespaces/"+namespace+"/podcliquesets").SetHeader("Accept", asTable).
		Param("watch", "true").Param("fieldSelector", "status.phase=Running,spec.workloadType=Inference").Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	events := json.NewDecoder(stream)
	setPhase(grovev1alpha1.PodCliqueSetRunning)
	for i, want := range []string{"ADDED", "MODIFIED", "DELETED"} {
		switch want {
		case "MODIFIED":
			if _, err := s.copse.GroveV1alpha1().PodCliqueSets(namespace).Patch(t.Context(), "set-0", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		case "DELETED":
			setPhase(grovev1alpha1.PodCliqueSetPending)
		}
		var event struct {
			Type   string
			Object metav1.Table
		}
		if err := events.Decode(&event); err != nil {
			t.Fatal(err)
		}
		if event.Type != want || event.Object.Kind != "Table" || len(event.Object.Rows) != 1 || event.Object.Rows[0].Cells[0] != "set-0" {
			t.Fatalf("event %d is %+v, want %s", i, event, want)
		}
		if hasColumns := len(event.Object.ColumnDefinitions) > 0; hasColumns != (i == 0) {
			t.Errorf("event %d has columns: %t", i, hasColumns)
		}
	}
}
