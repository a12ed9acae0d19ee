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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/test/framework"
)

// The scenarios of the start barrier of seed 002, and of the order of containers.

// barriered is a set of workers that start together, and of a helper beside them.
func barriered(replicas int, config, spec string) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: %d
%s
  groupSchedulingConfig: %s
  template:
    cliques:
      - name: helper
        spec:
          replicas: 1
          podSpec: {containers: [{name: main, image: example.com/helper}]}
      - name: leader
        spec:
          replicas: 1
          podSpec: {containers: [{name: main, image: example.com/leader}]}
      - name: worker
        spec:
          replicas: 2
          podSpec:
            initContainers: [{name: fetch, image: example.com/fetch}]
            containers: [{name: main, image: example.com/worker}]
`, replicas, spec, config)
}

const targets = "{timeoutAfterSeconds: 600, targetCliques: [leader, worker]}"

// neverStart keeps pods of a clique from coming to the gate.
func neverStart(manifest, clique string) string {
	return strings.Replace(manifest, "- name: "+clique+"\n", "- name: "+clique+"\n        annotations: {kwok.copse.dev/never-starts: \"true\"}\n", 1)
}

func letStart(ns *framework.Namespace, clique string) {
	ns.Kubectl("annotate", "pods", "-l", labels.PodClique+"="+clique, "kwok.copse.dev/never-starts-")
}

func waitsIn(pod *corev1.Pod, container string) bool {
	for _, status := range pod.Status.InitContainerStatuses {
		if status.Name == container {
			return status.State.Running != nil
		}
	}
	return false
}

func gateFile(ns *framework.Namespace, replica int) string {
	configMap, err := cluster.Kube.CoreV1().ConfigMaps(ns.Name).Get(context.Background(), fmt.Sprintf("job-%d-group-scheduling", replica), metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return configMap.Data["started"]
}

// Scenarios 32, 33 and 35: no container of a target runs before all targets have started;
// others do not wait, and are not counted.
func TestTargetsOfTheBarrierStartTogether(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.PlayWaiters()
	ns.Apply(neverStart(barriered(1, targets, "  workloadType: Training"), "leader"))
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err != nil {
			return err
		}
		waiting, running := 0, 0
		for i := range pods {
			if waitsIn(&pods[i], naming.BarrierContainer) && pods[i].Status.Phase == corev1.PodPending {
				waiting++
			}
			if isRunning(&pods[i]) {
				running++
			}
		}
		if waiting != 2 || running != 1 {
			return fmt.Errorf("%d pods wait and %d run", waiting, running)
		}
		return nil
	})
	ns.Never(2*time.Second, func(context.Context) error {
		if text := gateFile(ns, 0); text != "" {
			return errors.New("the file says " + text)
		}
		return nil
	})
	if table := ns.Kubectl("get", "pcs", "job"); !strings.Contains(table, "leader Started (0/1)") {
		t.Errorf("what it waits for is not told:\n%s", table)
	}
	letStart(ns, "job-0-leader")
	pods := ns.WaitForPods(4, 30*time.Second, framework.IsReady)
	if text := gateFile(ns, 0); text != "job-0-leader 0\njob-0-worker 0\n" {
		t.Errorf("the file says %q", text)
	}
	for i := range pods {
		names := []string{}
		for _, container := range pods[i].Spec.InitContainers {
			names = append(names, container.Name)
		}
		want := map[string]string{"job-0-helper": "", "job-0-leader": naming.BarrierContainer, "job-0-worker": "fetch " + naming.BarrierContainer}[pods[i].Labels[labels.PodClique]]
		if got := strings.Join(names, " "); got != want {
			t.Errorf("pod %s has the init containers %q", pods[i].Name, got)
		}
	}
	finish(ns)
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, 30*time.Second)
}

// Scenario 36: the attempt fails once, however many pods waited; the message names who is
// missing; with no restart left the set fails.
func TestABarrierThatExpiresFailsTheAttemptOnce(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.PlayWaiters()
	ns.Apply(neverStart(barriered(1, "{timeoutAfterSeconds: 2, targetCliques: [leader, worker]}", "  workloadType: Training\n  trainingSpec: {maxRestarts: 1}"), "leader"))
	ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool { return pod.Labels[labels.RestartAttempt] == "1" })
	if events := ns.Kubectl("get", "events", "--field-selector", "reason=StartBarrierExpired", "-o", "jsonpath={.items[*].note}{.items[*].message}"); !containsAll(events, "job-0-leader: 0 of 1 pods have started") {
		t.Errorf("events: %s", events)
	}
	failed := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, time.Minute)
	c := meta.FindStatusCondition(failed.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
	if failed.Status.RestartCount != 1 || c == nil || !containsAll(c.Message, "all 1 restarts have been used", "the start barrier of job-0 has expired", "missing: job-0-leader-0-") {
		t.Errorf("%d restarts, %+v", failed.Status.RestartCount, c)
	}
}

// D21: in Inference the next attempt comes after a while, also without gang termination.
func TestABarrierThatExpiresInInferenceIsTriedAgain(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.PlayWaiters()
	ns.Apply(neverStart(barriered(1, "{timeoutAfterSeconds: 1, targetCliques: [leader, worker]}", ""), "leader"))
	ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool { return pod.Labels[labels.RestartAttempt] == "1" })
	letStart(ns, "job-0-leader")
	ns.WaitForPods(4, time.Minute, framework.IsReady)
}

// Scenarios 39 and 42: each replica for itself; a replacement passes at once.
func TestAReplacementPassesAGateThatIsOpen(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.PlayWaiters()
	ns.Apply(neverStart(barriered(2, targets, ""), "leader"))
	ns.WaitForPods(8, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	letStart(ns, "job-0-leader")
	ns.Eventually(30*time.Second, func(context.Context) error {
		if text := gateFile(ns, 0); text != "job-0-leader 0\njob-0-worker 0\n" {
			return errors.New("replica 0: " + text)
		}
		return nil
	})
	ns.Never(2*time.Second, func(context.Context) error {
		if text := gateFile(ns, 1); text != "" {
			return errors.New("replica 1: " + text)
		}
		return nil
	})
	all := ns.WaitForPods(8, time.Minute, func(*corev1.Pod) bool { return true })
	lost := podOf(t, all, "job-0-worker", "1")
	ns.Kubectl("delete", "pod", lost.Name, "--wait=false")
	// The other pods of this replica, and the helper of the other, are ready all the time.
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		for i := range pods {
			if pods[i].Labels[labels.PodClique] == "job-0-worker" && pods[i].Labels[labels.PodIndex] == "1" && pods[i].UID != lost.UID && framework.IsReady(&pods[i]) {
				return nil
			}
		}
		return errors.Join(err, errors.New("the replacement is not ready"))
	})
}

// Scenario 40.
func TestTheBarrierOpensAfterTheControllerWasDown(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.PlayWaiters()
	ns.Apply(neverStart(barriered(1, targets, "  workloadType: Training"), "leader"))
	ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	cluster.Stop(t, "copse-controller-manager")
	letStart(ns, "job-0-leader")
	ns.Eventually(30*time.Second, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err == nil && !waitsIn(podOf(t, pods, "job-0-leader", "0"), naming.BarrierContainer) {
			err = errors.New("the leader has not started")
		}
		return err
	})
	cluster.Start(t, "copse-controller-manager")
	ns.WaitForPods(4, time.Minute, framework.IsReady)
}

// Scenario 43.
func TestASetThatIsDeletedBeforeItsBarrierLeavesNothing(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.PlayWaiters()
	ns.Apply(neverStart(barriered(1, targets, "  workloadType: Training"), "leader"))
	ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	ns.Kubectl("delete", "pcs", "job", "--timeout=60s")
	ns.Eventually(time.Minute, func(context.Context) error {
		if left := ns.Kubectl("get", "pods,startgates,configmaps", "-l", labels.PartOf+"=job", "-o", "name"); left != "" {
			return errors.New(left)
		}
		return nil
	})
}

// A ConfigMap of somebody else is left alone; pods that reach the API do not need it.
func TestAForeignConfigMapIsLeftAlone(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.PlayWaiters()
	ns.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: job-0-group-scheduling}, data: {mine: \"1\"}}")
	ns.Apply(barriered(1, targets, "  workloadType: Training"))
	ns.WaitForPods(4, time.Minute, framework.IsReady)
	gate, err := cluster.Copse.GroveV1alpha1().StartGates(ns.Name).Get(t.Context(), "job-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(gate.Status.Conditions, grovev1alpha1.ConditionTypeNameConflict); c == nil || c.Status != metav1.ConditionTrue || !containsAll(c.Message, "ConfigMap job-0-group-scheduling") {
		t.Errorf("conditions %+v", gate.Status.Conditions)
	}
	if count := strings.Count(ns.Kubectl("get", "events.v1.events.k8s.io", "--field-selector", "reason=NameConflict", "-o", "name"), "\n"); count != 1 {
		t.Errorf("%d events tell of it", count)
	}
	if mine := ns.Kubectl("get", "configmap", "job-0-group-scheduling", "-o", "jsonpath={.data}"); mine != `{"mine":"1"}` {
		t.Errorf("it has become %s", mine)
	}
}

// Grove's order: all pods exist and have a place; the containers wait for those before.
func TestContainersStartInTheOrderOfTheCliques(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.PlayWaiters()
	ns.Apply(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: 1
  template:
    cliqueStartupType: CliqueStartupTypeExplicit
    cliques:
      - name: router
        annotations: {kwok.copse.dev/never-ready: "true"}
        spec: {replicas: 1, podSpec: {containers: [{name: main, image: example.com/router}]}}
      - name: leader
        annotations: {kwok.copse.dev/never-ready: "true"}
        spec: {replicas: 1, startsAfter: [router], podSpec: {containers: [{name: main, image: example.com/leader}]}}
      - name: worker
        spec: {replicas: 2, startsAfter: [leader], podSpec: {containers: [{name: main, image: example.com/worker}]}}
    podCliqueScalingGroups:
      - {name: group, cliqueNames: [leader, worker], replicas: 2, minAvailable: 2}
`)
	ns.WaitForPods(7, time.Minute, func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName != "" && (isRunning(pod) || waitsIn(pod, naming.OrderContainer))
	})
	runs := func(want int) {
		t.Helper()
		check := func(ctx context.Context) error {
			pods, err := ns.Pods(ctx)
			n := 0
			for i := range pods {
				if isRunning(&pods[i]) {
					n++
				}
			}
			if err == nil && n != want {
				err = fmt.Errorf("%d pods run, not %d", n, want)
			}
			return err
		}
		ns.Eventually(30*time.Second, check)
		ns.Never(time.Second, check)
	}
	runs(1)
	letReady(ns, "job-0-router", "")
	runs(3)
	letReady(ns, "job-0-group-1-leader", "")
	runs(5)
	letReady(ns, "job-0-group-0-leader", "")
	ns.WaitForPods(7, 30*time.Second, framework.IsReady)
}

// A set may have a name of which what belongs to it has a longer one than a label may be.
func TestASetWithALongNameHasAGateAndItsFile(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.PlayWaiters()
	name := strings.Repeat("j", validation.DNS1123LabelMaxLength-len("-0-helper-0"))
	ns.Apply(strings.Replace(barriered(1, targets, "  workloadType: Training"), "{name: job}", "{name: "+name+"}", 1))
	ns.WaitForPods(4, time.Minute, framework.IsReady)
	ns.Eventually(30*time.Second, func(ctx context.Context) error {
		file, err := cluster.Kube.CoreV1().ConfigMaps(ns.Name).Get(ctx, naming.GateConfigMap(name, 0), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if text := file.Data["started"]; text != name+"-0-leader 0\n"+name+"-0-worker 0\n" {
			return fmt.Errorf("the file says %q", text)
		}
		return nil
	})
}
