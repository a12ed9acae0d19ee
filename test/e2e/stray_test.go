package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

// A copy of a pod has its labels and its owner. It is neither taken for the pod, nor kept.
func TestACopiedPodLeavesTheOriginalAloneAndDisappears(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t, framework.Unrecorded("pods are tampered with: what becomes of them has no record"))
	ns.Apply(training("job", 1, 2, "1h"))
	pods := ns.WaitForPods(2, time.Minute, framework.IsReady)
	// Which of two UIDs is the lower is a matter of luck, so several are made; half of them end
	// with 0 at once, as a finished pod would.
	for i := range 6 {
		copied := pods[i%2].DeepCopy()
		copied.ObjectMeta = metav1.ObjectMeta{
			Namespace: copied.Namespace, Name: fmt.Sprintf("debug-%d", i), Labels: copied.Labels, Annotations: copied.Annotations, OwnerReferences: copied.OwnerReferences,
		}
		if i < 3 {
			copied.Annotations["kwok.copse.dev/exit-after"] = "0s"
		}
		if _, err := cluster.Kube.CoreV1().Pods(ns.Name).Create(t.Context(), copied, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ns.WaitForPods(0, time.Minute, func(pod *corev1.Pod) bool { return strings.HasPrefix(pod.Name, "debug-") })
	left := ns.WaitForPods(2, time.Minute, framework.IsReady)
	for i := range left {
		if left[i].UID != pods[i].UID {
			t.Errorf("%s is another pod than before", left[i].Name)
		}
	}
	if status := ns.PodClique("job-0-worker").Status; status.CompletedIndexes != "" || len(status.FailedIndexes) > 0 || status.Replicas != 2 {
		t.Errorf("status is %+v", status)
	}
	if pcs := ns.Set("job"); pcs.Status.Phase != grovev1alpha1.PodCliqueSetRunning || pcs.Status.RestartCount != 0 {
		t.Errorf("phase is %s after %d restarts", pcs.Status.Phase, pcs.Status.RestartCount)
	}
}

// relabelling are edits of the labels by which a pod is known, as kubectl label takes them.
func relabelling() map[string]string {
	return map[string]string{
		"index-removed":      labels.PodIndex + "-",
		"index-garbled":      labels.PodIndex + "=x",
		"attempt-removed":    labels.RestartAttempt + "-",
		"attempt-raised":     labels.RestartAttempt + "=7",
		"clique-removed":     labels.PodClique + "-",
		"managed-by-removed": labels.ManagedBy + "-",
	}
}

// A label that a pod has lost before its set is deleted does not hold up that.
func TestASetWhosePodWasRelabelledIsDeleted(t *testing.T) {
	t.Parallel()
	for name, edit := range relabelling() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := cluster.Namespace(t, framework.Unrecorded("pods are tampered with: what becomes of them has no record"))
			ns.Apply(training("job", 1, 2, "1h"))
			pods := ns.WaitForPods(2, time.Minute, framework.IsReady)
			ns.Kubectl("annotate", "pod", pods[0].Name, "kwok.copse.dev/terminating-for=8s")
			ns.Kubectl("delete", "pcs", "job", "--wait=false")
			ns.Kubectl("label", "pod", pods[0].Name, "--overwrite", edit)
			ns.Kubectl("wait", "--for=delete", "pcs/job", "--timeout=60s")
			ns.WaitForPods(0, time.Minute, func(*corev1.Pod) bool { return true })
		})
	}
}

// Nor does it hold up the end of a set that fails because of it, of which nothing runs then.
func TestATrainingSetFailsThoughAPodWasRelabelled(t *testing.T) {
	t.Parallel()
	for name, edit := range relabelling() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := cluster.Namespace(t, framework.Unrecorded("pods are tampered with: what becomes of them has no record"))
			ns.Apply(training("job", 1, 2, "1h"))
			pods := ns.WaitForPods(2, time.Minute, framework.IsReady)
			ns.WaitFor("pclq/job-0-worker", "jsonpath={.status.createdReplicas}=2")
			ns.Kubectl("label", "pod", pods[0].Name, "--overwrite", edit)
			ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, time.Minute)
			ns.WaitForPods(0, time.Second, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
			ns.Kubectl("delete", "pcs", "job", "--timeout=60s")
		})
	}
}

// A pod of a service that has lost a label is replaced by one that has it.
func TestAServiceRecoversFromARelabelledPod(t *testing.T) {
	t.Parallel()
	for name, edit := range relabelling() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := cluster.Namespace(t, framework.Unrecorded("pods are tampered with: what becomes of them has no record"))
			ns.Apply(strings.Replace(training("llm", 1, 2, "1h"), "workloadType: Training", "workloadType: Inference", 1))
			pods := ns.WaitForPods(2, time.Minute, framework.IsReady)
			ns.Kubectl("label", "pod", pods[0].Name, "--overwrite", edit)
			ns.Eventually(time.Minute, func(ctx context.Context) error {
				left, err := ns.Pods(ctx)
				if err != nil {
					return err
				}
				for i := range left {
					if left[i].UID == pods[0].UID || !framework.IsReady(&left[i]) {
						return fmt.Errorf("%s, of UID %s, is there in phase %s", left[i].Name, left[i].UID, left[i].Status.Phase)
					}
				}
				if status := ns.PodClique("llm-0-worker").Status; len(left) != 2 || status.ReadyReplicas != 2 {
					return fmt.Errorf("%d pods are there, the status counts %d", len(left), status.ReadyReplicas)
				}
				return nil
			})
		})
	}
}

// What the controllers find by labels is found again when somebody has changed those, and put right.
func TestARelabelledServiceAndFileArePutRight(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.PlayWaiters()
	ns.Apply(neverStart(barriered(1, targets, "  workloadType: Training"), "leader"))
	ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	ns.Kubectl("label", "service/job-0", "configmap/job-0-group-scheduling", labels.ManagedBy+"-", labels.PartOf+"=mine", "--overwrite")
	letStart(ns, "job-0-leader")
	ns.WaitForPods(4, 30*time.Second, framework.IsReady)
	managed := func(ctx context.Context) error {
		service, err := cluster.Kube.CoreV1().Services(ns.Name).Get(ctx, "job-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !labels.IsManaged(service.Labels) || service.Labels[labels.PartOf] != "job" || service.Spec.Selector[labels.PartOf] != "job" {
			return fmt.Errorf("the Service has the labels %v and selects %v", service.Labels, service.Spec.Selector)
		}
		if text := gateFile(ns, 0); text != "job-0-leader 0\njob-0-worker 0\n" {
			return fmt.Errorf("the file says %q", text)
		}
		return nil
	}
	ns.Eventually(30*time.Second, managed)
	ns.Kubectl("patch", "service", "job-0", "--type=merge", `--patch={"spec":{"selector":{"app.kubernetes.io/part-of":"mine"}}}`)
	ns.Eventually(30*time.Second, managed)
}
