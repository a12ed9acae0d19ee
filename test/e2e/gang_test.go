package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

// addNode adds a simulated node that alone has a resource; pods that ask for it go
// nowhere else. Its taint keeps the pods of other tests away, which would end with the node.
func addNode(t *testing.T, name, resourceName, count string) {
	t.Helper()
	resources := corev1.ResourceList{
		corev1.ResourceCPU:                resource.MustParse("16"),
		corev1.ResourceMemory:             resource.MustParse("64Gi"),
		corev1.ResourcePods:               resource.MustParse("100"),
		corev1.ResourceName(resourceName): resource.MustParse(count),
	}
	_, err := cluster.Kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"type": "kwok", corev1.LabelHostname: name}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: resourceName, Effect: corev1.TaintEffectNoSchedule}}},
		Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cluster.Kube.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// scarce is a training set whose pods ask for one unit of a resource each.
func scarce(name, resourceName string, workers int) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: %s}
spec:
  replicas: 1
  workloadType: Training
  template:
    cliques:
      - name: worker
        spec:
          replicas: %d
          podSpec:
            tolerations: [{key: %s, operator: Exists}]
            containers: [{name: main, image: example.com/trainer, resources: {limits: {%s: 1}}}]
`, name, workers, resourceName, resourceName)
}

func TestAGangThatDoesNotFitStaysWhollyPendingAndStartsWhenRoomAppears(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const units = "example.com/unit"
	addNode(t, "scarce-1", units, "3")
	ns.Apply(scarce("job", units, 4))

	// All pods exist, three would fit, and not one has a node.
	ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	ns.Eventually(time.Minute, func(context.Context) error {
		if out := ns.Kubectl("get", "pcs", "job"); !strings.Contains(out, "NotEnoughResources") {
			return fmt.Errorf("kubectl get does not say what the set waits for:\n%s", out)
		}
		return nil
	})
	ns.Never(2*time.Second, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err != nil {
			return err
		}
		for i := range pods {
			if pods[i].Spec.NodeName != "" {
				return fmt.Errorf("pod %s of a gang that does not fit is on node %s", pods[i].Name, pods[i].Spec.NodeName)
			}
		}
		return nil
	})
	if phase := ns.Set("job").Status.Phase; phase != grovev1alpha1.PodCliqueSetPending {
		t.Errorf("phase is %s", phase)
	}

	addNode(t, "scarce-2", units, "1")
	ns.WaitForPods(4, time.Minute, framework.IsReady)
	pcs := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetRunning, time.Minute)
	if pcs.Status.ReplicaStatuses[0].WaitingFor != nil {
		ns.Eventually(10*time.Second, func(context.Context) error {
			if w := ns.Set("job").Status.ReplicaStatuses[0].WaitingFor; w != nil {
				return fmt.Errorf("the running set still waits for %+v", w)
			}
			return nil
		})
	}
}

// Two gangs of which only one fits do not each take half.
func TestTwoGangsThatDoNotFitTogetherRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const units = "example.com/slot"
	watchParts(t, ns, 3)
	addNode(t, "slots", units, "4")
	ns.Apply(scarce("one", units, 3) + "---" + scarce("two", units, 3))
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	pods := ns.WaitForPods(3, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	running := map[string]int{}
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			running[pods[i].Labels["app.kubernetes.io/part-of"]]++
		}
	}
	if len(running) != 1 {
		t.Fatalf("pods with a node per set: %v", running)
	}
	for name := range running {
		ns.Kubectl("delete", "pcs", name, "--timeout=60s")
	}
	ns.WaitForPods(3, time.Minute, framework.IsReady)
}

// A clique that was scaled to 0, in a gang of which others run, comes back as a whole or not at
// all. The scheduler's group was one of fewer pods meanwhile: a pod of the others that is lost
// is placed without it.
func TestACliqueThatComesBackIsPlacedAsAWhole(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const units = "example.com/seat"
	addNode(t, "seats", units, "4")
	pod := fmt.Sprintf(`{tolerations: [{key: %[1]s, operator: Exists}], containers: [{name: main, image: example.com/main, resources: {limits: {%[1]s: 1}}}]}`, units)
	ns.Apply(fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
      - name: router
        spec: {replicas: 1, podSpec: %[1]s}
      - name: worker
        spec: {replicas: 3, podSpec: %[1]s}
`, pod))
	ns.WaitForPods(4, time.Minute, framework.IsReady)
	ns.Kubectl("scale", "pclq", "llm-0-worker", "--replicas=0")
	worker := []string{"llm-0-worker"}
	ns.WaitForPods(0, time.Minute, func(pod *corev1.Pod) bool { return isOf(pod, worker) })
	ns.Kubectl("delete", "pod", ns.WaitForPods(1, time.Minute, framework.IsReady)[0].Name)
	ns.WaitForPods(1, time.Minute, framework.IsReady)

	setCapacity(t, "seats", units, "3")
	ns.Kubectl("scale", "pclq", "llm-0-worker", "--replicas=4")
	ns.WaitForPods(3, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	gangWaits(ns, "llm-0", schedulerv1alpha1.ReasonNotEnoughResources)
	// Two of the three would fit, and so would the fourth, which is none of the gang.
	ns.Never(2*time.Second, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err != nil {
			return err
		}
		for i := range pods {
			if isOf(&pods[i], worker) && pods[i].Spec.NodeName != "" {
				return fmt.Errorf("pod %s of a clique that does not fit is on node %s", pods[i].Name, pods[i].Spec.NodeName)
			}
		}
		return nil
	})
	setCapacity(t, "seats", units, "5")
	ns.WaitForPods(5, time.Minute, framework.IsReady)
}

