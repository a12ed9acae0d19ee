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

// Seed 000's test plan: restart and eventual success within the maxRestarts budget.
func TestTrainingRestartsAndSucceedsWithinItsBudget(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(1, 3, "maxRestarts: 2", ""))
	first := ns.WaitForPods(4, time.Minute, inAttempt("0"))
	started := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetRunning, time.Minute).Status.StartTime
	victim := podOf(t, first, "job-0-worker", "1")
	fail(ns, victim.Name, 42)

	second := ns.WaitForPods(4, time.Minute, inAttempt("1"))
	for i := range second {
		if uids(first, "job")[second[i].UID] {
			t.Errorf("pod %s of the first attempt is in the second", second[i].Name)
		}
	}
	cause := failedWith(victim, "exit code 42")
	story := restarted(0, 1, 1, 2, below("job-0-worker", 2, 3, cause))
	ns.Describes("job", lines([]string{"Warning PodFailed: " + cause}, story)...)
	finish(ns)
	status := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute).Status
	if status.RestartCount != 1 || status.ReplicaStatuses[0].Attempt != 1 {
		t.Errorf("restartCount is %d, the replica's attempt %d", status.RestartCount, status.ReplicaStatuses[0].Attempt)
	}
	if !status.StartTime.Equal(started) {
		t.Errorf("startTime was %v and is %v", started, status.StartTime)
	}
	ns.Describes("job", lines(story[:3], hasSucceeded(4), []string{"replica 0: attempt 1, Succeeded", "Restart Count: 1"})...)
}

// With budget n there are n restarts; the next failure fails the workload.
func TestTrainingRestartsAsOftenAsItsBudgetAllowsAndThenFails(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(1, 2, "maxRestarts: 2", ""))
	var story []string
	why := ""
	for attempt := range 3 {
		victim := podOf(t, ns.WaitForPods(3, time.Minute, inAttempt(fmt.Sprint(attempt))), "job-0-worker", "0")
		fail(ns, victim.Name, 1)
		why = below("job-0-worker", 1, 2, failedWith(victim, "exit code 1"))
		if attempt < 2 {
			story = append(story, restarts(0, attempt+1, 2, why)...)
		}
	}
	status := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, time.Minute).Status
	failed := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeFailed)
	if status.RestartCount != 2 || failed.Reason != grovev1alpha1.ReasonMaxRestartsExceeded {
		t.Errorf("restartCount is %d, reason %s", status.RestartCount, failed.Reason)
	}
	ns.Describes("job", lines(story, []string{"Warning PodCliqueFailed: " + why},
		hasFailed(grovev1alpha1.ReasonMaxRestartsExceeded, "all 2 restarts have been used; replica 0: "+why+"*"),
		[]string{"replica 0: attempt 2, Failed", "Restart Count: 2"})...)
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
	// Whichever was seen first is the cause.
	ns.Describes("job", lines([]string{"Warning PodFailed: job-0-* failed (exit code 1) on node *"},
		restarted(0, 1, 1, 5, "job-0-*: * pods are available, at least * are needed: job-0-* failed (exit code 1) on node *"),
		[]string{"no * ReplicaRestarting: *restart 2 of 5*"})...)
}

// A replica restarts as a whole, with its scaling groups; the others are left alone.
func TestTrainingRestartsTheFailedReplicaAlone(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(2, 2, "maxRestarts: 3", `
    podCliqueScalingGroups: [{name: group, cliqueNames: [worker], replicas: 2}]`))
	first := ns.WaitForPods(10, time.Minute, inAttempt("0"))
	healthy := uids(first, "job-1-")
	victim := podOf(t, first, "job-0-group-1-worker", "0")
	fail(ns, victim.Name, 1)

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
	ns.Describes("job", lines(restarted(0, 1, 1, 3, below("job-0-group-1-worker", 1, 2, failedWith(victim, "exit code 1"))),
		[]string{"replica 1: attempt 0, Running", "no * ReplicaRestarting: replica 1, *"})...)
}

