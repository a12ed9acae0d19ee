package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

// bindingTime is how long a gang may be bound in part: its pods are bound in one cycle of
// the scheduler, one request each.
const bindingTime = 15 * time.Second

// parts follows every revision of the pods of a namespace, and tells which gangs have been
// on nodes in part for longer than it takes to bind them.
type parts struct {
	mu sync.Mutex
	// groups are those of the scheduler, by name. A gang has a new one in each attempt.
	groups map[string]*partOf
	told   []string
}

type partOf struct {
	minimum  int
	bound    map[types.UID]bool
	complete bool
	since    time.Time
}

// watchParts follows the pods until the test is over. minimum is how many pods of each
// group have to run together.
func watchParts(t *testing.T, ns *framework.Namespace, minimum int) *parts {
	t.Helper()
	p := &parts{groups: map[string]*partOf{}}
	ctx, cancel := context.WithCancel(context.Background())
	client := cluster.Kube.CoreV1().Pods(ns.Name)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		p.see(&list.Items[i], string(watch.Added), minimum)
	}
	pods := framework.Follow(ctx, t, list.ResourceVersion, client.Watch)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				p.see(pod, string(event.Type), minimum)
			} else if ctx.Err() == nil {
				t.Errorf("the pods cannot be followed any longer: %s %v", event.Type, event.Object)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		pods.Stop()
		<-done
		p.judge(t)
	})
	return p
}

func (p *parts) see(pod *corev1.Pod, event string, minimum int) {
	group := pod.Spec.SchedulingGroup
	if group == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[*group.PodGroupName]
	if g == nil {
		g = &partOf{minimum: minimum, bound: map[types.UID]bool{}}
		p.groups[*group.PodGroupName] = g
	}
	if pod.Spec.NodeName != "" && event != "DELETED" && pod.DeletionTimestamp == nil {
		if len(g.bound) == 0 {
			g.since, g.complete = time.Now(), false
		}
		g.bound[pod.UID] = true
	} else {
		delete(g.bound, pod.UID)
	}
	if len(g.bound) >= g.minimum {
		g.complete = true
	}
	if took := time.Since(g.since); len(g.bound) > 0 && !g.complete && took > bindingTime {
		p.told = append(p.told, fmt.Sprintf("group %s has had %d of %d pods on nodes for %s", *group.PodGroupName, len(g.bound), g.minimum, took))
	}
}

// judge says what was seen, and what is in part now.
func (p *parts) judge(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, told := range p.told {
		t.Error(told)
	}
	for name, g := range p.groups {
		if len(g.bound) > 0 && !g.complete {
			t.Errorf("in the end group %s has %d of %d pods on nodes", name, len(g.bound), g.minimum)
		}
	}
	if len(p.groups) == 0 {
		t.Error("no pod was in a group")
	}
}

// pair is an inference set of two cliques, of which one has pods beyond its minimum: three
// pods have to run together, a fourth may follow.
func pair(name, resourceName, priority string) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: %[1]s}
spec:
  replicas: 1
  template:
    priorityClassName: %[3]q
    cliques:
      - name: leader
        spec:
          replicas: 1
          podSpec: &pod
            tolerations: [{key: %[2]s, operator: Exists}]
            containers: [{name: main, image: example.com/server, resources: {limits: {%[2]s: 1}}}]
      - name: worker
        spec:
          replicas: 3
          minAvailable: 2
          podSpec: *pod
