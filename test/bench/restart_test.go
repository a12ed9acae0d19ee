package bench

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

var (
	gangSize = flag.Int("bench.gang", 512, "pods of the big gang")
	restarts = flag.Int("bench.restarts", 5, "restarts of the big gang")
)

// bareParallel is how many writes the bare client has in flight, as the controller does.
const bareParallel = 32

func gang(name string, pods, minAvailable, maxRestarts int) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: %s}
spec:
  replicas: 1
  workloadType: Training
  trainingSpec: {maxRestarts: %d}
  template:
    cliques:
      - name: worker
        spec:
          replicas: %d
          minAvailable: %d
          podSpec:
            containers: [{name: main, image: example.com/trainer, resources: {requests: {cpu: 10m}}}]
`, name, maxRestarts, pods, minAvailable)
}

// kill ends a pod as its kubelet would, at a moment that is known.
func kill(ctx context.Context, namespace, pod string) error {
	const failed = `{"status":{"phase":"Failed","conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"name":"main","image":"x","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":1,"finishedAt":"%s"}}}]}}`
	_, err := cluster.Kube.CoreV1().Pods(namespace).Patch(ctx, pod, types.StrategicMergePatchType,
		fmt.Appendf(nil, failed, time.Now().UTC().Format(time.RFC3339)), metav1.PatchOptions{}, "status")
	return err
}

// percentile of durations that are sorted.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

func await[T any](t *testing.T, watcher watch.Interface, done func(T) bool) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		select {
		case event, ok := <-watcher.ResultChan():
			if !ok {
				t.Fatal("the watch has ended")
			}
			if obj, is := event.Object.(T); is && done(obj) {
				return
			}
		case <-timeout:
			t.Fatal("not within two minutes")
		}
	}
}

// A restart of a big gang, from the fault to the decision and to the last replacement,
// against a bare client that deletes as many pods and creates them again.
func TestFaultToReplacements(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	ns.Apply(gang("big", *gangSize, *gangSize, 1000))
	var decisions, replacements []time.Duration
	for attempt := range *restarts {
		pods := ns.WaitForPods(*gangSize, 5*time.Minute, func(pod *corev1.Pod) bool {
			return pod.Labels[labels.RestartAttempt] == fmt.Sprint(attempt) && framework.IsReady(pod)
		})
		decision, all := restart(t, ns, pods[attempt].Name, int32(attempt+1))
		decisions, replacements = append(decisions, decision), append(replacements, all)
	}
	ns.WaitForPods(*gangSize, 5*time.Minute, framework.IsReady)
	slices.Sort(decisions)
	slices.Sort(replacements)
	bare := bareReplacement(t, ns)
	ours := percentile(replacements, 50)
	t.Logf("%d restarts of a gang of %d: fault to decision p50 %s, most %s; to all replacements created p50 %s; a bare client takes %s: ratio %.2f",
		len(decisions), *gangSize, percentile(decisions, 50).Round(time.Millisecond), decisions[len(decisions)-1].Round(time.Millisecond),
		ours.Round(time.Millisecond), bare.Round(time.Millisecond), float64(ours)/float64(bare))
}

func restart(t *testing.T, ns *framework.Namespace, victim string, attempt int32) (decision, all time.Duration) {
	t.Helper()
	sets, err := cluster.Copse.GroveV1alpha1().PodCliqueSets(ns.Name).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer sets.Stop()
	made, err := cluster.Kube.CoreV1().Pods(ns.Name).Watch(t.Context(), metav1.ListOptions{LabelSelector: fmt.Sprintf("%s=%d", labels.RestartAttempt, attempt)})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Stop()
	began := time.Now()
	if err := kill(t.Context(), ns.Name, victim); err != nil {
		t.Fatal(err)
	}
	await(t, sets, func(pcs *grovev1alpha1.PodCliqueSet) bool { return pcs.Status.RestartCount == attempt })
	decision = time.Since(began)
	seen := map[types.UID]bool{}
	await(t, made, func(pod *corev1.Pod) bool {
		seen[pod.UID] = true
		return len(seen) == *gangSize
	})
	return decision, time.Since(began)
}

// bareReplacement deletes the pods of a namespace and creates as many like them when the
// last is gone: what any controller has to do at least.
func bareReplacement(t *testing.T, ns *framework.Namespace) time.Duration {
	t.Helper()
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	client := cluster.Kube.CoreV1().Pods(other.Name)
	create := func() {
		forAll(t, len(pods), func(ctx context.Context, i int) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bare-%d", i), Labels: pods[i].Labels}, Spec: *pods[i].Spec.DeepCopy()}
			pod.Spec.NodeName, pod.Spec.SchedulingGroup, pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "", nil, "", ""
			pod.Spec.Volumes, pod.Spec.Containers[0].VolumeMounts = nil, nil
			_, err := client.Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	}
	create()
	other.WaitForPods(len(pods), 5*time.Minute, framework.IsReady)
	gone, err := client.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Stop()
	began := time.Now()
	forAll(t, len(pods), func(ctx context.Context, i int) error {
		return client.Delete(ctx, fmt.Sprintf("bare-%d", i), metav1.DeleteOptions{})
	})
	left := len(pods)
	for event := range gone.ResultChan() {
		if event.Type == watch.Deleted {
			left--
		}
		if left == 0 {
			break
		}
	}
	create()
	return time.Since(began)
}

func forAll(t *testing.T, n int, do func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(bareParallel)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// A hundred gangs that fail within a second, three times over, are restarted three
// hundred times: not once more, not once less.
func TestRestartsOfManyGangsAreCountedExactly(t *testing.T) {
	const gangs, size, waves = 100, 8, 3
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	var manifests []string
	for i := range gangs {
		manifests = append(manifests, gang(fmt.Sprintf("gang-%d", i), size, size, waves))
	}
	ns.Apply(strings.Join(manifests, "---"))
	for wave := range waves {
		pods := ns.WaitForPods(gangs*size, 5*time.Minute, func(pod *corev1.Pod) bool {
			return pod.Labels[labels.RestartAttempt] == fmt.Sprint(wave) && framework.IsReady(pod)
		})
		var victims sync.Map
		var killed atomic.Int32
		began := time.Now()
		forAll(t, len(pods), func(ctx context.Context, i int) error {
			if _, taken := victims.LoadOrStore(pods[i].Labels[labels.PartOf], true); taken {
				return nil
			}
			killed.Add(1)
			return kill(ctx, ns.Name, pods[i].Name)
		})
		t.Logf("wave %d: %d gangs hit within %s", wave+1, killed.Load(), time.Since(began).Round(time.Millisecond))
	}
	ns.WaitForPods(gangs*size, 5*time.Minute, func(pod *corev1.Pod) bool {
		return pod.Labels[labels.RestartAttempt] == fmt.Sprint(waves) && framework.IsReady(pod)
	})
	sets, err := cluster.Copse.GroveV1alpha1().PodCliqueSets(ns.Name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	total := int32(0)
	for i := range sets.Items {
		total += sets.Items[i].Status.RestartCount
	}
	t.Logf("%d restarts", total)
	if total != gangs*waves {
		t.Errorf("%d restarts were counted, %d happened", total, gangs*waves)
	}
}