// A gang of which all is scaled to 0 needs no group, which cannot be for nobody: also when an
// update begins another attempt of it.
func TestAGangOfWhichAllIsScaledToZero(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(`
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: idle}
value: 10
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
      - name: worker
        spec: {replicas: 2, podSpec: {containers: [{name: main, image: example.com/main}]}}
`)
	ns.WaitForPods(2, time.Minute, framework.IsReady)
	ns.Kubectl("scale", "pclq", "llm-0-worker", "--replicas=0")
	ns.WaitForPods(0, time.Minute, func(*corev1.Pod) bool { return true })
	ns.Kubectl("patch", "pcs", "llm", "--type=merge", "-p", `{"spec":{"template":{"priorityClassName":"idle"}}}`)
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		podGang, err := ns.PodGang(ctx, "llm-0")
		if err != nil {
			return err
		}
		if podGang.Status.ObservedAttempt != 1 || !meta.IsStatusConditionTrue(podGang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled) || len(podGang.Status.SchedulingConditions) != 0 {
			return fmt.Errorf("the status of the gang is %+v", podGang.Status)
		}
		return nil
	})
	ns.Kubectl("scale", "pclq", "llm-0-worker", "--replicas=2")
	for _, pod := range ns.WaitForPods(2, time.Minute, framework.IsReady) {
		if pod.Spec.PriorityClassName != "idle" {
			t.Errorf("pod %s has the class %q", pod.Name, pod.Spec.PriorityClassName)
		}
	}
}

// setCapacity changes how much of a resource a node has.
func setCapacity(t *testing.T, node, resourceName, count string) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"capacity":{%[1]q:%[2]q},"allocatable":{%[1]q:%[2]q}}}`, resourceName, count)
	if _, err := cluster.Kube.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// gangWaits waits until a gang tells a reason why pods of it wait.
func gangWaits(ns *framework.Namespace, gang, reason string) {
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		podGang, err := ns.PodGang(ctx, gang)
		if err != nil {
			return err
		}
		told := podGang.Status.SchedulingConditions
		if len(told) != 1 || len(told[0].Reasons) != 1 || told[0].Reasons[0].Reason != reason {
			return fmt.Errorf("the gang tells %+v", told)
		}
		return nil
	})
}

// The scheduler counts no members that have finished: without a lower minimum it would hold
// a replacement back for ever (kubernetes/kubernetes#142330).
func TestAReplacementInAGangThatHasFinishedInPartIsPlaced(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: 1
  workloadType: Training
  template:
    terminationDelay: 10m
    cliques:
      - name: worker
        annotations: {kwok.copse.dev/exit-after: 1h}
        spec:
          replicas: 3
          podSpec: {containers: [{name: main, image: example.com/trainer}]}
`)
	pods := ns.WaitForPods(3, time.Minute, framework.IsReady)
	first, second := podOf(t, pods, "job-0-worker", "0"), podOf(t, pods, "job-0-worker", "1")
	ns.Kubectl("annotate", "pod", first.Name, "--overwrite", "kwok.copse.dev/exit-after=0s")
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		clique, err := cluster.Copse.GroveV1alpha1().PodCliques(ns.Name).Get(ctx, "job-0-worker", metav1.GetOptions{})
		if err == nil && clique.Status.CompletedIndexes != "0" {
			err = fmt.Errorf("finished are %q", clique.Status.CompletedIndexes)
		}
		return err
	})
	fail(ns, second.Name, 1)
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err != nil {
			return err
		}
		for i := range pods {
			if pods[i].Labels[labels.PodIndex] == "1" && pods[i].UID != second.UID && framework.IsReady(&pods[i]) {
				return nil
			}
		}
		return errors.New("the pod of index 1 has not been replaced by one that is Ready")
	})
	if set := ns.Set("job"); set.Status.RestartCount != 0 || set.Status.Phase != grovev1alpha1.PodCliqueSetRunning {
		t.Errorf("phase %s after %d restarts", set.Status.Phase, set.Status.RestartCount)
	}
}

// An administrator may delete a PodGang. Its pods run on, the next one knows that they have a
// place, and does not have a pod that replaces one of them wait for the others.
func TestAPodGangThatIsDeletedByHandIsMadeAnewAroundItsPods(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t, framework.Unrecorded("a PodGang is deleted by hand"))
	ns.Apply(disaggregated)
	pods := ns.WaitForPods(7, time.Minute, framework.IsReady)
	former, err := ns.PodGang(t.Context(), "llm-0")
	if err != nil {
		t.Fatal(err)
	}
	ns.Kubectl("delete", "podgangs.scheduler.grove.io", "llm-0")
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		podGang, err := ns.PodGang(ctx, "llm-0")
		if err == nil && (podGang.UID == former.UID || podGang.Status.Phase != schedulerv1alpha1.PodGangRunning) {
			err = fmt.Errorf("the next PodGang is %+v", podGang.Status)
		}
		return err
	})
	router := find(pods, "llm-0-router-0")
	ns.Kubectl("delete", "pod", router.Name)
	left := ns.WaitForPods(7, time.Minute, func(pod *corev1.Pod) bool { return framework.IsReady(pod) && pod.UID != router.UID })
	for i := range left {
		if before := find(pods, left[i].Spec.Hostname); before.UID != left[i].UID && before.UID != router.UID {
			t.Errorf("pod %s is not the one that ran", left[i].Name)
		}
	}
}