`, name, resourceName, priority)
}

// onNodes says whether a pod takes room.
func onNodes(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil }

// Room comes, goes and comes again, in steps that never are enough by themselves.
func TestAGangNeverRunsInPartWhileRoomComesAndGoes(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const units = "example.com/chair"
	watchParts(t, ns, 3)
	ns.Apply(pair("llm", units, ""))
	// Surplus pods are made once the gang runs.
	ns.WaitForPods(3, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	for i := range 2 {
		addNode(t, fmt.Sprintf("chairs-%d", i), units, "1")
	}
	why := gangSays(ns, "llm-0", schedulerv1alpha1.ReasonNotEnoughResources, "cannot be satisfied")
	if requested := why.Details.ResourceDetails.Requested[units]; requested.Value() != 3 {
		t.Errorf("requested are %v", why.Details.ResourceDetails.Requested)
	}
	// One goes and another comes: still not enough.
	deleteNode(t, "chairs-0")
	addNode(t, "chairs-2", units, "1")
	ns.Never(2*time.Second, func(ctx context.Context) error {
		return noneOnNodes(ctx, ns)
	})
	addNode(t, "chairs-3", units, "1")
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	// The pod beyond the minimum waits alone, and takes room when it comes.
	ns.WaitForPods(1, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	addNode(t, "chairs-4", units, "1")
	ns.WaitForPods(4, time.Minute, framework.IsReady)
	// A member is lost, and its place with it. The rest goes on; what replaces it waits, and
	// joins when there is room.
	var gone corev1.Pod
	for _, pod := range ns.WaitForPods(4, time.Minute, framework.IsReady) {
		if pod.Labels[labels.PodClique] == "llm-0-leader" {
			gone = pod
		}
	}
	ns.Kubectl("cordon", gone.Spec.NodeName)
	ns.Kubectl("delete", "pod", gone.Name)
	ns.WaitForPods(1, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil })
	gangSays(ns, "llm-0", schedulerv1alpha1.ReasonNotEnoughResources, "llm-0-leader-0-")
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	ns.Kubectl("uncordon", gone.Spec.NodeName)
	ns.WaitForPods(4, time.Minute, framework.IsReady)
}

func noneOnNodes(ctx context.Context, ns *framework.Namespace) error {
	pods, err := ns.Pods(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		if onNodes(&pods[i]) {
			return fmt.Errorf("pod %s of a gang that does not fit is on node %s", pods[i].Name, pods[i].Spec.NodeName)
		}
	}
	return nil
}

func deleteNode(t *testing.T, name string) {
	t.Helper()
	if err := cluster.Kube.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Copies of a scaling group beyond its minimum are gangs of their own: each is placed as a
// whole, or leaves the room to others.
func TestScaledGangsNeverRunInPart(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const units = "example.com/stool"
	watchParts(t, ns, 2)
	addNode(t, "stools-0", units, "3")
	ns.Apply(fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
      - name: engine
        spec:
          replicas: 2
          podSpec:
            tolerations: [{key: %[1]s, operator: Exists}]
            containers: [{name: main, image: example.com/server, resources: {limits: {%[1]s: 1}}}]
    podCliqueScalingGroups:
      - {name: pool, cliqueNames: [engine], replicas: 3, minAvailable: 1}
`, units))
	ns.WaitForPods(2, time.Minute, framework.IsReady)
	// Four pods wait for the one place that is left, and nobody takes it.
	ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	ns.Never(2*time.Second, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err != nil {
			return err
		}
		placed := 0
		for i := range pods {
			if onNodes(&pods[i]) {
				placed++
			}
		}
		if placed != 2 {
			return fmt.Errorf("%d pods are on nodes", placed)
		}
		return nil
	})
	addNode(t, "stools-1", units, "1")
	ns.WaitForPods(4, time.Minute, framework.IsReady)
	ns.WaitForPods(2, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	ns.Kubectl("scale", "pcsg", "llm-0-pool", "--replicas=2")
	ns.WaitForPods(0, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
}

// A gang that is preempted goes as a whole, and waits as a whole; the one that takes its
// room says that others make room for it.
func TestAGangIsPreemptedAsAWhole(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const units = "example.com/bench"
	high := fmt.Sprintf("high-%s", ns.Name)
	low := fmt.Sprintf("low-%s", ns.Name)
	for name, value := range map[string]int32{high: 1000, low: 10} {
		_, err := cluster.Kube.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cluster.Kube.SchedulingV1().PriorityClasses().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	}
	watchParts(t, ns, 3)
	addNode(t, "benches", units, "4")
	ns.Apply(pair("batch", units, low))
	ns.WaitForPods(4, time.Minute, framework.IsReady)
	said := reasonsOf(t, ns, "urgent-0")
	ns.Apply(pair("urgent", units, high))
	of := func(set string, matches func(*corev1.Pod) bool) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool { return pod.Labels["app.kubernetes.io/part-of"] == set && matches(pod) }
	}
	ns.WaitForPods(4, 2*time.Minute, of("urgent", framework.IsReady))
	ns.WaitForPods(4, time.Minute, of("batch", func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil }))
	if all := said(); !slices.Contains(all, schedulerv1alpha1.ReasonPreemptionPending) {
		t.Errorf("the gang for which others make room said %v", all)
	}
	// The set says what it waits for, though it was placed before.
	ns.Eventually(time.Minute, func(context.Context) error {
		if waiting := ns.Set("batch").Status.ReplicaStatuses[0].WaitingFor; waiting == nil || waiting.Status != schedulerv1alpha1.ReasonNotEnoughResources || waiting.Have != 0 || waiting.Want != 3 {
			return fmt.Errorf("the set waits for %+v", waiting)
		}
		return nil
	})
	ns.Kubectl("delete", "pcs", "urgent", "--timeout=60s")
	ns.WaitForPods(4, time.Minute, of("batch", framework.IsReady))
}

// reasonsOf follows what a gang waits for, one after the other.
func reasonsOf(t *testing.T, ns *framework.Namespace, gang string) (said func() []string) {
	t.Helper()
	gangs, err := cluster.Copse.SchedulerV1alpha1().PodGangs(ns.Name).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + gang})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan []string, 1)
	go func() {
		var all []string
		for event := range gangs.ResultChan() {
			if podGang, ok := event.Object.(*schedulerv1alpha1.PodGang); ok && len(podGang.Status.SchedulingConditions) > 0 {
				all = append(all, podGang.Status.SchedulingConditions[0].Reasons[0].Reason)
			}
		}
		done <- all
	}()
	return func() []string {
		gangs.Stop()
		return <-done
	}
}

// The class of a set's pods is that of their gang also where the set itself names none: a
// scheduler refuses pods of another priority than their group's.
func TestAGangHasThePriorityOfItsPods(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	class := "own-" + ns.Name
	_, err := cluster.Kube.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Value: 77}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cluster.Kube.SchedulingV1().PriorityClasses().Delete(context.Background(), class, metav1.DeleteOptions{})
	})
	ns.Apply(fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: 1
  workloadType: Training
  template:
    cliques:
      - name: worker
        spec:
          replicas: 2
          podSpec:
            priorityClassName: %s
            containers: [{name: main, image: example.com/trainer}]
`, class))
	ns.WaitForPods(2, time.Minute, framework.IsReady)
}