// Each of several replicas that fail at once is restarted, and told of, though one write may
// have decided it for all.
func TestReplicasThatFailAtOnceAreAllRestarted(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(3, 1, "maxRestarts: 4", ""))
	ns.WaitForPods(6, time.Minute, inAttempt("0"))
	ns.Kubectl("annotate", "pods", "--all", "--overwrite", "kwok.copse.dev/exit-after=0s", "kwok.copse.dev/exit-code=3")
	ns.WaitForPods(6, time.Minute, inAttempt("1"))
	for replica := range 3 {
		why := fmt.Sprintf("job-%d-*: 0 of 1 pods are available, at least 1 are needed: job-%d-* failed (exit code 3) on node *", replica, replica)
		ns.Describes("job", "Warning PodFailed: job-"+fmt.Sprint(replica)+"-* failed (exit code 3) on node *",
			fmt.Sprintf("Normal ReplicaRestarting: replica %d, restart * of 4: %s", replica, why), fmt.Sprintf("replica %d: attempt 1, Running", replica))
	}
	ns.Describes("job", "Restart Count: 3", "Normal ReplicaRestarting: * restart 1 of 4: *", "Normal ReplicaRestarting: * restart 2 of 4: *", "Normal ReplicaRestarting: * restart 3 of 4: *")
}

// Seed 000's test plan: maxRuntime exceeded → all pods terminated, phase Failed. The clock
// runs over restarts.
func TestTrainingFailsWhenMaxRuntimeHasPassed(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(1, 2, "maxRestarts: 5, maxRuntime: 8s", ""))
	victim := podOf(t, ns.WaitForPods(3, time.Minute, inAttempt("0")), "job-0-worker", "0")
	fail(ns, victim.Name, 1)
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
	ns.Describes("job", lines(restarts(0, 1, 5, below("job-0-worker", 1, 2, failedWith(victim, "exit code 1"))),
		hasFailed(grovev1alpha1.ReasonMaxRuntimeExceeded, "the workload has run for longer than maxRuntime, 8s, since "+status.StartTime.UTC().Format(time.RFC3339)),
		[]string{"replica 0: attempt 1, Failed", "Restart Count: 1"})...)
}

// A pod within the tolerance of minAvailable is replaced, and costs no restart: one that
// failed, and one that somebody has deleted.
func TestTrainingReplacesAPodThatItCanDoWithout(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(strings.Replace(restartable(1, 3, "maxRestarts: 1", ""), "replicas: 3\n", "replicas: 3\n          minAvailable: 1\n", 1))
	first := ns.WaitForPods(4, time.Minute, inAttempt("0"))
	victim, deleted := podOf(t, first, "job-0-worker", "2"), podOf(t, first, "job-0-worker", "1")
	waitWasAvailable(ns, "job-0-worker")
	fail(ns, victim.Name, 1)
	ns.Kubectl("delete", "pod", deleted.Name)
	ns.WaitForPods(2, time.Minute, func(pod *corev1.Pod) bool {
		return (pod.Name == victim.Name && pod.UID != victim.UID || pod.Name == deleted.Name && pod.UID != deleted.UID) && framework.IsReady(pod)
	})
	if n := ns.Set("job").Status.RestartCount; n != 0 {
		t.Errorf("restartCount is %d", n)
	}
	for _, cause := range []string{failedWith(victim, "exit code 1"), "the pod of index 1 of job-0-worker is gone"} {
		ns.Describes("job", untouched("Warning PodFailed: "+cause, "Normal PodRecovered: job-0-worker: *is Ready again, *s after: "+cause+"*", "no * PodCliqueFailed: *")...)
	}
	finish(ns)
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute)
	ns.Describes("job", untouched(hasSucceeded(4)...)...)
}

// With a delay a breach may heal; only what lasts ends the attempt, and not before.
func TestTrainingWaitsForItsTerminationDelay(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(1, 2, "maxRestarts: 1", "    terminationDelay: 4s"))
	pods := ns.WaitForPods(3, time.Minute, inAttempt("0"))
	worker := podOf(t, pods, "job-0-worker", "0")
	victim, why := worker.Name, below("job-0-worker", 1, 2, notReady(worker))
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
	healed := []string{"Warning PodCliqueFailed: " + why, "Normal MinAvailableRestored: job-0-worker: 2 of 2 pods are available, at least 2 are needed, after a breach of *s"}
	ns.Describes("job", untouched(healed...)...)

	began := time.Now()
	ns.Kubectl("annotate", "pod", victim, "kwok.copse.dev/never-ready=true")
	ns.WaitForPods(3, time.Minute, inAttempt("1"))
	if waited := time.Since(began); waited < 4*time.Second {
		t.Errorf("the restart came after %v", waited)
	}
	ns.Describes("job", lines(healed, restarted(0, 1, 1, 1, why+", for *s")[1:])...)
}

