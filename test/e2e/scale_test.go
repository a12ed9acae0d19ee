package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// A training set of 1000 pods runs to its end, with about one write per pod. Writes are
// counted by the API server; those of the scheduler and of the nodes are not the
// controllers' and are left out by resource and subresource.
func TestAThousandPodsCostOneWriteEach(t *testing.T) {
	const pods = 1000
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	waitUntilAlone(ns)
	before := countWrites(t)
	began := time.Now()
	ns.Apply(strings.Replace(training("big", 1, pods, "1s"), "image: example.com/trainer", "image: example.com/trainer, resources: {requests: {cpu: 10m}}", 1))
	ns.WaitForPhase("big", grovev1alpha1.PodCliqueSetSucceeded, 8*time.Minute)
	took := time.Since(began)
	written, total := writesSince(t, before)
	creates, deletes := written["POST pods"], written["DELETE pods"]
	t.Logf("%d pods succeeded after %s; %.3f writes per pod by the controllers: %v", pods, took.Round(time.Second), total/pods, written)
	if creates != pods {
		t.Errorf("%.0f pods were created", creates)
	}
	if deletes != 0 {
		t.Errorf("%.0f pods were deleted", deletes)
	}
	if total/pods > 1.1 {
		t.Errorf("the controllers write %.3f times per pod, at most 1.1 are allowed", total/pods)
	}
}

// waitUntilAlone waits until what earlier tests left is deleted: the controllers write
// then, too.
func waitUntilAlone(ns *framework.Namespace) {
	ns.Eventually(2*time.Minute, func(ctx context.Context) error {
		namespaces, err := cluster.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, namespace := range namespaces.Items {
			if strings.HasPrefix(namespace.Name, "test-") && namespace.Name != ns.Name {
				return fmt.Errorf("namespace %s is still there", namespace.Name)
			}
		}
		return nil
	})
}

// A restart deletes each pod once and creates each once, with a handful of writes beside
// that; when all is over, nothing is written (design section 8).
func TestARestartCostsOneDeleteAndOneCreatePerPod(t *testing.T) {
	const pods = 512
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	ns.Apply(strings.Replace(strings.Replace(training("big", 1, pods, "1h"), "workloadType: Training", "workloadType: Training\n  trainingSpec: {maxRestarts: 1}", 1),
		"image: example.com/trainer", "image: example.com/trainer, resources: {requests: {cpu: 10m}}", 1))
	running := ns.WaitForPods(pods, 5*time.Minute, inAttempt("0"))
	waitUntilAlone(ns)
	quiet(t, ns)

	before := countWrites(t)
	began := time.Now()
	fail(ns, running[pods/2].Name, 1)
	ns.WaitForPods(pods, 5*time.Minute, inAttempt("1"))
	took := time.Since(began)
	quiet(t, ns)

	written, total := writesSince(t, before)
	others := total - written["POST pods"] - written["DELETE pods"]
	t.Logf("%d pods were Ready again %s after the failure; writes: %v", pods, took.Round(time.Second), written)
	if n := written["POST pods"]; n != pods {
		t.Errorf("%.0f pods were created", n)
	}
	// The kubelet of each pod that ran deletes it once more, to say that it has ended.
	const byKubelets = pods - 1
	if n := written["DELETE pods"] - byKubelets; n > pods*1.1 {
		t.Errorf("the controllers deleted pods %.0f times", n)
	}
	if others > pods*0.1 {
		t.Errorf("%.0f other writes", others)
	}
}

// quiet waits until the controllers have written nothing for three seconds, and returns
// the counts.
func quiet(t *testing.T, ns *framework.Namespace) map[string]float64 {
	t.Helper()
	last, since := countWrites(t), time.Now()
	ns.Eventually(time.Minute, func(context.Context) error {
		counts := countWrites(t)
		if !maps.Equal(counts, last) {
			last, since = counts, time.Now()
		}
		if idle := time.Since(since); idle < 3*time.Second {
			return fmt.Errorf("the last write was %s ago", idle.Round(time.Millisecond))
		}
		return nil
	})
	return last
}

// writesSince are the writes since a count, by what they write, and in all.
func writesSince(t *testing.T, before map[string]float64) (written map[string]float64, total float64) {
	t.Helper()
	written = map[string]float64{}
	for what, n := range countWrites(t) {
		if n -= before[what]; n > 0 {
			written[what] = n
			total += n
		}
	}
	return written, total
}

// countWrites counts the writes that only Copse's controllers make, by what they write.
func countWrites(t *testing.T) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, component := range []string{"kube-apiserver", "copse-apiserver"} {
		for what, n := range cluster.Requests(t, component, func(labels map[string]string) bool { return isControllerWrite(component, labels) }) {
			out[what] += n
		}
	}
	return out
}

// isControllerWrite says whether a counted request is of a kind that the controllers
// make: pods themselves, Services and groups in the cluster; everything but the user's
// own writes of sets in ours.
func isControllerWrite(component string, labels map[string]string) bool {
	switch labels["verb"] {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE":
	default:
		return false
	}
	if component == "copse-apiserver" {
		return labels["resource"] != "podcliquesets" || labels["subresource"] == "status"
	}
	switch labels["resource"] {
	case "pods":
		return labels["subresource"] == "" && labels["verb"] != "PATCH"
	case "services":
		return true
	case "podgroups":
		return labels["group"] == "scheduling.k8s.io" && labels["subresource"] == "" && labels["verb"] != "PATCH"
	}
	return false
}
