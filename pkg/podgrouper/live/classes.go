package live

import (
	"context"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
)

// classes are the PriorityClasses in a cache, which answers at once. What it cannot answer
// counts as absent: it is then the next wish that counts, and a change comes with an event.
type classes struct {
	reader client.Reader
}

var _ podgrouper.PriorityClasses = classes{}

// Exists says whether there is a class.
func (c classes) Exists(name string) bool {
	return c.reader.Get(context.Background(), client.ObjectKey{Name: name}, &schedulingv1.PriorityClass{}, client.UnsafeDisableDeepCopy) == nil
}

// GlobalDefault is the class of pods that ask for none. Of several it is the one with the
// least value, as the API server has it.
func (c classes) GlobalDefault() string {
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
