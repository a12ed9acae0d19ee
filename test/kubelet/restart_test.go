package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

// D8: with OnFailure it is the kubelet that starts a container again, and a loop of that
// breaks the index. The workers are never available, so that nothing else can end this.
func TestACrashLoopFailsTheAttempt(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	worker := runs("main", "when="+indexVariable+":1", "exit=7", "wait-term")
	worker.ReadinessProbe = probe("fail-unless=/never")
	pod := onRealNode(worker)
	pod.RestartPolicy = corev1.RestartPolicyOnFailure
	apply(t, ns, set(grovev1alpha1.WorkloadTypeTraining, 2, pod))

	status := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, patience).Status
	failed := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeFailed)
	if failed == nil || failed.Reason != grovev1alpha1.ReasonMaxRestartsExceeded {
		t.Fatalf("condition Failed is %+v", failed)
	}
	cause := "job-0-worker-1-* fails again and again (exit code 7) on node " + cluster.RealNode.Name
	ns.Describes("job", hasFailed("*"+cause, "Warning PodFailed: "+cause)...)
	breached := meta.FindStatusCondition(ns.PodClique("job-0-worker").Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
	if breached == nil || breached.Reason != grovev1alpha1.ReasonPodsFailed {
		t.Errorf("condition MinAvailableBreached is %+v", breached)
	}
}

// A container that the kubelet starts again, and that then does its work, costs the set
// no restart and no pod.
func TestAContainerThatTheKubeletStartsAgainIsNoFailure(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	worker := runs("main", "when="+indexVariable+":1", "exit-once=/data/started:9", "sleep=1s", "exit=0")
	worker.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	pod := onRealNode(worker)
	pod.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.RestartPolicy = corev1.RestartPolicyOnFailure
	pcs := set(grovev1alpha1.WorkloadTypeTraining, 2, pod)
	// The pod is not Ready while its container is down (D13).
	pcs.Spec.Template.TerminationDelay = &metav1.Duration{Duration: 10 * time.Minute}
	apply(t, ns, pcs)

	status := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, patience).Status
	clique := ns.PodClique("job-0-worker")
	if status.RestartCount != 0 || len(clique.Status.FailedIndexes) != 0 {
		t.Errorf("restartCount is %d, failedIndexes %+v", status.RestartCount, clique.Status.FailedIndexes)
	}
	pods := ns.WaitForPods(2, patience, hasPhase(corev1.PodSucceeded))
	if got := podOf(t, pods, "1").Status.ContainerStatuses[0].RestartCount; got != 1 {
		t.Errorf("the container was started again %d times", got)
	}
	ns.Describes("job", hasSucceeded(2, "Restart Count: 0", "replica 0: attempt 0, Succeeded", "no * PodFailed: *", "no * ReplicaRestarting: *")...)
}

// D9: a trainer that exits with 0 because it is told to go has not finished. Its index is
// lost, and made again.
func TestAnEvictedTrainerThatExitsWithZeroIsReplaced(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	pcs := set(grovev1alpha1.WorkloadTypeTraining, 2, onRealNode(runs("main", "on-term=0", "await=/done", "exit=0")))
	pcs.Spec.Template.TerminationDelay = &metav1.Duration{Duration: 10 * time.Minute}
	apply(t, ns, pcs)
	first := podOf(t, ns.WaitForPods(2, patience, framework.IsReady), "1")

	ns.Evict(first.Name)
	pods := ns.WaitForPods(1, patience, func(pod *corev1.Pod) bool {
		return pod.Labels[labels.PodIndex] == "1" && pod.UID != first.UID && framework.IsReady(pod)
	})
	clique := ns.PodClique("job-0-worker")
	if clique.Status.CompletedIndexes != "" {
		t.Errorf("completedIndexes is %q", clique.Status.CompletedIndexes)
	}
	if failed := clique.Status.FailedIndexes; len(failed) != 1 || failed[0].Index != 1 || failed[0].PodUID != first.UID {
		t.Errorf("failedIndexes is %+v", failed)
	}
	if got := ns.Set("job").Status.RestartCount; got != 0 {
		t.Errorf("restartCount is %d", got)
	}

	cause := first.Name + " exited with 0 only after its deletion was requested"
	ns.Describes("job", "Phase: Running", "Restart Count: 0", "Warning PodCliqueFailed: job-0-worker: 1 of 2 pods are available, at least 2 are needed: *", "Warning PodFailed: "+cause,
		"Normal PodRecovered: job-0-worker: index 1 is Ready again, *s after: "+cause, "Normal MinAvailableRestored: job-0-worker: 2 of 2 pods are available, at least 2 are needed, after a breach of *s")

	// The same exit code counts when nobody has told it to go.
	for i := range pods {
		letGo(t, ns, &pods[i], "main", "/done")
	}
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, patience)
	ns.Describes("job", hasSucceeded(2, "Restart Count: 0", "no * ReplicaRestarting: *")...)
}
