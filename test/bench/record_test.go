package bench

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

var faults = flag.Int("bench.faults", 200, "single faults, each within the tolerance of the gang")

// quietFaults is how many faults come before the first of them is replaced, ten seconds
// after it (D10): each is followed by one of the bare client's. Between groups of that many
// the gang is whole again and idle.
const quietFaults = 18

// faultEvery keeps faults single: what follows one, like the endpoints of its Service, is
// over before the next.
const faultEvery = 250 * time.Millisecond

// A failure within the tolerance is recorded in its clique's status. The time is told from
// before the kubelet's write, and from its answer, to the arrival of the record at a
// watcher. In turn with it a bare client does the least that any controller has to: it
// watches, and for a pod of its own that fails it writes the status of one object through
// the aggregation layer. Its pods are as many, and have a headless Service as well: of each
// failure kube-controller-manager tells all endpoints of a Service anew, beside whoever else
// works then.
func TestFaultToRecordedFailure(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	ns.Apply(gang("tolerant", *gangSize, 1, 0))
	bare := newBareRecorder(t)
	cliques, err := cluster.Copse.GroveV1alpha1().PodCliques(ns.Name).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cliques.Stop()
	var pods []corev1.Pod
	var ours, theirs latencies
	next := time.NewTicker(faultEvery)
	defer next.Stop()
	for i := range min(*faults, *gangSize) {
		if i%quietFaults == 0 {
			pods = whole(ns)
		}
		<-next.C
		ours.measure(t, &pods[i], cliques)
		<-next.C
		theirs.measure(t, &bare.pods[i], bare.cliques)
	}
	t.Logf("fault to recorded failure, %d faults in a gang of %d: %s; a bare client: %s", min(*faults, *gangSize), *gangSize, &ours, &theirs)
}

// whole waits until the gang is whole and nothing is left to write.
func whole(ns *framework.Namespace) []corev1.Pod {
	pods := ns.WaitForPods(*gangSize, 5*time.Minute, framework.IsReady)
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		clique, err := cluster.Copse.GroveV1alpha1().PodCliques(ns.Name).Get(ctx, "tolerant-0-worker", metav1.GetOptions{})
		if err == nil && int(clique.Status.ReadyReplicas) != *gangSize {
			err = fmt.Errorf("%d pods are counted as ready", clique.Status.ReadyReplicas)
		}
		return err
	})
	return pods
}

// latencies are how long it took from faults to their record, from before the kubelet's
// write and from its answer.
type latencies struct{ before, after []time.Duration }

func (l *latencies) String() string {
	slices.Sort(l.before)
	slices.Sort(l.after)
	return fmt.Sprintf("p50 %s, p99 %s (from the answer to the kubelet: p50 %s, p99 %s)",
		milliseconds(l.before, 50), milliseconds(l.before, 99), milliseconds(l.after, 50), milliseconds(l.after, 99))
}

// measure ends a pod and waits until the status of its clique tells of it.
func (l *latencies) measure(t *testing.T, victim *corev1.Pod, cliques watch.Interface) {
	t.Helper()
	began := time.Now()
	if err := kill(t.Context(), victim.Namespace, victim.Name); err != nil {
		t.Fatal(err)
	}
	answered := time.Now()
	await(t, cliques, func(clique *grovev1alpha1.PodClique) bool {
		return slices.ContainsFunc(clique.Status.FailedIndexes, func(f grovev1alpha1.FailedIndex) bool { return f.PodUID == victim.UID })
	})
	recorded := time.Now()
	l.before, l.after = append(l.before, recorded.Sub(began)), append(l.after, recorded.Sub(answered))
}

func milliseconds(sorted []time.Duration, p int) time.Duration {
	return percentile(sorted, p).Round(time.Millisecond)
}

// bareRecorder writes each failure of its pods into the status of a clique that belongs to
// no set, so that no controller does anything about it.
type bareRecorder struct {
	pods    []corev1.Pod
	cliques watch.Interface
}

func newBareRecorder(t *testing.T) *bareRecorder {
	t.Helper()
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	ns.Apply(`
apiVersion: grove.io/v1alpha1
kind: PodClique
metadata: {name: bare}
spec:
  roleName: bare
  replicas: 1
  podSpec:
    containers: [{name: main, image: example.com/trainer}]
---
apiVersion: v1
kind: Service
metadata: {name: bare}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: bare}}
`)
	client := cluster.Kube.CoreV1().Pods(ns.Name)
	forAll(t, *gangSize, func(ctx context.Context, _ int) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "bare-", Labels: map[string]string{"app": "bare"}},
			Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer"}}},
		}
		_, err := client.Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	recorder := &bareRecorder{pods: ns.WaitForPods(*gangSize, 5*time.Minute, framework.IsReady)}
	var err error
	if recorder.cliques, err = cluster.Copse.GroveV1alpha1().PodCliques(ns.Name).Watch(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(recorder.cliques.Stop)
	failures, err := client.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clique, err := cluster.Copse.GroveV1alpha1().PodCliques(ns.Name).Get(t.Context(), "bare", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	ctx := context.WithoutCancel(t.Context())
	go func() { written <- recordFailures(ctx, clique, failures) }()
	t.Cleanup(func() {
		failures.Stop()
		if err := <-written; err != nil {
			t.Error(err)
		}
	})
	return recorder
}

// recordFailures writes each failure that a watch shows, until the watch is stopped.
func recordFailures(ctx context.Context, clique *grovev1alpha1.PodClique, failures watch.Interface) error {
	for event := range failures.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type != watch.Modified || pod.Status.Phase != corev1.PodFailed {
			continue
		}
		clique.Status.FailedIndexes = []grovev1alpha1.FailedIndex{{Count: 1, LastTime: metav1.Now(), PodUID: pod.UID}}
		var err error
		if clique, err = cluster.Copse.GroveV1alpha1().PodCliques(clique.Namespace).UpdateStatus(ctx, clique, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
