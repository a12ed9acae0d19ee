package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/test/framework"
)

// Updates of the template, by the rules of grove-api.md section 4.

// rolled is serving with another image of its routers, or of all.
func rolled(manifest, image string) string {
	return strings.ReplaceAll(manifest, "image: example.com/"+strings.Split(image, ":")[0]+"}", "image: example.com/"+image+"}")
}

// waitUpdated waits as a user does: until the condition says so of the newest template.
func waitUpdated(ns *framework.Namespace, set string) {
	ns.Kubectl("wait", "pcs/"+set, "--for=condition=UpdatePending=False", "--timeout=2m")
}

// imagesOf are how many pods run which image.
func imagesOf(t *testing.T, ns *framework.Namespace) map[string]int {
	t.Helper()
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]int{}
	for _, pod := range pods {
		images[strings.TrimPrefix(pod.Spec.Containers[0].Image, "example.com/")]++
	}
	return images
}

func TestAChangedTemplateReachesEveryPod(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	manifest := serving(2, "    terminationDelay: 1h", "")
	ns.Apply(manifest)
	before := uidsOf(ns.WaitForPods(2*servingPods, time.Minute, framework.IsReady))

	ns.Apply(rolled(rolled(manifest, "router:2"), "server:2"))
	waitUpdated(ns, "llm")
	ns.WaitForPods(2*servingPods, time.Minute, framework.IsReady)
	if n := survivors(t, ns, before); n != 0 {
		t.Errorf("%d pods of the earlier template are left", n)
	}
	if got := imagesOf(t, ns); got["router:2"] != 4 || got["server:2"] != 18 || len(got) != 2 {
		t.Errorf("images are %v", got)
	}
	set := ns.Set("llm")
	if set.Status.UpdatedReplicas != 2 || set.Status.UpdateProgress == nil || set.Status.UpdateProgress.UpdateEndedAt == nil {
		t.Errorf("%d replicas are updated, progress %+v", set.Status.UpdatedReplicas, set.Status.UpdateProgress)
	}
	if p := set.Status.UpdateProgress; p.TotalPodCliquesCount != 2 || p.UpdatedPodCliquesCount != 2 || p.TotalPodCliqueScalingGroupsCount != 2 || p.UpdatedPodCliqueScalingGroupsCount != 2 {
		t.Errorf("progress %+v", p)
	}
	ns.Describes("llm",
		"Normal UpdateStarted: pods of 2 of 2 replicas follow an earlier template, and are replaced one replica at a time",
		"Normal UpdateCompleted: all pods of 2 replicas follow the template", "UpdatePending=False PodsFollowTemplate: all pods follow the template")
}

// Only what has changed is replaced.
func TestAnUpdateLeavesOtherCliquesAlone(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	manifest := serving(1, "", "")
	ns.Apply(manifest)
	before := uidsOf(ns.WaitForPods(servingPods, time.Minute, framework.IsReady))
	ns.Apply(rolled(manifest, "router:2"))
	waitUpdated(ns, "llm")
	if n := survivors(t, ns, before); n != servingPods-2 {
		t.Errorf("%d of %d pods are left", n, servingPods-2)
	}
	// Going back is an update as well.
	ns.Apply(manifest)
	waitUpdated(ns, "llm")
	if got := imagesOf(t, ns); got["router"] != 2 {
		t.Errorf("images are %v", got)
	}
}

// A template that never becomes Ready takes one pod of the service, and the next one that does
// mends it.
func TestATemplateThatNeverBecomesReadyStopsTheUpdate(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	manifest := serving(2, "    terminationDelay: 2s", "")
	ns.Apply(manifest)
	ns.WaitForPods(2*servingPods, time.Minute, framework.IsReady)
	broken := strings.Replace(rolled(manifest, "router:broken"), "      - name: router\n", "      - name: router\n        annotations: {kwok.copse.dev/never-ready: \"true\"}\n", 1)
	ns.Apply(broken)
	ns.Eventually(time.Minute, func(context.Context) error {
		if n := imagesOf(t, ns)["router:broken"]; n != 1 {
			return fmt.Errorf("%d pods of the broken template run", n)
		}
		return nil
	})
	// Longer than gang termination would take.
	ns.Never(5*time.Second, func(context.Context) error {
		if n := imagesOf(t, ns)["router:broken"]; n > 1 {
			return fmt.Errorf("%d pods of the broken template run", n)
		}
		if set := ns.Set("llm"); set.Status.AvailableReplicas < 1 {
			return fmt.Errorf("%d replicas are available", set.Status.AvailableReplicas)
		}
		return nil
	})
	ns.Describes("llm", "UpdatePending=True RollingUpdate: *; replica 0 is being updated: llm-0-router has 1 of 2 pods of the new template, 1 Ready",
		"no * UpdateCompleted: *", "no * ReplicaTerminated: *")
	ns.Apply(rolled(manifest, "router:mended"))
	waitUpdated(ns, "llm")
	if got := imagesOf(t, ns); got["router:mended"] != 4 || got["router:broken"] != 0 {
		t.Errorf("images are %v", got)
	}
}

