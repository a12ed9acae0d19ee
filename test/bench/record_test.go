package bench

import (
	"context"
	"flag"
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

// A failure within the tolerance is recorded in its clique's status. The
// time is from before the kubelet's write to the arrival of the record at a watcher; pods
// that failed ten seconds before are replaced meanwhile. In turn with it a bare client does the least that any controller has to: it watches, and
// for a pod of its own that fails it writes the status of one object through the
// aggregation layer.
func TestFaultToRecordedFailure(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	ns.Apply(gang("tolerant", *gangSize, 1, 0))
	bare := newBareRecorder(t)
	pods := ns.WaitForPods(*gangSize, 5*time.Minute, framework.IsReady)
	cliques, err := cluster.Copse.GroveV1alpha1().PodCliques(ns.Name).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cliques.Stop()
	var ours, theirs []time.Duration
	for i := range min(*faults, *gangSize) {
		victim := &pods[i]
		ours = append(ours, recorded(t, victim, cliques))
		theirs = append(theirs, bare.recorded(t, i))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	t.Logf("fault to recorded failure, %d faults in a gang of %d: p50 %s, p99 %s; a bare client takes p50 %s, p99 %s: ratio of the p50 %.2f",
		len(ours), *gangSize, milliseconds(ours, 50), milliseconds(ours, 99), milliseconds(theirs, 50), milliseconds(theirs, 99),
		float64(percentile(ours, 50))/float64(percentile(theirs, 50)))
}

func milliseconds(sorted []time.Duration, p int) time.Duration {
	return percentile(sorted, p).Round(time.Millisecond)
}

// recorded is how long it takes from a fault until the status of the pod's clique tells of it.
func recorded(t *testing.T, victim *corev1.Pod, cliques watch.Interface) time.Duration {
	t.Helper()
	began := time.Now()
	if err := kill(t.Context(), victim.Namespace, victim.Name); err != nil {
		t.Fatal(err)
	}
	await(t, cliques, func(clique *grovev1alpha1.PodClique) bool {
		return slices.ContainsFunc(clique.Status.FailedIndexes, func(f grovev1alpha1.FailedIndex) bool { return f.PodUID == victim.UID })
	})
	return time.Since(began)
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
`)
	count := min(*faults, *gangSize)
	client := cluster.Kube.CoreV1().Pods(ns.Name)
	forAll(t, count, func(ctx context.Context, _ int) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "bare-"},
			Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer"}}},
		}
		_, err := client.Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	recorder := &bareRecorder{pods: ns.WaitForPods(count, 5*time.Minute, framework.IsReady)}
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

func (b *bareRecorder) recorded(t *testing.T, i int) time.Duration {
	t.Helper()
	return recorded(t, &b.pods[i], b.cliques)
}
