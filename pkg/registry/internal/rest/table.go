package rest

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
)

// Columns is the table of a kind, as kubectl get shows it.
type Columns[T runtime.Object] struct {
	// Definitions are the columns; those of priority 1 are shown by -o wide alone.
	Definitions []metav1.TableColumnDefinition
	// Cells renders one object, one cell per column.
	Cells func(obj T, now time.Time) []any
	// Clock tells the age of objects.
	Clock clock.PassiveClock
}

var _ rest.TableConvertor = Columns[runtime.Object]{}

// ConvertToTable renders an object or a list of objects.
func (c Columns[T]) ConvertToTable(_ context.Context, object runtime.Object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	now := c.Clock.Now()
	addRow := func(obj runtime.Object) error {
		typed, ok := obj.(T)
		if !ok {
			return fmt.Errorf("cannot show %T as a row of this table", obj)
		}
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  c.Cells(typed, now),
			Object: runtime.RawExtension{Object: obj},
		})
		return nil
	}
	if meta.IsListType(object) {
		if err := meta.EachListItem(object, addRow); err != nil {
			return nil, err
		}
	} else if err := addRow(object); err != nil {
		return nil, err
	}
	if list, err := meta.ListAccessor(object); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
	} else if single, err := meta.CommonAccessor(object); err == nil {
		table.ResourceVersion = single.GetResourceVersion()
	}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = c.Definitions
	}
	return table, nil
}

// NameColumn is the first column of every table.
func NameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: "name of the object"}
}

// AgeColumn is the last column of every table.
func AgeColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "time since the object was created"}
}

// Age renders how long ago an object was created.
func Age(obj metav1.Object, now time.Time) string {
	created := obj.GetCreationTimestamp()
	if created.IsZero() {
		return "<unknown>"
	}
	return Since(created.Time, now)
}

// Since renders the time between two moments.
func Since(start, end time.Time) string {
	return duration.HumanDuration(end.Sub(start))
}
