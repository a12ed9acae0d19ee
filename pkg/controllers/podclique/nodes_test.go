package podclique

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func node(name string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}
}

// outOfService is what somebody puts on a node that is shut down.
var outOfService = corev1.Taint{Key: "node.kubernetes.io/out-of-service", Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}

// unready is a node whose kubelet has not been heard of for a while.
func unready(ago time.Duration) *corev1.Node {
	n := node("gpu-17", unreachable)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
	return n
}

var unreachable = corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}

// terminatingOn is a pod of the clique on a node, whose grace period ended a while ago.
func terminatingOn(node string, ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName, p.Finalizers = node, []string{"x/y"}
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(now.Add(-ago))), ptr.To[int64](30)
	}
}

// A pod is forced when its node is gone, which a live read says, or was declared to be out
// of service: on a node that is merely unreachable it may still run (D19).
func TestPodsOfDeadNodesAreForced(t *testing.T) {
	force := []string{"force Pod " + podName(0)}
	tests := map[string]struct {
		cached, live []client.Object
		ago          time.Duration
		want         []string
		wantErr      string
		requeue      time.Duration
	}{
		"the node is gone":                              {ago: time.Minute, want: force},
		"the node is gone from the cache":               {live: []client.Object{node("gpu-17")}, ago: time.Minute},
		"where it is declared to be out of service":     {live: []client.Object{node("gpu-17", outOfService)}, ago: time.Minute, want: force},
		"the node is out of service":                    {cached: []client.Object{node("gpu-17", unreachable, outOfService)}, ago: time.Minute, want: force},
		"the node is unreachable":                       {cached: []client.Object{node("gpu-17", unreachable)}, ago: time.Minute},
		"the node has not been ready for a long time":   {cached: []client.Object{unready(time.Hour)}, ago: time.Minute},
		"the node is well":                              {cached: []client.Object{node("gpu-17")}, ago: time.Minute},
		"at the end of the grace period":                {want: force, requeue: 30 * time.Second},
		"not within it, and then it is looked at again": {ago: -20 * time.Second, requeue: 20 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects := append([]client.Object{newSet(nil), newClique(allMade), newPod(0, terminatingOn("gpu-17", tc.ago)), newPod(1, nil), newPod(2, nil)}, tc.cached...)
			c := &cluster{t: t, objects: objects, live: append(slices.Clone(objects), tc.live...)}
			reconciler := c.reconciler()
			told := &recorder{cluster: c}
			reconciler.Recorder = told
			result, err := reconciler.Reconcile(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "writes of pods", tc.want, c.podWrites())
			expect(t, "looks again", tc.requeue, result.RequeueAfter)
			forced := slices.ContainsFunc(told.told, func(event string) bool {
				return strings.Contains(event, "llm (llm-0-worker) Warning PodForceDeleted: "+podName(0)+" on node gpu-17, which is ") && strings.HasSuffix(event, ": it is force-deleted")
			})
			expect(t, "the event of it", len(tc.want) > 0, forced)
		})
	}
	t.Run("by flag, a node that has not been ready for so long", func(t *testing.T) {
		const timeout = 10 * time.Minute
		for name, tc := range map[string]struct {
			node    *corev1.Node
			want    []string
			requeue time.Duration
		}{
			"for that long":     {node: unready(10 * time.Minute), want: force},
			"for a while":       {node: unready(9 * time.Minute), requeue: time.Minute},
			"or ready":          {node: node("gpu-17")},
			"or out of service": {node: node("gpu-17", outOfService), want: force},
		} {
			t.Run(name, func(t *testing.T) {
				c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(allMade), newPod(0, terminatingOn("gpu-17", time.Hour)), newPod(1, nil), newPod(2, nil), tc.node}}
				reconciler := c.reconciler()
				reconciler.UnreadyNodeTimeout = timeout
				result, err := reconciler.Reconcile(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				expect(t, "writes of pods", tc.want, c.podWrites())
				expect(t, "looks again", tc.requeue, result.RequeueAfter)
			})
		}
	})
	t.Run("a node that cannot be read is not gone", func(t *testing.T) {
		c := &cluster{
			t: t, objects: []client.Object{newSet(nil), newClique(allMade), newPod(0, terminatingOn("gpu-17", time.Minute))},
			refuseRead: func(obj runtime.Object) error {
				if _, ok := obj.(*corev1.Node); ok {
					return errors.New("boom")
				}
				return nil
			},
		}
		_, err := c.reconciler().Reconcile(t.Context(), request)
		if err == nil || err.Error() != "read node gpu-17: boom" {
			t.Errorf("error %v", err)
		}
		expect(t, "writes", []string(nil), c.writes)
	})
	t.Run("a pod without a node", func(t *testing.T) {
		c := &cluster{t: t, objects: []client.Object{newSet(nil), newClique(allMade), newPod(0, terminatingOn("", time.Minute)), newPod(1, nil), newPod(2, nil)}}
		if _, err := c.reconciler().Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		expect(t, "writes of pods", []string(nil), c.podWrites())
	})
}

func TestWhichNodesMatter(t *testing.T) {
	update := func(before, after *corev1.Node) bool {
		return nodeDied().Update(event.TypedUpdateEvent[*corev1.Node]{ObjectOld: before, ObjectNew: after})
	}
	expect(t, "one that is declared to be out of service", true, update(node("n"), node("n", outOfService)))
	expect(t, "one that was before", false, update(node("n", outOfService), node("n", outOfService, unreachable)))
	expect(t, "one that is in service again", false, update(node("n", outOfService), node("n")))
	expect(t, "one that is unreachable", false, update(node("n"), node("n", unreachable)))
	expect(t, "one that stops being ready", true, update(node("n"), unready(0)))
	expect(t, "one that is not ready still", false, update(unready(0), unready(0)))
	expect(t, "a new one", false, nodeDied().Create(event.TypedCreateEvent[*corev1.Node]{Object: node("n", outOfService)}))
	expect(t, "one that is gone", true, nodeDied().Delete(event.TypedDeleteEvent[*corev1.Node]{Object: node("n")}))
}

func TestTheCliquesOfANodeAreThoseThatWaitForIt(t *testing.T) {
	elsewhere := newPod(1, terminatingOn("other", 0))
	stays := newPod(2, func(p *corev1.Pod) { p.Spec.NodeName = "gpu-17" })
	bare := newPod(3, func(p *corev1.Pod) {
		terminatingOn("gpu-17", 0)(p)
		p.OwnerReferences = nil
	})
	other := podIn(sibling("llm-0-other", nil), 0, terminatingOn("gpu-17", -time.Hour))
	other.Namespace = "another"
	c := &cluster{t: t, objects: []client.Object{newPod(0, terminatingOn("gpu-17", 0)), elsewhere, stays, bare, other}}
	got := c.reconciler().cliquesOfNode(t.Context(), node("gpu-17"))
	slices.SortFunc(got, func(a, b reconcile.Request) int { return len(a.Name) - len(b.Name) })
	expect(t, "requests", []reconcile.Request{
		{NamespacedName: client.ObjectKey{Namespace: "another", Name: "llm-0-other"}}, request,
	}, got)
}
