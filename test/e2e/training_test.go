package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// training is a set of workers that exit with 0 after a time.
func training(name string, replicas, workers int, exitAfter string) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: %s}
spec:
  replicas: %d
  workloadType: Training
  template:
    cliques:
      - name: worker
        annotations: {kwok.copse.dev/exit-after: %s}
        spec:
          replicas: %d
          podSpec:
            containers: [{name: main, image: example.com/trainer}]
`, name, replicas, exitAfter, workers)
}

// Seed 000's test plan: all pods exit 0 → phase Succeeded.
func TestTrainingSucceedsWhenAllPodsExitWithZero(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(training("job", 2, 3, "1s"))
	pcs := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute)

	status := pcs.Status
	if status.StartTime == nil || status.CompletionTime == nil || status.CompletionTime.Before(status.StartTime) {
		t.Errorf("startTime is %v, completionTime %v", status.StartTime, status.CompletionTime)
	}
	if !meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeSucceeded) {
		t.Errorf("conditions are %v", status.Conditions)
	}
	if status.SucceededReplicas != 2 || status.AvailablePods != 6 || status.Pods != 6 || status.RestartCount != 0 {
		t.Errorf("counts are %+v", status)
	}
	for _, clique := range []string{"job-0-worker", "job-1-worker"} {
		if got := ns.Kubectl("get", "pclq", clique, "-o", "jsonpath={.status.completedIndexes}"); got != "0-2" {
			t.Errorf("completedIndexes of %s are %q", clique, got)
		}
	}
	// Finished pods stay, so that their logs can be read.
	ns.WaitForPods(6, 5*time.Second, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	ns.Eventually(10*time.Second, func(context.Context) error {
		if n := strings.Count(ns.Kubectl("get", "events", "--field-selector", "reason=WorkloadSucceeded", "--no-headers"), "WorkloadSucceeded"); n != 1 {
			return fmt.Errorf("there are %d events WorkloadSucceeded", n)
		}
		return nil
	})
	ns.Describes("job", untouched(append(hasSucceeded(6), "replica 0: attempt 0, Succeeded", "replica 1: attempt 0, Succeeded", "Succeeded Replicas: 2")...)...)
}

// Seed 000's test plan: single pod failure with maxRestarts 0 → Failed; all pods are
// terminated before the phase is set.
func TestTrainingFailsWhenAPodFailsAndNoRestartIsLeft(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(training("job", 1, 4, "1h"))
	pods := ns.WaitForPods(4, time.Minute, framework.IsReady)
	victim, why := pods[2].Name, below("job-0-worker", 3, 4, failedWith(&pods[2], "exit code 137, OOMKilled"))
	ns.Kubectl("annotate", "pod", victim, "--overwrite", "kwok.copse.dev/exit-after=0s", "kwok.copse.dev/exit-code=137", "kwok.copse.dev/exit-reason=OOMKilled")

	pcs := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, time.Minute)
	failed := meta.FindStatusCondition(pcs.Status.Conditions, grovev1alpha1.ConditionTypeFailed)
	if failed == nil || failed.Reason != grovev1alpha1.ReasonMaxRestartsExceeded {
		t.Fatalf("condition Failed is %+v", failed)
	}
	// Only the failed pod is left to read; those that ran were terminated before.
	left, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range left {
		if left[i].Name != victim {
			t.Errorf("pod %s is still there in phase %s", left[i].Name, left[i].Status.Phase)
		}
	}
	if len(left) == 0 {
		t.Error("the failed pod is gone, so nobody can read its logs")
	}
	ns.Describes("job", lines([]string{"Warning PodFailed: " + failedWith(&pods[2], "exit code 137, OOMKilled"), "Warning PodCliqueFailed: " + why},
		hasFailed(grovev1alpha1.ReasonMaxRestartsExceeded, "no restart is allowed; replica 0: "+why+"*"),
		untouched("replica 0: attempt 0, Failed"))...)
}

// A lost pod is a failure: nobody can say that its work was done.
func TestTrainingFailsWhenAPodIsDeletedUnderIt(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(training("job", 1, 3, "1h"))
	pods := ns.WaitForPods(3, time.Minute, framework.IsReady)
	ns.Eventually(10*time.Second, func(context.Context) error {
		if got := ns.Kubectl("get", "pclq", "job-0-worker", "-o", "jsonpath={.status.createdReplicas}"); got != "3" {
			return fmt.Errorf("createdReplicas is %s", got)
		}
		return nil
	})
	// It takes a while to go, as most do.
	ns.Kubectl("annotate", "pod", pods[1].Name, "kwok.copse.dev/terminating-for=2s")
	ns.Kubectl("delete", "pod", pods[1].Name, "--wait=false")
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, time.Minute)
	why := below("job-0-worker", 2, 3, pods[1].Name+" is being deleted on node "+pods[1].Spec.NodeName)
	ns.Describes("job", lines([]string{"Warning PodCliqueFailed: " + why}, hasFailed(grovev1alpha1.ReasonMaxRestartsExceeded, "no restart is allowed; replica 0: "+why+"*"))...)
}

// A job that is deleted and made again under the same name starts from nothing.
func TestTrainingCanBeDeletedAndMadeAgainUnderTheSameName(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(training("job", 1, 3, "1s"))
	first := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute)
	ns.Describes("job", hasSucceeded(3)...)
	ns.Kubectl("delete", "pcs", "job", "--timeout=60s")
	for _, kind := range []string{"pods", "pclq", "pg", "pcsg", "svc"} {
		if out := ns.Kubectl("get", kind, "-o", "name"); out != "" {
			t.Errorf("the deleted set left %s", out)
		}
	}
	ns.Apply(training("job", 1, 3, "1h"))
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	second := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetRunning, time.Minute)
	if second.UID == first.UID || second.Status.CompletionTime != nil || len(second.Status.Conditions) != 0 {
		t.Errorf("the new set carries the old one's state: %+v", second.Status)
	}
	ns.Describes("job", untouched("Phase: Running", "replica 0: attempt 0, Running", "no Completion Time: *", "no Succeeded=*", "no * WorkloadSucceeded: *")...)
	// And while it runs.
	ns.Kubectl("delete", "pcs", "job", "--timeout=60s")
	if out := ns.Kubectl("get", "pods", "-o", "name"); out != "" {
		t.Errorf("the deleted set left %s", out)
	}
}

// Exit 0 of some pods is no success, and the finished ones are not made again.
func TestTrainingKeepsRunningUntilTheLastPodHasFinished(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(training("job", 1, 3, "1h"))
	pods := ns.WaitForPods(3, time.Minute, framework.IsReady)
	ns.Kubectl("annotate", "pod", pods[0].Name, pods[1].Name, "--overwrite", "kwok.copse.dev/exit-after=0s")
	ns.Eventually(time.Minute, func(context.Context) error {
		if got := ns.Kubectl("get", "pclq", "job-0-worker", "-o", "jsonpath={.status.completedIndexes}"); got != "0-1" {
			return fmt.Errorf("completedIndexes is %q", got)
		}
		return nil
	})
	if phase := ns.Set("job").Status.Phase; phase != grovev1alpha1.PodCliqueSetRunning {
		t.Errorf("phase is %s", phase)
	}
	ns.Describes("job", untouched("Phase: Running", "replica 0: attempt 0, Running", "Available Pods: 3", "no Succeeded=*", "no Warning *")...)
	// A finished pod that somebody cleans up stays finished.
	ns.Kubectl("delete", "pod", pods[0].Name)
	ns.Kubectl("annotate", "pod", pods[2].Name, "--overwrite", "kwok.copse.dev/exit-after=0s")
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute)
	ns.WaitForPods(2, 5*time.Second, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	ns.Describes("job", untouched(append(hasSucceeded(3), "replica 0: attempt 0, Succeeded", "no Warning *")...)...)
}
