package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
)

// exitAnnotation says with what the container ends in which a pod waits.
const exitAnnotation = "kwok.copse.dev/wait-exit-code"

// PlayWaiters stands in for the containers in which pods of the namespace wait to start:
// there are none on simulated nodes. Each reads its own arguments and its own gate, as
// cmd/start-gate does, and nothing else, until the test is over.
func (n *Namespace) PlayWaiters() {
	n.t.Helper()
	players := &waiters{t: n.t, cluster: n.cluster, gates: map[string]*grovev1alpha1.StartGate{}, pods: map[string]*corev1.Pod{}}
	ctx, cancel := context.WithCancel(context.Background())
	gateClient, podClient := n.cluster.Copse.GroveV1alpha1().StartGates(n.Name), n.cluster.Kube.CoreV1().Pods(n.Name)
	gateList, err := gateClient.List(ctx, metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	for i := range gateList.Items {
		players.gates[gateList.Items[i].Name] = &gateList.Items[i]
	}
	podList, err := podClient.List(ctx, metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	for i := range podList.Items {
		players.pods[podList.Items[i].Name] = &podList.Items[i]
	}
	gates := Follow(ctx, n.t, gateList.ResourceVersion, gateClient.Watch)
	pods := Follow(ctx, n.t, podList.ResourceVersion, podClient.Watch)
	done := make(chan struct{})
	go func() {
		defer close(done)
		players.play(ctx, gates.ResultChan(), pods.ResultChan())
	}()
	n.t.Cleanup(func() {
		cancel()
		gates.Stop()
		pods.Stop()
		<-done
	})
}

type waiters struct {
	t       *testing.T
	cluster *Cluster
	gates   map[string]*grovev1alpha1.StartGate
	pods    map[string]*corev1.Pod
}

func (w *waiters) play(ctx context.Context, gates, pods <-chan watch.Event) {
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-gates:
			gate, is := event.Object.(*grovev1alpha1.StartGate)
			if !ok || !is {
				w.ended(ctx, event)
				return
			}
			w.gates[gate.Name] = gate
		case event, ok := <-pods:
			pod, is := event.Object.(*corev1.Pod)
			if !ok || !is {
				w.ended(ctx, event)
				return
			}
			w.pods[pod.Name] = pod
			if event.Type == watch.Deleted {
				delete(w.pods, pod.Name)
			}
		}
		for name, pod := range w.pods {
			if code, ends := w.look(pod); ends {
				w.end(ctx, pod, code)
				delete(w.pods, name)
			}
		}
	}
}

// ended says that nobody plays any more, unless the test is over.
func (w *waiters) ended(ctx context.Context, event watch.Event) {
	if ctx.Err() == nil {
		w.t.Errorf("the waiters cannot be played any longer: %s %v", event.Type, event.Object)
	}
}

// look says whether, and with what, the container ends in which a pod waits.
func (w *waiters) look(pod *corev1.Pod) (code int, ends bool) {
	i := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == naming.BarrierContainer || c.Name == naming.OrderContainer
	})
	runs := slices.ContainsFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
		return i >= 0 && s.Name == pod.Spec.InitContainers[i].Name && s.State.Running != nil
	})
	if !runs || pod.Annotations[exitAnnotation] != "" {
		return 0, false
	}
	arguments := map[string]string{}
	for _, argument := range pod.Spec.InitContainers[i].Args {
		name, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		arguments[name] = value
	}
	gate := w.gates[arguments["gate"]]
	if gate == nil {
		return 0, false
	}
	for _, entry := range gate.Status.Cliques {
		if entry.Name == arguments["podclique"] && fmt.Sprint(entry.Attempt) == arguments["attempt"] {
			if entry.Expired {
				return 1, true
			}
			return 0, entry.Open
		}
	}
	return 0, false
}

func (w *waiters) end(ctx context.Context, pod *corev1.Pod, code int) {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:"%d"}}}`, pod.UID, exitAnnotation, code)
	if _, err := w.cluster.Kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil && ctx.Err() == nil {
		w.t.Logf("the waiter of pod %s cannot end: %v", pod.Name, err)
	}
}
