package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

// restartable is a training set of a launcher and workers that run until they are told
// to end.
func restartable(replicas, workers int, spec, template string) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: %d
  workloadType: Training
  trainingSpec: {%s}
  template:
    cliques:
      - name: launcher
        spec:
          replicas: 1
          podSpec:
            containers: [{name: main, image: example.com/trainer}]
      - name: worker
        spec:
          replicas: %d
          podSpec:
            containers: [{name: main, image: example.com/trainer}]
%s
`, replicas, spec, workers, template)
}

// fail ends a pod as a container that exits with a code would.
func fail(ns *framework.Namespace, pod string, code int) {
	ns.Kubectl("annotate", "pod", pod, "--overwrite", "kwok.copse.dev/exit-after=0s", fmt.Sprintf("kwok.copse.dev/exit-code=%d", code))
}

// finish lets all pods that run exit with 0.
func finish(ns *framework.Namespace) {
	ns.Kubectl("annotate", "pods", "--all", "--overwrite", "kwok.copse.dev/exit-after=0s", "kwok.copse.dev/exit-code=0")
}

// inAttempt are pods of an attempt that are Ready.
func inAttempt(attempt string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return pod.Labels[labels.RestartAttempt] == attempt && pod.DeletionTimestamp == nil && framework.IsReady(pod)
	}
}

// podOf is the pod of an index of a clique.
func podOf(t *testing.T, pods []corev1.Pod, clique, index string) *corev1.Pod {
	t.Helper()
	for i := range pods {
		if pods[i].Labels[labels.PodClique] == clique && pods[i].Labels[labels.PodIndex] == index {
			return &pods[i]
		}
	}
	t.Fatalf("there is no pod %s of %s", index, clique)
	return nil
}

func uids(pods []corev1.Pod, clique string) map[types.UID]bool {
	out := map[types.UID]bool{}
	for i := range pods {
		if strings.HasPrefix(pods[i].Labels[labels.PodClique], clique) {
			out[pods[i].UID] = true
		}
	}
	return out
}

// contains says that describe tells a story.
func describes(t *testing.T, ns *framework.Namespace, parts ...string) {
	t.Helper()
	ns.Eventually(10*time.Second, func(context.Context) error {
		describe := ns.Kubectl("describe", "pcs")
		for _, part := range parts {
			if !strings.Contains(describe, part) {
				return fmt.Errorf("describe lacks %q:\n%s", part, describe)
			}
		}
		return nil
	})
}

// Seed 000's test plan: restart and eventual success within the maxRestarts budget.
func TestTrainingRestartsAndSucceedsWithinItsBudget(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(1, 3, "maxRestarts: 2", ""))
	first := ns.WaitForPods(4, time.Minute, inAttempt("0"))
	started := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetRunning, time.Minute).Status.StartTime
	victim := podOf(t, first, "job-0-worker", "1").Name
	fail(ns, victim, 42)

	second := ns.WaitForPods(4, time.Minute, inAttempt("1"))
	for i := range second {
		if uids(first, "job")[second[i].UID] {
			t.Errorf("pod %s of the first attempt is in the second", second[i].Name)
		}
	}
	finish(ns)
	status := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute).Status
	if status.RestartCount != 1 || status.ReplicaStatuses[0].Attempt != 1 {
		t.Errorf("restartCount is %d, the replica's attempt %d", status.RestartCount, status.ReplicaStatuses[0].Attempt)
	}
	if !status.StartTime.Equal(started) {
		t.Errorf("startTime was %v and is %v", started, status.StartTime)
	}
	describes(t, ns, "PodCliqueFailed", victim, "exit code 42", "ReplicaRestarting", "restart 1 of 2", "WorkloadSucceeded")
}

// With budget n there are n restarts; the next failure fails the workload.
func TestTrainingRestartsAsOftenAsItsBudgetAllowsAndThenFails(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(1, 2, "maxRestarts: 2", ""))
	for attempt := range 3 {
		pods := ns.WaitForPods(3, time.Minute, inAttempt(fmt.Sprint(attempt)))
		fail(ns, podOf(t, pods, "job-0-worker", "0").Name, 1)
	}
	status := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, time.Minute).Status
	failed := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeFailed)
	if status.RestartCount != 2 || failed.Reason != grovev1alpha1.ReasonMaxRestartsExceeded {
		t.Errorf("restartCount is %d, reason %s", status.RestartCount, failed.Reason)
	}
	describes(t, ns, "restart 1 of 2", "restart 2 of 2", "all 2 restarts have been used")
}

// One wave of failures is one restart, and a late failure of the old wave costs nothing.
func TestManyFailuresAtOnceAreOneRestart(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(1, 7, "maxRestarts: 5", ""))
	ns.WaitForPods(8, time.Minute, inAttempt("0"))
	ns.Kubectl("annotate", "pods", "--all", "--overwrite", "kwok.copse.dev/exit-after=0s", "kwok.copse.dev/exit-code=1")
	ns.WaitForPods(8, time.Minute, inAttempt("1"))
	ns.Never(2*time.Second, func(context.Context) error {
		if n := ns.Set("job").Status.RestartCount; n != 1 {
			return fmt.Errorf("restartCount is %d", n)
		}
		return nil
	})
}

// A replica restarts as a whole, with its scaling groups; the others are left alone.
func TestTrainingRestartsTheFailedReplicaAlone(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(2, 2, "maxRestarts: 3", `
    podCliqueScalingGroups: [{name: group, cliqueNames: [worker], replicas: 2}]`))
	first := ns.WaitForPods(10, time.Minute, inAttempt("0"))
	healthy := uids(first, "job-1-")
	fail(ns, podOf(t, first, "job-0-group-1-worker", "0").Name, 1)

	second := ns.WaitForPods(5, time.Minute, inAttempt("1"))
	for i := range second {
		if inAttempt("1")(&second[i]) && !strings.HasPrefix(second[i].Name, "job-0-") {
			t.Errorf("pod %s has been made anew", second[i].Name)
		}
	}
	for uid := range uids(ns.WaitForPods(5, time.Minute, inAttempt("0")), "job-1-") {
		delete(healthy, uid)
	}
	if len(healthy) > 0 {
		t.Errorf("%d pods of the healthy replica were replaced", len(healthy))
	}
	status := ns.Set("job").Status
	if status.RestartCount != 1 || status.ReplicaStatuses[0].Attempt != 1 || status.ReplicaStatuses[1].Attempt != 0 {
		t.Errorf("restartCount is %d, replicas %+v", status.RestartCount, status.ReplicaStatuses)
	}
}

// Seed 000's test plan: maxRuntime exceeded → all pods terminated, phase Failed. The clock
// runs over restarts.
func TestTrainingFailsWhenMaxRuntimeHasPassed(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(1, 2, "maxRestarts: 5, maxRuntime: 8s", ""))
	pods := ns.WaitForPods(3, time.Minute, inAttempt("0"))
	fail(ns, podOf(t, pods, "job-0-worker", "0").Name, 1)
	ns.WaitForPods(3, time.Minute, inAttempt("1"))

	status := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, time.Minute).Status
	failed := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeFailed)
	if failed.Reason != grovev1alpha1.ReasonMaxRuntimeExceeded {
		t.Fatalf("condition Failed is %+v", failed)
	}
	target := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
	if ran := target.LastTransitionTime.Sub(status.StartTime.Time); ran < 8*time.Second || ran > 11*time.Second {
		t.Errorf("the decision came %v after the start", ran)
	}
	left, err := ns.Pods(t.Context())
	if err != nil || len(left) != 0 {
		t.Errorf("%d pods are left, error %v", len(left), err)
	}
	describes(t, ns, "MaxRuntimeExceeded", "WorkloadFailed")
}

// A pod within the tolerance of minAvailable is replaced, and costs no restart.
func TestTrainingReplacesAPodThatItCanDoWithout(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(strings.Replace(restartable(1, 3, "maxRestarts: 1", ""), "replicas: 3\n", "replicas: 3\n          minAvailable: 2\n", 1))
	first := ns.WaitForPods(4, time.Minute, inAttempt("0"))
	victim := podOf(t, first, "job-0-worker", "2")
	fail(ns, victim.Name, 1)
	ns.Eventually(time.Minute, func(context.Context) error {
		again, err := ns.Pods(t.Context())
		if err != nil {
			return err
		}
		for i := range again {
			if again[i].Name == victim.Name && again[i].UID != victim.UID && framework.IsReady(&again[i]) {
				return nil
			}
		}
		return fmt.Errorf("the failed pod has not been replaced")
	})
	if n := ns.Set("job").Status.RestartCount; n != 0 {
		t.Errorf("restartCount is %d", n)
	}
	ns.Eventually(10*time.Second, func(context.Context) error {
		if recovered := ns.Kubectl("get", "pclq", "job-0-worker", "-o", "jsonpath={.status.failedIndexes[0].recoveredTime}"); recovered == "" {
			return fmt.Errorf("the index has not recovered")
		}
		return nil
	})
	finish(ns)
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute)
}

// With a delay a breach may heal; only what lasts ends the attempt, and not before.
func TestTrainingWaitsForItsTerminationDelay(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(1, 2, "maxRestarts: 1", "    terminationDelay: 4s"))
	pods := ns.WaitForPods(3, time.Minute, inAttempt("0"))
	victim := podOf(t, pods, "job-0-worker", "0").Name
	waitWasAvailable(ns, "job-0-worker")

	ns.Kubectl("annotate", "pod", victim, "kwok.copse.dev/never-ready=true")
	breached := func(want string) func(context.Context) error {
		return func(context.Context) error {
			if got := ns.Kubectl("get", "pclq", "job-0-worker", "-o", `jsonpath={.status.conditions[?(@.type=="MinAvailableBreached")].status}`); got != want {
				return fmt.Errorf("breached: %s", got)
			}
			return nil
		}
	}
	ns.Eventually(10*time.Second, breached("True"))
	ns.Kubectl("annotate", "pod", victim, "kwok.copse.dev/never-ready-")
	ns.Eventually(10*time.Second, breached("False"))
	ns.Never(5*time.Second, func(context.Context) error {
		if n := ns.Set("job").Status.RestartCount; n != 0 {
			return fmt.Errorf("restartCount is %d", n)
		}
		return nil
	})

	began := time.Now()
	ns.Kubectl("annotate", "pod", victim, "kwok.copse.dev/never-ready=true")
	ns.WaitForPods(3, time.Minute, inAttempt("1"))
	if waited := time.Since(began); waited < 4*time.Second {
		t.Errorf("the restart came after %v", waited)
	}
}

// No pod of the new attempt is made while one of the old one is there, in any clique.
func TestARestartWaitsForTheLastOldPod(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	manifest := strings.Replace(restartable(1, 2, "maxRestarts: 1", ""), "- name: launcher", "- name: launcher\n        annotations: {kwok.copse.dev/terminating-for: 4s}", 1)
	ns.Apply(manifest)
	pods := ns.WaitForPods(3, time.Minute, inAttempt("0"))
	launcher := podOf(t, pods, "job-0-launcher", "0")
	fail(ns, podOf(t, pods, "job-0-worker", "0").Name, 1)
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		now, err := ns.Pods(ctx)
		if err != nil {
			return err
		}
		old, made := false, 0
		for i := range now {
			old = old || now[i].UID == launcher.UID
			if now[i].Labels[labels.RestartAttempt] == "1" {
				made++
			}
		}
		if old && made > 0 {
			t.Errorf("%d pods of the new attempt are there beside the old launcher", made)
		}
		if made < 3 {
			return fmt.Errorf("%d pods of the new attempt", made)
		}
		return nil
	})
}

// A pod on a node that is gone ends for nobody: it does not hold up the restart.
func TestAPodOnADeadNodeDoesNotHoldUpARestart(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const units = "example.com/doomed"
	addNode(t, "doomed", units, "1")
	manifest := strings.Replace(restartable(1, 2, "maxRestarts: 1", ""), "containers: [{name: main, image: example.com/trainer}]",
		"terminationGracePeriodSeconds: 1\n            tolerations: [{key: example.com/doomed, operator: Exists}]\n            containers: [{name: main, image: example.com/trainer, resources: {limits: {example.com/doomed: 1}}}]", 1)
	manifest = strings.Replace(manifest, "- name: launcher", "- name: launcher\n        annotations: {kwok.copse.dev/terminating-for: 1h}", 1)
	ns.Apply(manifest)
	pods := ns.WaitForPods(3, time.Minute, inAttempt("0"))
	fail(ns, podOf(t, pods, "job-0-worker", "0").Name, 1)
	describesWithin := time.Minute + 30*time.Second
	ns.Eventually(describesWithin, func(context.Context) error {
		if out := ns.Kubectl("describe", "pcs", "job"); !strings.Contains(out, "PodsStuckTerminating") || !strings.Contains(out, "job-0-launcher-0") {
			return fmt.Errorf("describe does not name the pod that is stuck:\n%s", out)
		}
		return nil
	})
	ns.Anywhere().Kubectl("delete", "node", "doomed")
	addNode(t, "doomed-not", units, "1")
	ns.WaitForPods(3, time.Minute, inAttempt("1"))
	ns.Eventually(10*time.Second, func(context.Context) error {
		if out := ns.Kubectl("describe", "pcs", "job"); strings.Contains(out, "PodsStuckTerminating") {
			return fmt.Errorf("the condition is still there:\n%s", out)
		}
		return nil
	})
}

// Lowering the budget acts at the next failure, raising it as well.
func TestTheBudgetMayBeChangedWhileTheJobRuns(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(1, 1, "maxRestarts: 0", ""))
	ns.WaitForPods(2, time.Minute, inAttempt("0"))
	ns.Apply(restartable(1, 1, "maxRestarts: 3", ""))
	fail(ns, podOf(t, ns.WaitForPods(2, time.Minute, inAttempt("0")), "job-0-worker", "0").Name, 1)
	pods := ns.WaitForPods(2, time.Minute, inAttempt("1"))
	ns.Apply(restartable(1, 1, "maxRestarts: 1", ""))
	fail(ns, podOf(t, pods, "job-0-worker", "0").Name, 1)
	if n := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, time.Minute).Status.RestartCount; n != 1 {
		t.Errorf("restartCount is %d", n)
	}
}
