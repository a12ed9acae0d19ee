package podgroup

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/copse-dev/copse/pkg/podgrouper"
)

// Groups that are handed over before the controller has started are not lost.
func TestGroupQueue(t *testing.T) {
	q := newGroupQueue()
	q.add(group(), types.NamespacedName{Namespace: "ns"})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := q.source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if queue.Len() != 1 {
		t.Errorf("%d groups were handed over before the start", queue.Len())
	}
	q.add(types.NamespacedName{Namespace: "ns", Name: "later"})
	if queue.Len() != 2 {
		t.Errorf("%d groups are queued", queue.Len())
	}
}

func TestNoted(t *testing.T) {
	n := newNoted()
	one, two := podgrouper.Note{Reason: "One"}, podgrouper.Note{Reason: "Two"}
	expect(t, "at first", []podgrouper.Note{one}, n.fresh(group(), []podgrouper.Note{one}))
	expect(t, "another", []podgrouper.Note{two}, n.fresh(group(), []podgrouper.Note{one, two}))
	n.fresh(group(), nil)
	expect(t, "one that was away", []podgrouper.Note{one}, n.fresh(group(), []podgrouper.Note{one}))
	if !n.first("a") || n.first("a") || !n.first("b") {
		t.Error("a pod is told of once")
	}
}

// A pod that turns out to be in another group leaves the one before.
func TestALoosePodIsInOneGroup(t *testing.T) {
	l, other := newLoosePods(), types.NamespacedName{Namespace: "ns", Name: "other"}
	l.put("pod", group())
	expect(t, "was in", []types.NamespacedName{group()}, l.put("pod", other))
	if is, known := l.in("pod", group(), true); is || !known {
		t.Errorf("in the first group %v, known %v", is, known)
	}
	expect(t, "was in", []types.NamespacedName{other}, l.forget("pod"))
	if len(l.groupOf)+len(l.members)+len(l.awaited) > 0 {
		t.Errorf("kept %v", l.members)
	}
}
