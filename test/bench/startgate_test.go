package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/copse-dev/copse/cmd/start-gate/app"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/test/framework"
)

var (
	waiters  = flag.Int("bench.waiters", 1000, "pods that wait at a gate that is opened by hand")
	barriers = flag.Int("bench.barrier", 512, "pods of the gang that starts together")
)

// crowd are the waiters of many pods, in one process, each with a connection and a token
// of its own.
type crowd struct {
	account string
	size    int
	waiting atomic.Int64
	ends    chan end
}

type end struct {
	code int
	at   time.Time
}

func newCrowd(t *testing.T, ns *framework.Namespace, size int) *crowd {
	t.Helper()
	address, err := url.Parse(cluster.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", address.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", address.Port())
	return &crowd{account: serviceAccount(t, ns), size: size, ends: make(chan end, size)}
}

// run runs one with the arguments of its container.
func (c *crowd) run(ctx context.Context, arguments ...string) {
	arguments = append(slices.Clone(arguments), "--file="+filepath.Join(c.account, "started"), "--service-account="+c.account)
	go func() {
		code := app.Main(ctx, arguments, io.Discard, &reader{waiting: &c.waiting})
		c.ends <- end{code: code, at: time.Now()}
	}()
}

// reader reads in the log of a waiter that it has seen its gate, and that it is shut.
type reader struct {
	waiting *atomic.Int64
	seen    bool
}

func (r *reader) Write(line []byte) (int, error) {
	if !r.seen && bytes.Contains(line, []byte("entry of attempt 0, not open")) {
		r.seen = true
		r.waiting.Add(1)
	}
	return len(line), nil
}

// wait waits until so many wait.
func (c *crowd) wait(ns *framework.Namespace, want int) {
	ns.Eventually(2*time.Minute, func(context.Context) error {
		if got := c.waiting.Load(); got != int64(want) {
			return fmt.Errorf("%d of %d wait", got, want)
		}
		return nil
	})
}

// released is how long after a moment each was released.
func (c *crowd) released(t *testing.T, began time.Time) []time.Duration {
	t.Helper()
	var took []time.Duration
	for range c.size {
		e := <-c.ends
		if e.code != 0 {
			t.Fatalf("a waiter ended with %d", e.code)
		}
		took = append(took, e.at.Sub(began))
	}
	slices.Sort(took)
	return took
}

