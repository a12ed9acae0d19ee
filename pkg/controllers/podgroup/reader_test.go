package podgroup

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// counted reads objects that are always there.
type counted struct {
	client.Reader
	reads     int
	whileRead func()
}

func (c *counted) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	c.reads++
	if c.whileRead != nil {
		c.whileRead()
	}
	return nil
}

// An owner is read once for many passes, unless it has changed: also while it was read, for
// nobody tells of that change again.
func TestAnOwnerIsKeptUntilItChanges(t *testing.T) {
	live := &counted{}
	reader := newOwnerReader(live, nil, clocktesting.NewFakePassiveClock(start))
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gang"}
	forget := func() { reader.forget(kind.GroupKind(), "ns", "bert") }
	read := func(want int) {
		t.Helper()
		owner := &unstructured.Unstructured{}
		owner.SetGroupVersionKind(kind)
		if err := reader.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "bert"}, owner); err != nil {
			t.Fatal(err)
		}
		if live.reads != want {
			t.Errorf("%d reads, want %d", live.reads, want)
		}
	}
	read(1)
	read(1)
	forget()
	live.whileRead = forget
	read(2)
	live.whileRead = nil
	read(3)
	read(3)
}
