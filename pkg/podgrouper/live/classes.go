package live

import (
	"context"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
)

// Classes are the PriorityClasses in a cache, which answers at once. What it cannot answer
// counts as absent: it is then the next wish that counts, and a change comes with an event.
type Classes struct {
	reader client.Reader
}

var _ podgrouper.PriorityClasses = Classes{}

// Exists says whether there is a class.
func (c Classes) Exists(name string) bool {
	return c.reader.Get(context.Background(), client.ObjectKey{Name: name}, &schedulingv1.PriorityClass{}, client.UnsafeDisableDeepCopy) == nil
}

// Value is that of a class; false when there is no such class.
func (c Classes) Value(name string) (int32, bool) {
	class := &schedulingv1.PriorityClass{}
	if name == "" || c.reader.Get(context.Background(), client.ObjectKey{Name: name}, class, client.UnsafeDisableDeepCopy) != nil {
		return 0, false
	}
	return class.Value, true
}

// GlobalDefault is the class of pods that ask for none. Of several it is the one with the
// least value, as the API server has it.
func (c Classes) GlobalDefault() string {
	list := &schedulingv1.PriorityClassList{}
	if err := c.reader.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
		return ""
	}
	var found *schedulingv1.PriorityClass
	for i := range list.Items {
		if class := &list.Items[i]; class.GlobalDefault && (found == nil || class.Value < found.Value) {
			found = class
		}
	}
	if found == nil {
		return ""
	}
	return found.Name
}