// With OnDelete pods change when somebody deletes them, and the strategy can be switched.
func TestOnDeleteLeavesPodsToOthers(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	onDelete := func(manifest string) string {
		return strings.Replace(manifest, "  replicas: 1\n", "  replicas: 1\n  updateStrategy: {type: OnDelete}\n", 1)
	}
	manifest := serving(1, "", "")
	ns.Apply(onDelete(manifest))
	before := uidsOf(ns.WaitForPods(servingPods, time.Minute, framework.IsReady))
	ns.Apply(onDelete(rolled(manifest, "router:2")))
	ns.Kubectl("wait", "pcs/llm", "--for=condition=UpdatePending", "--timeout=1m")
	ns.Never(2*time.Second, func(context.Context) error {
		if n := survivors(t, ns, before); n != servingPods {
			return fmt.Errorf("%d of %d pods are left", n, servingPods)
		}
		return nil
	})
	ns.Describes("llm", "UpdatePending=True WaitingForDeletion: 2 of 11 pods, of 1 cliques, were made from an earlier template, and are replaced when somebody deletes them")
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ns.Kubectl("delete", "pod", "--wait=false", podOf(t, pods, "llm-0-router", "1").Name)
	ns.Eventually(time.Minute, func(context.Context) error {
		if got := imagesOf(t, ns); got["router:2"] != 1 || got["router"] != 1 {
			return fmt.Errorf("images are %v", got)
		}
		return nil
	})
	ns.Apply(rolled(manifest, "router:2"))
	ns.Kubectl("patch", "pcs", "llm", "--type=merge", "-p", `{"spec":{"updateStrategy":{"type":"RollingRecreate"}}}`)
	ns.Eventually(time.Minute, func(context.Context) error {
		if got := imagesOf(t, ns); got["router:2"] != 2 {
			return fmt.Errorf("images are %v", got)
		}
		return nil
	})
	waitUpdated(ns, "llm")
}

// Sizes that somebody has set stay, in the middle of an update as well.
func TestScalingDuringAnUpdate(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	manifest := serving(1, "", "")
	ns.Apply(manifest)
	ns.WaitForPods(servingPods, time.Minute, framework.IsReady)
	ns.Kubectl("scale", "pclq/llm-0-router", "--replicas=4")
	ns.Apply(rolled(rolled(manifest, "router:2"), "server:2"))
	ns.Kubectl("scale", "pcsg/llm-0-decode", "--replicas=4")
	waitUpdated(ns, "llm")
	ns.Kubectl("scale", "pcsg/llm-0-decode", "--replicas=2")
	ns.Apply(rolled(rolled(manifest, "router:3"), "server:3"))
	waitUpdated(ns, "llm")
	pods := ns.WaitForPods(4+2*3, time.Minute, framework.IsReady)
	if got := imagesOf(t, ns); got["router:3"] != 4 || got["server:3"] != 6 {
		t.Errorf("images of %d pods are %v", len(pods), got)
	}
}

// Pods of one gang have one priority class, so another one makes the replica anew.
func TestAnotherPriorityClassIsAnUpdate(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	for _, class := range []string{"low", "high"} {
		name := ns.Name + "-" + class
		_, err := cluster.Kube.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1000}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cluster.Kube.SchedulingV1().PriorityClasses().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	}
	manifest := serving(2, "    priorityClassName: "+ns.Name+"-low", "")
	ns.Apply(manifest)
	ns.WaitForPods(2*servingPods, time.Minute, framework.IsReady)
	ns.Apply(strings.Replace(manifest, "-low", "-high", 1))
	waitUpdated(ns, "llm")
	pods := ns.WaitForPods(2*servingPods, time.Minute, framework.IsReady)
	for _, pod := range pods {
		if pod.Spec.PriorityClassName != ns.Name+"-high" {
			t.Errorf("pod %s has class %s", pod.Name, pod.Spec.PriorityClassName)
		}
	}
	for replica := range 2 {
		ns.Describes("llm", fmt.Sprintf("Normal ReplicaRenewed: replica %d is made anew (attempt 1): its gangs get priority class %q, and had %q", replica, ns.Name+"-high", ns.Name+"-low"))
	}
	ns.Describes("llm", "Normal UpdateCompleted: all pods of 2 replicas follow the template")
}