// Many pods wait at one gate, which opens with one write.
func TestReleaseOfManyWaiters(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the gate is made by hand"))
	crowd := newCrowd(t, ns, *waiters)
	gates := cluster.Copse.GroveV1alpha1().StartGates(ns.Name)
	gate, err := gates.Create(t.Context(), &grovev1alpha1.StartGate{ObjectMeta: metav1.ObjectMeta{Name: "job-0"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gate.Status.Cliques = []grovev1alpha1.StartGateClique{{Name: "job-0-worker"}}
	if gate, err = gates.UpdateStatus(t.Context(), gate, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := serverMemory(t)
	for range *waiters {
		crowd.run(t.Context(), "--namespace="+ns.Name, "--gate=job-0", "--podclique=job-0-worker", "--attempt=0")
	}
	crowd.wait(ns, *waiters)
	during := serverMemory(t)

	gate.Status.Cliques[0].Open = true
	began := time.Now()
	if _, err := gates.UpdateStatus(t.Context(), gate, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	written := time.Since(began)
	took := crowd.released(t, began)
	t.Logf("%d waiters: the write took %s; released after %s at p50, the last after %s; the API server grew by %.1f MB to %.0f MB, %.0f KB for each",
		*waiters, written.Round(time.Millisecond), percentile(took, 50).Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond),
		(during-before)/1e6, during/1e6, (during-before)/1e3/float64(*waiters))
}

// All pods of a gang but one have come to the barrier. When the last comes, the controllers
// open the gate, with one write and without reading or writing a pod.
func TestTheLastPodReleasesTheGang(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	crowd := newCrowd(t, ns, *barriers)
	ns.Apply(barriered(*barriers))
	pods := ns.WaitForPods(*barriers, 5*time.Minute, func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName != "" && (isLast(pod) || isHeld(pod))
	})
	for i := range pods {
		containers := pods[i].Spec.InitContainers
		crowd.run(t.Context(), containers[len(containers)-1].Args...)
	}
	crowd.wait(ns, *barriers)
	last := pods[slices.IndexFunc(pods, func(pod corev1.Pod) bool { return isLast(&pod) })]
	watcher, err := cluster.Kube.CoreV1().Pods(ns.Name).Watch(t.Context(), metav1.SingleObject(metav1.ObjectMeta{Name: last.Name}))
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	settled(t, ns)

	before := requestCounts(t)
	if _, err := cluster.Kube.CoreV1().Pods(ns.Name).Patch(t.Context(), last.Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"kwok.copse.dev/never-starts":null}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, watcher, isHeld)
	took := crowd.released(t, time.Now())
	after := requestCounts(t)
	var made []string
	for what, n := range after {
		if n -= before[what]; n > 0 {
			made = append(made, fmt.Sprintf("%s: %.0f", what, n))
		}
	}
	slices.Sort(made)
	t.Logf("a gang of %d: from the last pod started until released %s at p50, the last after %s; requests: %s", *barriers,
		percentile(took, 50).Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), strings.Join(made, ", "))
	for what, want := range map[string]float64{
		"PUT startgates/status": 1, "PUT configmaps": 1, "LIST pods": 0, "GET pods": 0, "POST pods": 0, "PUT pods": 0, "DELETE pods": 0,
		// The test's own.
		"PATCH pods": 1,
		// The simulated kubelet's, of the last pod.
		"PATCH pods/status": 1, "PUT pods/status": 0,
	} {
		if got := after[what] - before[what]; got != want {
			t.Errorf("%s: %.0f requests, want %.0f", what, got, want)
		}
	}
}

// barriered is a set whose pods wait for each other, one of which does not come.
func barriered(pods int) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: big}
spec:
  replicas: 1
  workloadType: Training
  groupSchedulingConfig: {timeoutAfterSeconds: 3600}
  template:
    cliques:
      - name: last
        annotations: {kwok.copse.dev/never-starts: "true"}
        spec: {replicas: 1, podSpec: {containers: [{name: main, image: example.com/trainer}]}}
      - name: worker
        spec: {replicas: %d, podSpec: {containers: [{name: main, image: example.com/trainer}]}}
`, pods-1)
}

func isLast(pod *corev1.Pod) bool { return pod.Labels[labels.PodClique] == "big-0-last" }

// isHeld says that the pod has come to the barrier.
func isHeld(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.Name == naming.BarrierContainer && status.State.Running != nil
	})
}

// requestCounts counts what may have to do with a release.
func requestCounts(t *testing.T) map[string]float64 {
	t.Helper()
	out := cluster.Requests(t, "kube-apiserver", func(labels map[string]string) bool {
		return labels["resource"] == "pods" || labels["resource"] == "configmaps" && labels["verb"] == "PUT"
	})
	for what, n := range cluster.Requests(t, "copse-apiserver", func(labels map[string]string) bool {
		return labels["verb"] != "WATCH" && labels["resource"] != "" && !strings.HasPrefix(labels["verb"], "LIST")
	}) {
		out[what] += n
	}
	return out
}

// settled waits until nothing is written any more.
func settled(t *testing.T, ns *framework.Namespace) {
	t.Helper()
	last, since := requestCounts(t), time.Now()
	ns.Eventually(time.Minute, func(context.Context) error {
		if now := requestCounts(t); !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if idle := time.Since(since); idle < 3*time.Second {
			return fmt.Errorf("the last request was %s ago", idle.Round(time.Millisecond))
		}
		return nil
	})
}

// serviceAccount returns a folder with what a pod is given of its service account.
func serviceAccount(t *testing.T, ns *framework.Namespace) string {
	t.Helper()
	var token string
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		issued, err := cluster.Kube.CoreV1().ServiceAccounts(ns.Name).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err == nil {
			token = issued.Status.Token
		}
		return err
	})
	authority := cluster.Config.CAData
	if len(authority) == 0 {
		var err error
		if authority, err = os.ReadFile(cluster.Config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"token": []byte(token), "ca.crt": authority} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// serverMemory is what copse-apiserver has in memory, in bytes.
func serverMemory(t *testing.T) float64 {
	t.Helper()
	metrics := cluster.Metrics(t, "copse-apiserver")["process_resident_memory_bytes"].GetMetric()
	if len(metrics) != 1 {
		t.Fatal("the server does not tell its memory")
	}
	return metrics[0].GetGauge().GetValue()
}