// No pod of the new attempt is made while one of the old one is there, in any clique.
func TestARestartWaitsForTheLastOldPod(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	manifest := strings.Replace(restartable(1, 2, "maxRestarts: 1", ""), "- name: launcher", "- name: launcher\n        annotations: {kwok.copse.dev/terminating-for: 4s}", 1)
	ns.Apply(manifest)
	pods := ns.WaitForPods(3, time.Minute, inAttempt("0"))
	launcher, victim := podOf(t, pods, "job-0-launcher", "0"), podOf(t, pods, "job-0-worker", "0")
	fail(ns, victim.Name, 1)
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
	ns.Describes("job", restarted(0, 1, 1, 1, below("job-0-worker", 1, 2, failedWith(victim, "exit code 1")))...)
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
	victim, launcher := podOf(t, pods, "job-0-worker", "0"), podOf(t, pods, "job-0-launcher", "0").Name
	fail(ns, victim.Name, 1)
	why, stuck := below("job-0-worker", 1, 2, failedWith(victim, "exit code 1")), "job-0-launcher: still there 30s after their grace period: "+launcher+" on node doomed"
	ns.DescribesWithin(90*time.Second, "job", lines(restarts(0, 1, 1, why), []string{
		"Warning PodsStuckTerminating: " + stuck, "PodsStuckTerminating=True PodsTerminating: " + stuck, "Restarting=True ReplicaRestarting: replica 0, restart 1 of 1: " + why + "*",
	})...)
	ns.Anywhere().Kubectl("delete", "node", "doomed")
	addNode(t, "doomed-not", units, "1")
	ns.WaitForPods(3, time.Minute, inAttempt("1"))
	ns.Describes("job", lines(restarted(0, 1, 1, 1, why), []string{
		"Warning PodsStuckTerminating: " + stuck, "Warning PodForceDeleted: " + launcher + " on node doomed, which is gone: it is force-deleted", "no PodsStuckTerminating=*",
	})...)
}

// Lowering the budget acts at the next failure, raising it as well. A change that is refused
// does nothing.
func TestTheBudgetMayBeChangedWhileTheJobRuns(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(restartable(1, 1, "maxRestarts: 0", ""))
	ns.WaitForPods(2, time.Minute, inAttempt("0"))
	ns.Apply(restartable(1, 1, "maxRestarts: 3", ""))
	if refused := ns.ApplyFails(strings.ReplaceAll(restartable(1, 1, "maxRestarts: 3", ""), "trainer", "other")); !strings.Contains(refused, "immutable") {
		t.Errorf("the refusal says %s", refused)
	}
	ns.Describes("job", untouched("Phase: Running", "Observed Generation: 2", "replica 0: attempt 0, Running", "no UpdatePending=*")...)
	first := podOf(t, ns.WaitForPods(2, time.Minute, inAttempt("0")), "job-0-worker", "0")
	fail(ns, first.Name, 1)
	second := podOf(t, ns.WaitForPods(2, time.Minute, inAttempt("1")), "job-0-worker", "0")
	ns.Apply(restartable(1, 1, "maxRestarts: 1", ""))
	fail(ns, second.Name, 1)
	if n := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, time.Minute).Status.RestartCount; n != 1 {
		t.Errorf("restartCount is %d", n)
	}
	why := func(victim *corev1.Pod) string { return below("job-0-worker", 0, 1, failedWith(victim, "exit code 1")) }
	ns.Describes("job", lines(restarts(0, 1, 3, why(first)), hasFailed(grovev1alpha1.ReasonMaxRestartsExceeded, "all 1 restarts have been used; replica 0: "+why(second)+"*"))...)
}
