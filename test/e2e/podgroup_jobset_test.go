package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// stage makes the Job of a replicated job as the controller of JobSets would.
func (n grouped) stage(replicatedJob string, pods int, jobSet types.UID, more string) {
	n.t.Helper()
	n.Apply(fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata:
  name: llm-%[1]s-0
  ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: llm, uid: %[2]s, controller: true}]
spec:
  parallelism: %[3]d
  completions: %[3]d
  template:
    metadata: {labels: {jobset.sigs.k8s.io/replicatedjob-name: %[1]s, jobset.sigs.k8s.io/job-index: "0"}}
    spec:
      restartPolicy: Never
      tolerations: [{key: example.com/stage-unit, operator: Exists}]
      containers: [{name: main, image: example.com/main%[4]s}]
`, replicatedJob, jobSet, pods, more))
}

// The nodes of a job that is run by a launcher come first, and are the gang: none of them is
// placed before there is room for all. The launcher comes when they run, or have ended, and
// waits for none.
func TestTheFirstStageOfAJobSetIsAGang(t *testing.T) {
	t.Parallel()
	ns := groupedNamespace(t)
	const units = "example.com/stage-unit"
	addNode(t, "stage-1", units, "3")
	ns.applyFile("testdata/jobset-crd.yaml")
	ns.Anywhere().WaitFor("crd/jobsets.jobset.x-k8s.io", "condition=Established")
	ns.Eventually(time.Minute, func(context.Context) error {
		_, err := ns.TryApply("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: llm}\nspec: {replicatedJobs: [" +
			"{name: node, template: {spec: {parallelism: 4, completions: 4}}}, {name: launcher, dependsOn: [{name: node, status: Ready}], template: {spec: {}}}]}\n")
		return err
	})
	uid := types.UID(ns.Kubectl("get", "jobset", "llm", "-o", "jsonpath={.metadata.uid}"))
	name := nameOf("llm", uid)
	ns.stage("node", 4, uid, ", resources: {limits: {"+units+": 1}}")
	ns.native(name, counting(4))
	ns.group(name, explaining("NotEnoughResources", nil))
	ns.Never(time.Second, func(ctx context.Context) error { return anyPlaced(ctx, ns) })

	addNode(t, "stage-2", units, "1")
	ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	ns.stage("launcher", 1, uid, "")
	ns.WaitForPods(5, time.Minute, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	ns.native(name, counting(4))

	// They have ended, and were cleared away with their nodes; the launcher is made anew.
	ns.Kubectl("delete", "job", "llm-node-0")
	pods := ns.WaitForPods(1, time.Minute, func(*corev1.Pod) bool { return true })
	ns.delete(pods[0].Name)
	ns.WaitForPods(1, time.Minute, func(pod *corev1.Pod) bool { return pod.Name != pods[0].Name && pod.Status.Phase == corev1.PodRunning })
	ns.native(name, counting(1))

	// When the set starts anew, the nodes are a gang once more.
	ns.Kubectl("delete", "job", "llm-launcher-0")
	ns.native(name, counting(4))
}
