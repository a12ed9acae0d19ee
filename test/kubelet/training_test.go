package kubelet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// Containers that exit with 0 make the set Succeeded, and what they wrote can be read then.
func TestTrainingSucceedsWhenContainersExitWithZero(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	apply(t, ns, set(grovev1alpha1.WorkloadTypeTraining, 3, onRealNode(
		// A pod that finished before the others has to stay finished until they have.
		runs("main", "env", "when="+indexVariable+":2", "sleep=3s", "sleep=500ms", "exit=0"),
	)))
	status := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, patience).Status
	ns.Describes("job", hasSucceeded(3, "Restart Count: 0", "replica 0: attempt 0, Succeeded", "no Warning *")...)
	if status.SucceededReplicas != 1 || status.RestartCount != 0 {
		t.Errorf("the status is %+v", status)
	}
	clique := ns.PodClique("job-0-worker")
	if clique.Status.CompletedIndexes != "0-2" || len(clique.Status.FailedIndexes) != 0 {
		t.Errorf("the status of the clique is %+v", clique.Status)
	}
	for _, pod := range ns.WaitForPods(3, patience, hasPhase(corev1.PodSucceeded)) {
		if pod.Spec.NodeName != cluster.RealNode.Name {
			t.Errorf("%s ran on %s", pod.Name, pod.Spec.NodeName)
		}
		if want := indexVariable + "=" + pod.Labels[labels.PodIndex]; !strings.Contains(ns.Kubectl("logs", pod.Name), want) {
			t.Errorf("%s did not see %s", pod.Name, want)
		}
	}
}

// A container that fails fails the set, which says with what code and where.
func TestTrainingFailsWithTheExitCodeOfAContainer(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	apply(t, ns, set(grovev1alpha1.WorkloadTypeTraining, 2, onRealNode(
		runs("main", "when="+indexVariable+":1", "sleep=1s", "when="+indexVariable+":1", "exit=3", "wait-term"),
	)))
	status := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, patience).Status
	failed := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeFailed)
	if failed == nil || failed.Reason != grovev1alpha1.ReasonMaxRestartsExceeded {
		t.Fatalf("condition Failed is %+v", failed)
	}
	// The one that was told to go goes, and the one that failed stays to be read.
	victim := podOf(t, ns.WaitForPods(1, patience, hasPhase(corev1.PodFailed)), "1")
	ns.WaitForPods(0, patience, func(pod *corev1.Pod) bool { return pod.UID != victim.UID })
	cause := victim.Name + " failed (exit code 3) on node " + cluster.RealNode.Name
	ns.Describes("job", hasFailed(cause, "Warning PodFailed: "+cause)...)
}

// A container that takes more memory than its limit is killed by the kernel. The gang is
// restarted, once, and succeeds.
func TestTrainingRestartsWhenTheKernelKillsAContainer(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	worker := runs("main",
		"when="+attemptVariable+":0", "when="+indexVariable+":1", "allocate=256",
		"when="+attemptVariable+":0", "wait-term", "sleep=500ms", "exit=0")
	worker.Resources.Limits = corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("48Mi"), corev1.ResourceCPU: resource.MustParse("100m"),
	}
	pcs := set(grovev1alpha1.WorkloadTypeTraining, 3, onRealNode(worker))
	pcs.Spec.TrainingSpec = &grovev1alpha1.TrainingSpec{MaxRestarts: ptr.To[int32](1)}
	apply(t, ns, pcs)

	status := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, patience).Status
	if status.RestartCount != 1 || status.ReplicaStatuses[0].Attempt != 1 {
		t.Errorf("restartCount is %d, the replica's attempt %d", status.RestartCount, status.ReplicaStatuses[0].Attempt)
	}
	for _, pod := range ns.WaitForPods(3, patience, hasPhase(corev1.PodSucceeded)) {
		if pod.Labels[labels.RestartAttempt] != "1" {
			t.Errorf("%s of attempt %s is still there", pod.Name, pod.Labels[labels.RestartAttempt])
		}
	}
	cause := "job-0-worker-1-* failed (exit code 137, OOMKilled) on node " + cluster.RealNode.Name
	why := "job-0-worker: 2 of 3 pods are available, at least 3 are needed: " + cause
	ns.Describes("job", hasSucceeded(3, "Warning PodFailed: "+cause, "Warning PodCliqueFailed: "+why, "Normal ReplicaRestarting: replica 0, restart 1 of 1: "+why+"*",
		"Restarting=False *: replica 0, restart 1 of 1: "+why+"*", "Restart Count: 1", "replica 0: attempt 1, Succeeded")...)
}

// An init container that fails ends its pod, and the set says so.
func TestTrainingFailsWhenAnInitContainerFails(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	pod := onRealNode(runs("main", "wait-term"))
	pod.InitContainers = []corev1.Container{runs("fetch", "sleep=500ms", "when="+indexVariable+":0", "exit=5")}
	apply(t, ns, set(grovev1alpha1.WorkloadTypeTraining, 2, pod))
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, patience)
	cause := "job-0-worker-0-* failed (fetch exit code 5) on node " + cluster.RealNode.Name
	ns.Describes("job", hasFailed(cause, "Warning PodFailed: "+cause)...)
}

func hasPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Status.Phase == phase }
}
