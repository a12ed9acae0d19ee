package podclique

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// recorder remembers of whom events tell, and how many writes there were before.
type recorder struct {
	cluster *cluster
	told    []string
}

func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, _, note string, args ...any) {
	name := func(obj runtime.Object) string {
		if obj == nil {
			return "-"
		}
		return obj.(client.Object).GetName()
	}
	r.told = append(r.told, fmt.Sprintf("after %d writes: %s (%s) %s %s: %s", len(r.cluster.writes), name(regarding), name(related), eventType, reason, fmt.Sprintf(note, args...)))
}

// An event follows the write that it reports, once, and whoever looks at the clique or at
// its set finds it.
func TestEventsFollowTheWriteThatTheyReport(t *testing.T) {
	const failed, below = "%s failed (exit code 1) on node gpu-17", "llm-0-worker: 1 of 3 pods are available, at least 2 are needed: %s failed (exit code 1) on node gpu-17; %s is not Ready"
	exited := func(p *corev1.Pod) {
		podFailed(p)
		p.Spec.NodeName = "gpu-17"
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(now.Add(-time.Second))}}}}
	}
	isReady := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	objects := func() []client.Object {
		return []client.Object{newSet(nil), newGang(gangScheduled), newPod(0, exited), newPod(1, isReady), newPod(2, nil), newClique(func(c *grovev1alpha1.PodClique) {
			allMade(c)
			c.Status.WasAvailable = true
		})}
	}
	c := &cluster{t: t, objects: objects()}
	r := c.reconciler()
	told := &recorder{cluster: c}
	r.Recorder = told
	for range 2 {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	reason := fmt.Sprintf(failed, podName(0))
	breach := fmt.Sprintf(below, podName(0), podName(2))
	expect(t, "events", []string{
		"after 1 writes: llm-0-worker (-) Warning PodFailed: " + reason,
		"after 1 writes: llm (llm-0-worker) Warning PodFailed: " + reason,
		"after 1 writes: llm-0-worker (-) Warning PodCliqueFailed: " + breach,
		"after 1 writes: llm (llm-0-worker) Warning PodCliqueFailed: " + breach,
	}, told.told)

	c = &cluster{t: t, objects: objects(), refuse: func(string, client.Object) error { return errors.New("boom") }}
	r = c.reconciler()
	told = &recorder{cluster: c}
	r.Recorder = told
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Error("no error")
	}
	expect(t, "events of a write that was refused", []string(nil), told.told)
}

// How long a breach may last is the set's to say, or the scaling group's.
func TestAFailedPodIsReplacedWithinTheDelayOfItsSet(t *testing.T) {
	delayed := func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.WorkloadType = grovev1alpha1.WorkloadTypeTraining
		pcs.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Hour}
	}
	atOnce := func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.WorkloadType = grovev1alpha1.WorkloadTypeTraining }
	remove := []string{"delete Pod " + podName(0)}
	for name, tc := range map[string]struct {
		set  func(*grovev1alpha1.PodCliqueSet)
		want []string
	}{"with a delay": {delayed, remove}, "without one": {atOnce, nil}} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{t: t, objects: []client.Object{newSet(tc.set), newGang(gangScheduled), newPod(0, podFailed), newPod(1, nil), newPod(2, nil), newClique(func(c *grovev1alpha1.PodClique) {
				allMade(c)
				c.Spec.MinAvailable, c.Status.WasAvailable = ptr.To[int32](3), true
				c.Status.FailedIndexes = []grovev1alpha1.FailedIndex{{Index: 0, Count: 1, LastTime: metav1.NewTime(now.Add(-time.Minute)), PodUID: "uid-0"}}
			})}}
			if _, err := c.reconciler().Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			expect(t, "writes of pods", tc.want, c.podWrites())
		})
	}
}
