package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// disaggregated is a router and a scaling group of a leader and two workers.
const disaggregated = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
      - name: router
        spec:
          roleName: router
          replicas: 1
          podSpec:
            containers: [{name: main, image: example.com/router}]
      - name: leader
        labels: {team: serving}
        spec:
          roleName: leader
          replicas: 1
          podSpec:
            initContainers: [{name: fetch, image: example.com/fetch}]
            containers: [{name: main, image: example.com/server, env: [{name: PEERS, value: $(GROVE_HEADLESS_SERVICE)}]}]
      - name: worker
        spec:
          roleName: worker
          replicas: 2
          podSpec:
            containers: [{name: main, image: example.com/server}]
    podCliqueScalingGroups:
      - name: decode
        cliqueNames: [leader, worker]
        replicas: 2
        minAvailable: 1
`

func TestInferenceWithAScalingGroupRunsWithGrovesNames(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(disaggregated)
	pods := ns.WaitForPods(7, time.Minute, framework.IsReady)
	ns.WaitForPhase("llm", grovev1alpha1.PodCliqueSetRunning, time.Minute)

	var hostnames []string
	for i := range pods {
		hostnames = append(hostnames, pods[i].Spec.Hostname)
		if pods[i].Spec.Subdomain != "llm-0" {
			t.Errorf("subdomain of %s is %q", pods[i].Name, pods[i].Spec.Subdomain)
		}
	}
	slices.Sort(hostnames)
	want := []string{
		"llm-0-decode-0-leader-0", "llm-0-decode-0-worker-0", "llm-0-decode-0-worker-1",
		"llm-0-decode-1-leader-0", "llm-0-decode-1-worker-0", "llm-0-decode-1-worker-1",
		"llm-0-router-0",
	}
	if !slices.Equal(hostnames, want) {
		t.Errorf("host names are %v", hostnames)
	}

	pod := find(pods, "llm-0-decode-1-worker-1")
	env := map[string]string{}
	for _, variable := range pod.Spec.Containers[0].Env {
		env[variable.Name] = variable.Value
	}
	for name, value := range map[string]string{
		"GROVE_PCS_NAME": "llm", "GROVE_PCS_INDEX": "0", "GROVE_PCLQ_NAME": "llm-0-decode-1-worker", "GROVE_PCLQ_POD_INDEX": "1",
		"GROVE_HEADLESS_SERVICE": "llm-0." + ns.Name + ".svc.cluster.local",
		"GROVE_PCSG_NAME":        "llm-0-decode", "GROVE_PCSG_INDEX": "1", "GROVE_PCSG_TEMPLATE_NUM_PODS": "3",
		// After the leader of the copy.
		"GROVE_PCSG_POD_INDEX": "2",
	} {
		if env[name] != value {
			t.Errorf("%s is %q, want %q", name, env[name], value)
		}
	}
	for key, value := range map[string]string{
		"app.kubernetes.io/part-of": "llm", "app.kubernetes.io/managed-by": "grove-operator", "grove.io/podclique": "llm-0-decode-1-worker",
		"grove.io/podgang": "llm-0-decode-0", "grove.io/base-podgang": "llm-0", "grove.io/podcliqueset-replica-index": "0",
		"grove.io/podcliquescalinggroup": "llm-0-decode", "grove.io/podcliquescalinggroup-replica-index": "1", "grove.io/podclique-pod-index": "1",
	} {
		if pod.Labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, pod.Labels[key], value)
		}
	}
	if got := find(pods, "llm-0-decode-0-leader-0").Labels["team"]; got != "serving" {
		t.Errorf("the clique's own label is %q", got)
	}

	// The base gang has the router and the first copy, the second copy is a gang of its own.
	if got := ns.Kubectl("get", "pg", "-o", "jsonpath={range .items[*]}{.metadata.name}:{range .spec.podgroups[*]}{.name}={.minReplicas},{end} {end}"); got !=
		"llm-0:llm-0-router=1,llm-0-decode-0-leader=1,llm-0-decode-0-worker=2, llm-0-decode-0:llm-0-decode-1-leader=1,llm-0-decode-1-worker=2, " {
		t.Errorf("gangs are %q", got)
	}
	service, err := cluster.Kube.CoreV1().Services(ns.Name).Get(t.Context(), "llm-0", metav1.GetOptions{})
	if err != nil || service.Spec.ClusterIP != corev1.ClusterIPNone || !service.Spec.PublishNotReadyAddresses {
		t.Errorf("the headless Service is %+v, error %v", service.Spec, err)
	}
	if got := ns.Kubectl("get", "pcsg", "llm-0-decode", "-o", "jsonpath={.status.availableReplicas}/{.status.replicas}"); got != "2/2" {
		t.Errorf("available copies are %s", got)
	}
}

func find(pods []corev1.Pod, hostname string) *corev1.Pod {
	i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Spec.Hostname == hostname })
	if i < 0 {
		return &corev1.Pod{}
	}
	return &pods[i]
}

func TestInferenceScalesAtEveryLevelAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(disaggregated)
	ns.WaitForPods(7, time.Minute, framework.IsReady)

	ns.Kubectl("scale", "pcs", "llm", "--replicas=2")
	ns.WaitForPods(14, time.Minute, framework.IsReady)
	ns.Kubectl("scale", "pcsg", "llm-1-decode", "--replicas=3")
	ns.WaitForPods(17, time.Minute, framework.IsReady)
	ns.Kubectl("scale", "pclq", "llm-0-router", "--replicas=3")
	ns.WaitForPods(19, time.Minute, framework.IsReady)

	ns.Kubectl("scale", "pclq", "llm-0-router", "--replicas=1")
	ns.Kubectl("scale", "pcsg", "llm-1-decode", "--replicas=1")
	pods := ns.WaitForPods(11, time.Minute, framework.IsReady)
	if len(pods) != 11 {
		ns.WaitForPods(11, time.Minute, func(*corev1.Pod) bool { return true })
	}
	// Scale-in removes the highest index.
	if find(pods, "llm-0-router-0").Name == "" {
		t.Error("the router of index 0 went instead of the last")
	}
	ns.Kubectl("scale", "pcs", "llm", "--replicas=1")
	ns.WaitForPods(7, time.Minute, func(*corev1.Pod) bool { return true })
	ns.Eventually(time.Minute, func(context.Context) error {
		if out := ns.Kubectl("get", "pcsg,pclq,pg,svc", "-o", "name"); strings.Contains(out, "llm-1") {
			return fmt.Errorf("scale-in left:\n%s", out)
		}
		return nil
	})
}

func TestInferenceReplacesAPodThatEnds(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(disaggregated)
	pods := ns.WaitForPods(7, time.Minute, framework.IsReady)

	deleted := find(pods, "llm-0-decode-0-worker-1")
	ns.Kubectl("delete", "pod", deleted.Name)
	replaced := find(ns.WaitForPods(7, time.Minute, framework.IsReady), "llm-0-decode-0-worker-1")
	if replaced.UID == deleted.UID {
		t.Error("the deleted pod is still there")
	}

	// A pod that exits, also with 0, is made again, with a back-off.
	ended := find(pods, "llm-0-router-0")
	ns.Kubectl("annotate", "pod", ended.Name, "kwok.copse.dev/exit-after=0s")
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err != nil {
			return err
		}
		if now := find(pods, "llm-0-router-0"); now.UID == ended.UID || !framework.IsReady(now) {
			return fmt.Errorf("the router that ended has not been replaced")
		}
		return nil
	})
	if got := ns.Kubectl("get", "pclq", "llm-0-router", "-o", "jsonpath={.status.failedIndexes[0].count}"); got != "1" {
		t.Errorf("failures of the router: %q", got)
	}
	cause := ended.Name + " ended"
	ns.Describes("llm", untouched("Warning PodFailed: "+cause+"*", "Normal PodRecovered: llm-0-router: index 0 is Ready again, *s after: "+cause+"*", "Phase: Running")...)
}
