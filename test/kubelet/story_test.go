package kubelet

import "fmt"

// What kubectl describe tells, in the words of package story.

// hasFailed tells of a set without restarts, one of whose two workers has failed. The other
// may not have been ready at that time, and is named then, too.
func hasFailed(cause string, lines ...string) []string {
	why := "job-0-worker: * of 2 pods are available, at least 2 are needed: " + cause + "*"
	message := "no restart is allowed; replica 0: " + why
	return append(lines, "Phase: Failed", "replica 0: attempt 0, Failed", "Warning PodCliqueFailed: "+why, "Warning MaxRestartsExceeded: "+message+": all active pods are terminated",
		"Warning WorkloadFailed: "+message, "FailureTarget=True MaxRestartsExceeded: "+message, "Failed=True MaxRestartsExceeded: "+message)
}

func hasSucceeded(pods int, lines ...string) []string {
	message := fmt.Sprintf("every pod exited with 0, %d in all", pods)
	return append(lines, "Phase: Succeeded", "Succeeded=True AllReplicasSucceeded: "+message, "Normal WorkloadSucceeded: "+message)
}
