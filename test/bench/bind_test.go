package bench

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/test/framework"
)

var (
	boundPods   = flag.Int("bench.bound", 1000, "pods that are bound as a gang and without one, also a half and a quarter of them")
	boundRounds = flag.Int("bench.rounds", 3, "times that each is done")
)

// The same pods, as a gang of the native scheduler and as pods that know nothing of each
// other: from the first that is created to the last that has a node, and from the moment
// when all exist, before which no gang can be placed. Both are made by a bare client: how
// the scheduler's own work grows with the gang (docs/scheduling.md) is told by the sizes.
func TestAGangIsBoundAsFastAsItsPods(t *testing.T) {
	for _, pods := range []int{*boundPods / 4, *boundPods / 2, *boundPods} {
		t.Run(fmt.Sprintf("%d pods", pods), func(t *testing.T) { compareBinding(t, pods) })
	}
}

func compareBinding(t *testing.T, pods int) {
	t.Helper()
	plain, gang := make([][2]time.Duration, 0, *boundRounds), make([][2]time.Duration, 0, *boundRounds)
	// One after the other, so that a machine that slows down slows both.
	for range *boundRounds {
		plain = append(plain, bindAll(t, pods, ""))
		gang = append(gang, bindAll(t, pods, "gang"))
	}
	for i, what := range []string{"from the first created", "from when all exist"} {
		without, with := medianOf(plain, i), medianOf(gang, i)
		t.Logf("%d pods bound, %s: without a gang %s, as a gang %s: ratio %.2f (medians of %d)",
			pods, what, without.Round(time.Millisecond), with.Round(time.Millisecond), float64(with)/float64(without), *boundRounds)
	}
}

func medianOf(runs [][2]time.Duration, i int) time.Duration {
	var sorted []time.Duration
	for _, run := range runs {
		sorted = append(sorted, run[i])
	}
	slices.Sort(sorted)
	return percentile(sorted, 50)
}

// bindAll creates the pods in a namespace of their own, in a group if it has a name, and
// waits until all have a node.
func bindAll(t *testing.T, count int, group string) (took [2]time.Duration) {
	t.Helper()
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	ctx := t.Context()
	if group != "" {
		_, err := cluster.Kube.SchedulingV1beta1().PodGroups(ns.Name).Create(ctx, &schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: group},
			Spec: schedulingv1beta1.PodGroupSpec{
				SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(count)}},
				DisruptionMode:   &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	var exist time.Time
	creations := errgroup.Group{}
	creations.Go(func() error {
		writes := errgroup.Group{}
		writes.SetLimit(bareParallel)
		for i := range count {
			writes.Go(func() error {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i)},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{
						Name: "main", Image: "example.com/trainer",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
					}}},
				}
				if group != "" {
					pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(group)}
				}
				_, err := cluster.Kube.CoreV1().Pods(ns.Name).Create(ctx, pod, metav1.CreateOptions{})
				return err
			})
		}
		err := writes.Wait()
		exist = time.Now()
		return err
	})
	bound := map[string]bool{}
	limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	pods := cache.NewListWatchFromClient(cluster.Kube.CoreV1().RESTClient(), "pods", ns.Name, fields.Everything())
	_, err := watchtools.UntilWithSync(limited, pods, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			bound[pod.Name] = true
		}
		return len(bound) == count, nil
	})
	if err != nil {
		t.Fatalf("%d of %d pods have a node: %v", len(bound), count, err)
	}
	end := time.Now()
	if err := creations.Wait(); err != nil {
		t.Fatal(err)
	}
	took = [2]time.Duration{end.Sub(began), end.Sub(exist)}
	// They go before the next are measured.
	ns.Kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false")
	ns.WaitForPods(0, 2*time.Minute, func(*corev1.Pod) bool { return true })
	return took
}
