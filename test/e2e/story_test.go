package e2e

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// What kubectl describe tells, in the words of package story.

// below is what a clique tells that has too few of its pods.
func below(clique string, have, replicas int, cause string) string {
	return fmt.Sprintf("%s: %d of %d pods are available, at least %d are needed: %s", clique, have, replicas, replicas, cause)
}

func failedWith(pod *corev1.Pod, code string) string {
	return fmt.Sprintf("%s failed (%s) on node %s", pod.Name, code, pod.Spec.NodeName)
}

func notReady(pod *corev1.Pod) string {
	return pod.Name + " is not Ready on node " + pod.Spec.NodeName
}

// restarts tells of a restart that has begun in Training, and why.
func restarts(replica, count, budget int, why string) []string {
	return []string{
		"Warning PodCliqueFailed: " + why,
		fmt.Sprintf("Normal ReplicaRestarting: replica %d, restart %d of %d: %s*", replica, count, budget, why),
	}
}

// restarted tells of the last of them, when all is available again.
func restarted(replica, attempt, count, budget int, why string) []string {
	return append(restarts(replica, count, budget, why),
		fmt.Sprintf("Restarting=False ReplicaRestarted: replica %d, restart %d of %d: %s*", replica, count, budget, why),
		fmt.Sprintf("replica %d: attempt %d, Running", replica, attempt),
		fmt.Sprintf("Restart Count: %d", count), "Phase: Running")
}

// untouched tells that nothing was made anew.
func untouched(lines ...string) []string {
	return append(lines, "no * ReplicaTerminated: *", "no * ReplicaRestarting: *", "no Restarting=*", "Restart Count: 0")
}

func hasFailed(reason, message string) []string {
	return []string{
		"Phase: Failed",
		"Warning " + reason + ": " + message + ": all active pods are terminated",
		"Warning WorkloadFailed: " + message,
		"FailureTarget=True " + reason + ": " + message,
		"Failed=True " + reason + ": " + message,
	}
}

func hasSucceeded(pods int) []string {
	message := fmt.Sprintf("every pod exited with 0, %d in all", pods)
	return []string{"Phase: Succeeded", "Succeeded=True AllReplicasSucceeded: " + message, "Normal WorkloadSucceeded: " + message, "no * WorkloadFailed: *"}
}

// lines joins stories, which were told one after the other.
func lines(stories ...[]string) []string { return slices.Concat(stories...) }