// The floor is asserted on every revision by the history that the namespace records (I19), while
// pods fail, sizes change and the controller manager is killed. It is not parallel: others would
// see that too.
func TestAnUpdateGoesOnThroughFailuresScalingAndCrashes(t *testing.T) {
	ns := cluster.Namespace(t)
	manifest := strings.Replace(serving(2, "", ""), "replicas: 2\n          podSpec", "replicas: 4\n          podSpec", 1)
	const pods = 2 * (4 + 3*3)
	ns.Apply(manifest)
	before := ns.WaitForPods(pods, time.Minute, framework.IsReady)
	for i := range 3 {
		image := fmt.Sprint(i + 2)
		ns.Apply(rolled(rolled(manifest, "router:"+image), "server:"+image))
		ns.Eventually(time.Minute, func(context.Context) error {
			if imagesOf(t, ns)["router:"+image] == 0 {
				return fmt.Errorf("the update to %s has not begun", image)
			}
			return nil
		})
		switch i {
		case 0:
			cluster.Kill(t, "copse-controller-manager")
		case 1:
			fail(ns, podOf(t, currentPods(t, ns), "llm-1-router", "3").Name, 1)
			ns.Kubectl("scale", "pcsg/llm-0-decode", "--replicas=4")
			ns.Kubectl("scale", "pclq/llm-1-router", "--replicas=6")
		case 2:
			cluster.Kill(t, "copse-apiserver")
			ns.Eventually(time.Minute, func(context.Context) error {
				_, err := ns.TryKubectl("scale", "pcsg/llm-0-decode", "--replicas=3")
				return err
			})
			cluster.Kill(t, "copse-controller-manager")
		}
		if i > 0 {
			waitUpdated(ns, "llm")
		}
	}
	ns.WaitForPods(pods+2, time.Minute, framework.IsReady)
	if got := imagesOf(t, ns); got["router:4"] != 10 || got["server:4"] != 18 {
		t.Errorf("images are %v", got)
	}
	if n := survivors(t, ns, uidsOf(before)); n != 0 {
		t.Errorf("%d pods of the first template are left", n)
	}
}

func currentPods(t *testing.T, ns *framework.Namespace) []corev1.Pod {
	t.Helper()
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

// A pod that is replaced costs its deletion and its creation, and each clique, copy and replica
// a few writes of status; nothing is listed for it. Both are counted by the API servers.
func TestAnUpdateCostsOneDeleteAndOneCreatePerPod(t *testing.T) {
	const workers = 60
	ns := cluster.Namespace(t, framework.Unrecorded("the recorder's reads would be in what is measured"))
	waitUntilAlone(ns)
	manifest := fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: wide}
spec:
  replicas: 1
  updateStrategy: {maxUnavailable: 10}
  template:
    cliques:
      - name: worker
        spec:
          replicas: %d
          podSpec:
            containers: [{name: main, image: example.com/server, resources: {requests: {cpu: 10m}}}]
`, workers)
	ns.Apply(manifest)
	ns.WaitForPods(workers, time.Minute, framework.IsReady)
	before := countWrites(t)
	ns.Apply(strings.Replace(manifest, "example.com/server,", "example.com/server:2,", 1))
	waitUpdated(ns, "wide")
	written, total := writesSince(t, before)
	// The kubelet of each pod deletes it once more, to say that it has ended.
	total -= workers
	t.Logf("%d pods were replaced; %.2f writes per pod: %v", workers, total/workers, written)
	if creates, deletes := written["POST pods"], written["DELETE pods"]; creates != workers || deletes != 2*workers {
		t.Errorf("%.0f pods were created and %.0f times deleted, want %d and twice as often", creates, deletes, workers)
	}
	// Counts of status are written at most once a second, and the steps of an update as they come.
	if total/workers > 2.5 {
		t.Errorf("the controllers write %.2f times per pod, at most 2.5 are allowed", total/workers)
	}
}

func uidsOf(pods []corev1.Pod) map[string]bool {
	uids := map[string]bool{}
	for i := range pods {
		uids[string(pods[i].UID)] = true
	}
	return uids
}
