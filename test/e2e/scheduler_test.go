package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/test/framework"
)

// startScheduler runs another kube-scheduler, under a name of its own and without gang
// scheduling, until the test is over.
func startScheduler(t *testing.T, name string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	text := fmt.Sprintf(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %s}
profiles: [{schedulerName: %s}]
`, cluster.Kubeconfig(), name)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster.StartProcess(t, "kube-scheduler", "--config="+config, "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", framework.FreePort(t)), "--authentication-skip-lookup=true", "--cert-dir="+t.TempDir())
}

func gatesOf(pod *corev1.Pod) []string {
	var out []string
	for _, gate := range pod.Spec.SchedulingGates {
		out = append(out, gate.Name)
	}
	return out
}

// gangSays waits until the gang of a set waits for a reason, and for people in some words.
func gangSays(ns *framework.Namespace, gang, reason, words string) *schedulerv1alpha1.UnschedulableExplanation {
	var out *schedulerv1alpha1.UnschedulableExplanation
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		podGang, err := ns.PodGang(ctx, gang)
		if err != nil {
			return err
		}
		if len(podGang.Status.SchedulingConditions) != 1 {
			return fmt.Errorf("scheduling conditions are %+v", podGang.Status.SchedulingConditions)
		}
		if out = &podGang.Status.SchedulingConditions[0].Reasons[0]; out.Reason != reason || !strings.Contains(out.Message, words) {
			return fmt.Errorf("the gang says %s: %s", out.Reason, out.Message)
		}
		return nil
	})
	return out
}

// A scheduler that knows no gangs gets a gang's pods together: none is placed while another
// cannot be created. Gates of the user stay.
func TestAGangOfAnotherSchedulerIsHeldUntilItIsComplete(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	startScheduler(t, "one-by-one")
	ns.Apply(`
apiVersion: v1
kind: ResourceQuota
metadata: {name: two}
spec: {hard: {pods: "2"}}
`)
	ns.Apply(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: 1
  workloadType: Training
  template:
    cliques:
      - name: worker
        spec:
          replicas: 3
          podSpec:
            schedulerName: one-by-one
            schedulingGates: [{name: example.com/licence}]
            containers: [{name: main, image: example.com/trainer}]
`)
	held := func(pod *corev1.Pod) bool {
		return strings.Join(gatesOf(pod), " ") == "example.com/licence "+naming.PendingGate
	}
	ns.WaitForPods(2, time.Minute, held)
	if details := gangSays(ns, "job-0", schedulerv1alpha1.ReasonWaitingForPods, "2 of 3 pods exist").Details; details == nil || *details.PodDetails != (schedulerv1alpha1.PodDetails{Have: 2, Need: 3, Gated: 2}) {
		t.Errorf("details are %+v", details)
	}
	ns.Kubectl("patch", "resourcequota", "two", "--type=merge", "-p", `{"spec":{"hard":{"pods":"3"}}}`)
	pods := ns.WaitForPods(3, time.Minute, func(pod *corev1.Pod) bool { return strings.Join(gatesOf(pod), " ") == "example.com/licence" })
	if details := gangSays(ns, "job-0", schedulerv1alpha1.ReasonWaitingForPods, "3 of 3 pods are held by scheduling gates").Details; details == nil || details.PodDetails.Gated != 3 {
		t.Errorf("details are %+v", details)
	}
	for i := range pods {
		ns.Kubectl("patch", "pod", pods[i].Name, "--type=json", "-p", `[{"op":"remove","path":"/spec/schedulingGates"}]`)
	}
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		podGang, err := ns.PodGang(ctx, "job-0")
		if err == nil && len(podGang.Status.SchedulingConditions) > 0 {
			err = fmt.Errorf("a gang that runs is explained: %+v", podGang.Status.SchedulingConditions)
		}
		return err
	})
}

// What such a scheduler says about a pod that it does not place is told as the gang's reason,
// and a replacement in a gang that runs waits for nobody.
func TestAGangOfAnotherSchedulerTellsWhatItsPodsAreTold(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	startScheduler(t, "also-one-by-one")
	const units = "example.com/seat"
	addNode(t, "seats-1", units, "2")
	ns.Apply(strings.Replace(scarce("job", units, 3), "podSpec:", "podSpec:\n            schedulerName: also-one-by-one", 1))
	// Two have a node: such a scheduler places gangs in part.
	ns.WaitForPods(2, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	gangSays(ns, "job-0", schedulerv1alpha1.ReasonNotEnoughResources, "Insufficient "+units)
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		podGang, err := ns.PodGang(ctx, "job-0")
		if err != nil {
			return err
		}
		details := podGang.Status.SchedulingConditions[0].Reasons[0].Details
		if details == nil || details.ResourceDetails == nil {
			return fmt.Errorf("details are %+v", details)
		}
		if requested := details.ResourceDetails.Requested[units]; requested.Value() != 1 {
			return fmt.Errorf("requested by the pod that waits: %v", details.ResourceDetails.Requested)
		}
		return nil
	})
	addNode(t, "seats-2", units, "1")
	ns.WaitForPods(3, time.Minute, framework.IsReady)
}
