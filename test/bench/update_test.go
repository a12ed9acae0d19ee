package bench

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/test/framework"
)

var copies = flag.Int("bench.copies", 500, "copies of two pods of the scaling group that is updated and scaled")

// wide is an inference set with a scaling group of copies of two pods.
func wide(copies int, image string) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: wide}
spec:
  replicas: 1
  updateStrategy: {maxUnavailable: %d}
  template:
    cliques:
      - name: leader
        spec:
          replicas: 1
          podSpec: &pod
            containers: [{name: main, image: "example.com/%s", resources: {requests: {cpu: 10m}}}]
      - name: worker
        spec:
          replicas: 1
          podSpec: *pod
    podCliqueScalingGroups:
      - {name: model, cliqueNames: [leader, worker], replicas: %d, minAvailable: 1}
`, max(copies/10, 1), image, copies)
}

// An update of all copies, and scaling them from none to all, to half and to none again: how
// long each takes, and what it writes and lists. Requests are counted by the servers, whoever
// makes them.
func TestUpdateAndScaleOfManyCopies(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	ns.Apply(wide(*copies, "server:1"))
	ns.WaitForPods(2**copies, 10*time.Minute, framework.IsReady)

	counted(t, ns, "update", 2**copies, func() {
		ns.Apply(wide(*copies, "server:2"))
		ns.Kubectl("wait", "pcs/wide", "--for=condition=UpdatePending=False", "--timeout=15m")
	})
	for _, size := range []int{0, *copies, *copies / 2, 0} {
		counted(t, ns, fmt.Sprintf("scale to %d", size), 2**copies, func() {
			ns.Kubectl("scale", "pcsg/wide-0-model", fmt.Sprintf("--replicas=%d", size))
			waitForCopies(ns, size)
		})
	}
}

// waitForCopies waits until so many copies are available, and nothing is left of others: a
// PodClique stays until its pods are gone. It lists no pods, which are counted.
func waitForCopies(ns *framework.Namespace, size int) {
	client := cluster.Copse.GroveV1alpha1()
	ns.Eventually(10*time.Minute, func(ctx context.Context) error {
		group, err := client.PodCliqueScalingGroups(ns.Name).Get(ctx, "wide-0-model", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if int(group.Status.AvailableReplicas) != size {
			return fmt.Errorf("%d copies are available", group.Status.AvailableReplicas)
		}
		// What remains after the first one is counted by the server: a whole list, again and
		// again, would be most of what is measured.
		cliques, err := client.PodCliques(ns.Name).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		if count := len(cliques.Items) + int(ptr.Deref(cliques.RemainingItemCount, 0)); count != 2*size {
			return fmt.Errorf("there are %d cliques", count)
		}
		return nil
	})
}

// counted logs what a step costs; per pod, where there are so many.
func counted(t *testing.T, ns *framework.Namespace, what string, pods int, step func()) {
	t.Helper()
	settle(t, ns)
	before, began := writesAndLists(t), time.Now()
	step()
	took := time.Since(began)
	settle(t, ns)
	var text []string
	writes := 0.0
	after := writesAndLists(t)
	for _, key := range slices.Sorted(maps.Keys(after)) {
		n := after[key] - before[key]
		if n <= 0 {
			continue
		}
		if !strings.HasPrefix(key, "LIST") {
			writes += n
		}
		text = append(text, fmt.Sprintf("%s: %.0f", key, n))
	}
	t.Logf("%s: %s, %.2f writes per pod of %d; %s", what, took.Round(100*time.Millisecond), writes/float64(pods), pods, strings.Join(text, ", "))
}

// settle waits until nothing has been written for three seconds.
func settle(t *testing.T, ns *framework.Namespace) {
	t.Helper()
	last, since := writesAndLists(t), time.Now()
	ns.Eventually(5*time.Minute, func(context.Context) error {
		if now := writesAndLists(t); !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if idle := time.Since(since); idle < 3*time.Second {
			return fmt.Errorf("the last write was %s ago", idle.Round(time.Millisecond))
		}
		return nil
	})
}

// writesAndLists are the writes to pods and to Copse's kinds, and the lists of pods.
func writesAndLists(t *testing.T) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, component := range []string{"kube-apiserver", "copse-apiserver"} {
		for what, n := range cluster.Requests(t, component, func(labels map[string]string) bool {
			ours := strings.HasSuffix(labels["group"], "grove.io")
			switch verb := labels["verb"]; {
			case verb == "LIST":
				return labels["resource"] == "pods"
			case verb == "POST" || verb == "PUT" || verb == "DELETE" || verb == "PATCH":
				// The status of pods is the kubelets', their binding the scheduler's.
				return labels["resource"] == "pods" && labels["subresource"] == "" || ours && component == "copse-apiserver"
			}
			return false
		}) {
			out[what] += n
		}
	}
	return out
}
