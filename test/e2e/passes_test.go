package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/copse-dev/copse/test/framework"
)

// What the news of one pod costs the controller manager, in passes and in allocations,
// does not depend on how many replicas the pod's set has: its own clique is looked at,
// and nothing is read of the others.
func TestAPodEventCostsTheSameHoweverManyReplicas(t *testing.T) {
	const few, many = 1, 40
	var one, all podEventCost
	t.Run("few", func(t *testing.T) { one = costOfPodEvents(t, few) })
	t.Run("many", func(t *testing.T) { all = costOfPodEvents(t, many) })
	if t.Failed() {
		return
	}
	t.Logf("per pod event with %d replica: %s; with %d: %s", few, one, many, all)
	if all.passes > one.passes*1.1 {
		t.Errorf("%.2f passes with %d replica, %.2f with %d", one.passes, few, all.passes, many)
	}
	if all.allocations > one.allocations*1.25 {
		t.Errorf("%.0f allocations with %d replica, %.0f with %d", one.allocations, few, all.allocations, many)
	}
}

// podEventCost is what an event costs the controller manager.
type podEventCost struct{ passes, allocations float64 }

func (c podEventCost) String() string {
	return fmt.Sprintf("%.2f passes, %.0f allocations", c.passes, c.allocations)
}

// costOfPodEvents changes pods of one replica that run, so that nothing has to be done.
func costOfPodEvents(t *testing.T, replicas int) podEventCost {
	t.Helper()
	const events = 200
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	waitUntilAlone(ns)
	ns.Apply(fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: news}
spec:
  replicas: %d
  template:
    cliques:
      - name: worker
        spec:
          replicas: 2
          podSpec:
            containers: [{name: main, image: example.com/server, resources: {requests: {cpu: 10m}}}]
`, replicas))
	ns.WaitForPods(2*replicas, 2*time.Minute, framework.IsReady)
	var before podEventCost
	ns.Eventually(time.Minute, func(context.Context) error {
		last := before
		if before = spentByManager(t); before.passes != last.passes {
			return fmt.Errorf("the controllers are not idle: %.0f passes", before.passes-last.passes)
		}
		return nil
	})
	pods, err := cluster.Kube.CoreV1().Pods(ns.Name).List(t.Context(), metav1.ListOptions{LabelSelector: "grove.io/podclique=news-0-worker"})
	if err != nil || len(pods.Items) != 2 {
		t.Fatalf("%d pods of the clique: %v", len(pods.Items), err)
	}
	for i := range events {
		pod := &pods.Items[i%len(pods.Items)]
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/news":"%d"}}}`, i)
		if _, err := cluster.Kube.CoreV1().Pods(ns.Name).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var after podEventCost
	ns.Eventually(time.Minute, func(context.Context) error {
		// A pass that has not begun yet can take several events.
		if after = spentByManager(t); after.passes-before.passes < events*0.8 {
			return fmt.Errorf("%.0f passes for %d events", after.passes-before.passes, events)
		}
		return nil
	})
	return podEventCost{(after.passes - before.passes) / events, (after.allocations - before.allocations) / events}
}

// spentByManager is what the controller manager has spent since it started.
func spentByManager(t *testing.T) podEventCost {
	t.Helper()
	families := cluster.Metrics(t, "copse-controller-manager")
	return podEventCost{passes: sum(families["controller_runtime_reconcile_total"]), allocations: sum(families["go_memstats_mallocs_total"])}
}

func sum(family *dto.MetricFamily) float64 {
	var total float64
	for _, metric := range family.GetMetric() {
		total += metric.GetCounter().GetValue()
	}
	return total
}
