package rest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func columnsOfGates(now time.Time) Columns[*grove.StartGate] {
	return Columns[*grove.StartGate]{
		Clock:       testclock.NewFakePassiveClock(now),
		Definitions: []metav1.TableColumnDefinition{NameColumn(), AgeColumn()},
		Cells:       func(gate *grove.StartGate, now time.Time) []any { return []any{gate.Name, Age(gate, now)} },
	}
}

func TestTableOfAnObject(t *testing.T) {
	now := time.Unix(1700000000, 0)
	gate := &grove.StartGate{ObjectMeta: metav1.ObjectMeta{
		Name: "llm-0", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(now.Add(-90 * time.Second)),
	}}
	table, err := columnsOfGates(now).ConvertToTable(context.Background(), gate, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &metav1.Table{
		ListMeta:          metav1.ListMeta{ResourceVersion: "7"},
		ColumnDefinitions: []metav1.TableColumnDefinition{NameColumn(), AgeColumn()},
		Rows:              []metav1.TableRow{{Cells: []any{"llm-0", "90s"}, Object: runtime.RawExtension{Object: gate}}},
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTableOfAList(t *testing.T) {
	list := &grove.StartGateList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more", RemainingItemCount: ptr.To[int64](5)},
		Items:    []grove.StartGate{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}},
	}
	table, err := columnsOfGates(time.Now()).ConvertToTable(context.Background(), list, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list.ListMeta, table.ListMeta); diff != "" {
		t.Errorf("metadata of the list (-want +got):\n%s", diff)
	}
	var cells [][]any
	for i, row := range table.Rows {
		cells = append(cells, row.Cells)
		if row.Object.Object != runtime.Object(&list.Items[i]) {
			t.Errorf("row %d holds %v", i, row.Object.Object)
		}
	}
	if diff := cmp.Diff([][]any{{"a", "<unknown>"}, {"b", "<unknown>"}}, cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func TestTableOfAnEmptyList(t *testing.T) {
	table, err := columnsOfGates(time.Now()).ConvertToTable(context.Background(), &grove.StartGateList{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 0 || len(table.ColumnDefinitions) != 2 {
		t.Errorf("got %d rows and %d columns", len(table.Rows), len(table.ColumnDefinitions))
	}
}

func TestTableWithoutHeaders(t *testing.T) {
	columns := columnsOfGates(time.Now())
	for name, tc := range map[string]struct {
		options runtime.Object
		want    int
	}{
		"no options": {nil, 2},
		"headers":    {&metav1.TableOptions{}, 2},
		"no headers": {&metav1.TableOptions{NoHeaders: true}, 0},
	} {
		table, err := columns.ConvertToTable(context.Background(), &grove.StartGate{}, tc.options)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(table.ColumnDefinitions); got != tc.want {
			t.Errorf("%s: %d columns, want %d", name, got, tc.want)
		}
		if len(table.Rows) != 1 || len(table.Rows[0].Cells) != 2 {
			t.Errorf("%s: rows %v", name, table.Rows)
		}
	}
}

func TestTableOfAnotherKindIsAnError(t *testing.T) {
	for _, obj := range []runtime.Object{
		&grove.PodClique{},
		&grove.PodCliqueList{Items: make([]grove.PodClique, 1)},
		&metav1.Status{},
	} {
		if table, err := columnsOfGates(time.Now()).ConvertToTable(context.Background(), obj, nil); err == nil {
			t.Errorf("%T was shown as %v", obj, table)
		}
	}
}

func TestConditionCells(t *testing.T) {
	conditions := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Because", Message: "of that"}}
	for name, cell := range map[string]struct {
		render func([]metav1.Condition, string) string
		want   string
	}{
		"status":  {ConditionStatus, "True"},
		"reason":  {ConditionReason, "Because"},
		"message": {ConditionMessage, "of that"},
	} {
		if got := cell.render(conditions, "Ready"); got != cell.want {
			t.Errorf("%s is %q, want %q", name, got, cell.want)
		}
		if got := cell.render(conditions, "Other"); got != "" {
			t.Errorf("%s of a condition that is not there is %q", name, got)
		}
		if got := cell.render(nil, "Ready"); got != "" {
			t.Errorf("%s of no conditions is %q", name, got)
		}
	}
}

func TestAddFinalizer(t *testing.T) {
	for name, tc := range map[string]struct{ before, want []string }{
		"none":        {nil, []string{"ours"}},
		"others":      {[]string{"theirs"}, []string{"theirs", "ours"}},
		"there":       {[]string{"ours"}, []string{"ours"}},
		"there first": {[]string{"ours", "theirs"}, []string{"ours", "theirs"}},
	} {
		obj := &grove.StartGate{ObjectMeta: metav1.ObjectMeta{Finalizers: tc.before}}
		AddFinalizer(obj, "ours")
		if diff := cmp.Diff(tc.want, obj.Finalizers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
