package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

// The cluster has KAI's groups and no KAI: the tests bind the pods, and say what KAI says.

var kaiInstalled sync.Once

// installKAI makes the cluster serve KAI's groups. The controller-manager looks for them when
// it begins to lead. It is called before a test runs beside others.
func installKAI(t *testing.T) {
	t.Helper()
	kaiInstalled.Do(func() {
		client, err := dynamic.NewForConfig(cluster.Config)
		if err != nil {
			t.Fatal(err)
		}
		crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		for _, file := range []string{"kai-crd.yaml", "kai-topology-crd.yaml"} {
			text, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			crd := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(text, &crd.Object); err != nil {
				t.Fatal(err)
			}
			// A test of pod groups may have applied it before.
			if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
		// The controller-manager believes what discovery says.
		err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			groups, err := cluster.Kube.Discovery().ServerGroups()
			serves := func(name string) bool {
				return slices.ContainsFunc(groups.Groups, func(group metav1.APIGroup) bool { return group.Name == name })
			}
			return err == nil && serves("scheduling.run.ai") && serves("kai.scheduler"), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		cluster.Stop(t, "copse-controller-manager")
		cluster.Start(t, "copse-controller-manager")
	})
}

func kaiGroups(t *testing.T, ns *framework.Namespace) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "scheduling.run.ai", Version: "v2alpha2", Resource: "podgroups"}).Namespace(ns.Name)
}

// kaiGroup waits until a gang has one group alone that is in an attempt, and returns it.
func kaiGroup(t *testing.T, ns *framework.Namespace, gang, attempt string) *unstructured.Unstructured {
	t.Helper()
	groups := kaiGroups(t, ns)
	var out *unstructured.Unstructured
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		list, err := groups.List(ctx, metav1.ListOptions{LabelSelector: labels.PodGang + "=" + gang})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].GetLabels()[labels.RestartAttempt] != attempt {
			return fmt.Errorf("there are %d groups: %v", len(list.Items), list.Items)
		}
		out = &list.Items[0]
		return nil
	})
	return out
}

// bind gives pods a node, as KAI does.
func bind(ctx context.Context, node string, pods ...*corev1.Pod) error {
	for _, pod := range pods {
		err := cluster.Kube.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// playKAI binds the pods of every gang of a namespace once each of its subgroups has as many as
// it needs, until the test ends.
func playKAI(t *testing.T, ns *framework.Namespace, node string) {
	t.Helper()
	groups := kaiGroups(t, ns)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			list, err := groups.List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, nil
			}
			pods, err := ns.Pods(ctx)
			if err != nil {
				return false, nil
			}
			for i := range list.Items {
				_ = bind(ctx, node, placeable(&list.Items[i], pods)...)
			}
			return false, nil
		})
	}()
}

// placeable are the pods of a group that have no node, if enough of each subgroup are there.
func placeable(group *unstructured.Unstructured, pods []corev1.Pod) []*corev1.Pod {
	have := map[string]int64{}
	var out []*corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if pod.Annotations["pod-group-name"] != group.GetName() || pod.Spec.SchedulerName != "kai-scheduler" || len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		have[pod.Labels["kai.scheduler/subgroup-name"]]++
		if pod.Spec.NodeName == "" {
			out = append(out, pod)
		}
	}
	subGroups, _, _ := unstructured.NestedSlice(group.Object, "spec", "subGroups")
	for _, subGroup := range subGroups {
		fields, _ := subGroup.(map[string]any)
		name, _ := fields["name"].(string)
		if need, _ := fields["minMember"].(int64); have[name] < need {
			return nil
		}
	}
	return out
}

const ofKAI = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: job
  labels: {kai.scheduler/queue: team-a, kai.scheduler/preemptibility: non-preemptible, kai.scheduler/node-pool: h100}
  annotations: {kai.scheduler/topology: cluster, kai.scheduler/topology-required-placement: example.com/rack}
spec:
  replicas: 1
  workloadType: Training
  trainingSpec: {maxRestarts: 1}
  template:
    priorityClassName: system-cluster-critical
    cliques:
      - name: launcher
        annotations: {kwok.copse.dev/exit-after: 1h}
        spec:
          replicas: 1
          podSpec: {schedulerName: kai-scheduler, containers: [{name: main, image: example.com/launcher}]}
      - name: worker
        annotations: {kwok.copse.dev/exit-after: 1h}
        spec:
          replicas: 2
          podSpec: {schedulerName: kai-scheduler, containers: [{name: main, image: example.com/trainer}]}
`

// overLimit is the status of a group as KAI writes it.
const overLimit = `{"status": {"schedulingConditions": [{
  "type": "UnschedulableOnNodePool", "nodePool": "h100", "status": "True", "transitionID": "0", "lastTransitionTime": "2026-03-01T12:00:00Z",
  "reason": "Unschedulable", "message": "\nOverLimit: Workload requested 2 GPUs, but department limit is 8 GPUs, while 7 GPUs are already allocated.",
  "reasons": [{
    "reason": "OverLimit", "message": "Workload requested 2 GPUs, but department limit is 8 GPUs, while 7 GPUs are already allocated.",
    "details": {"queueDetails": {
      "name": "department",
      "queueRequestedResources": {"cpu": "12", "memory": "64Gi", "nvidia.com/gpu": "9"},
      "queueResourceLimits": {"cpu": "-1", "memory": "-1", "nvidia.com/gpu": "8"},
      "queueAllocatedResources": {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "7"},
      "podGroupRequestedResources": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "2"}
    }}
  }]
}]}}`

func TestAGangOfKAI(t *testing.T) {
	installKAI(t)
	t.Parallel()
	ns := cluster.Namespace(t)
	addNode(t, "kai-gang", "example.com/kai-gang", "1")
	if out := ns.Apply(ofKAI); strings.Contains(out, "Warning") {
		t.Errorf("KAI is warned about: %s", out)
	}
	first := kaiGroup(t, ns, "job-0", "0")
	podGang, err := cluster.Copse.SchedulerV1alpha1().PodGangs(ns.Name).Get(t.Context(), "job-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checkGroup(t, first, podGang)
	pods := ns.WaitForPods(3, time.Minute, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	checkMembers(t, pods, first.GetName())

	// What KAI says is told by the gang and by the set, and its own fields are left to it.
	theirs := `{"metadata": {"annotations": {"kai.scheduler/last-start-timestamp": "t"}}, "spec": {"queue": "team-b", "markUnschedulable": false, "schedulingBackoff": 1}}`
	groups := kaiGroups(t, ns)
	patch(t, groups, first.GetName(), theirs)
	patch(t, groups, first.GetName(), overLimit, "status")
	ns.Eventually(time.Minute, func(ctx context.Context) error { return tellsOfLimit(ctx, ns) })

	for i := range pods {
		if err := bind(t.Context(), "kai-gang", &pods[i]); err != nil {
			t.Fatal(err)
		}
	}
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetRunning, time.Minute)
	ns.Eventually(time.Minute, func(ctx context.Context) error { return isPlaced(ctx, ns, 3) })
	after, err := groups.Get(t.Context(), first.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]any{"queue": "team-b", "markUnschedulable": false, "schedulingBackoff": int64(1), "minMember": int64(3)} {
		if got, _, _ := unstructured.NestedFieldNoCopy(after.Object, "spec", field); got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}

	// A restart is another group.
	fail(ns, podOf(t, pods, "job-0-worker", "1").Name, 1)
	second := kaiGroup(t, ns, "job-0", "1")
	if second.GetName() == first.GetName() {
		t.Errorf("the second attempt has the group of the first, %s", first.GetName())
	}
	checkGroup(t, second, podGang)
	again := ns.WaitForPods(3, time.Minute, func(pod *corev1.Pod) bool { return pod.Labels[labels.RestartAttempt] == "1" && pod.Spec.NodeName == "" })
	again = slices.DeleteFunc(again, func(pod corev1.Pod) bool { return pod.Labels[labels.RestartAttempt] != "1" })
	checkMembers(t, again, second.GetName())
	for i := range again {
		if err := bind(t.Context(), "kai-gang", &again[i]); err != nil {
			t.Fatal(err)
		}
	}
	ns.WaitForPods(3, time.Minute, inAttempt("1"))

	// Whoever has finished is needed no more.
	ns.Kubectl("annotate", "pod", podOf(t, again, "job-0-worker", "0").Name, "--overwrite", "kwok.copse.dev/exit-after=0s")
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		group, err := groups.Get(ctx, second.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if least, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember"); least != 2 {
			return fmt.Errorf("the group needs %d pods when one of 3 has finished", least)
		}
		return nil
	})

	ns.Kubectl("delete", "pcs", "job", "--timeout=60s")
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		list, err := groups.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d groups are left", len(list.Items))
		}
		return err
	})
}

// A pod above the minimum is made when the gang has been placed, and joins its group: KAI
// places no pod without one, and takes the others of the group for its gang.
func TestASurplusPodOfKAIJoinsTheGroup(t *testing.T) {
	installKAI(t)
	t.Parallel()
	ns := cluster.Namespace(t)
	addNode(t, "kai-surplus", "example.com/kai-surplus", "1")
	playKAI(t, ns, "kai-surplus")
	ns.Apply(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
      - name: worker
        spec:
          replicas: 3
          minAvailable: 2
          podSpec: {schedulerName: kai-scheduler, containers: [{name: main, image: example.com/server}]}
`)
	pods := ns.WaitForPods(3, time.Minute, framework.IsReady)
	group := kaiGroup(t, ns, "llm-0", "0")
	checkMembers(t, pods, group.GetName())
	if least, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember"); least != 2 {
		t.Errorf("the group needs %d pods, want 2", least)
	}
	if queue, _, _ := unstructured.NestedString(group.Object, "spec", "queue"); queue != "default-queue" {
		t.Errorf("the queue of a set that names none is %q", queue)
	}
}

// checkGroup compares all that is written of a group.
func checkGroup(t *testing.T, group *unstructured.Unstructured, podGang *schedulerv1alpha1.PodGang) {
	t.Helper()
	want := map[string]any{
		"minMember": int64(3), "queue": "team-a", "priorityClassName": "system-cluster-critical", "preemptibility": "non-preemptible",
		"topologyConstraint": map[string]any{"topology": "cluster", "requiredTopologyLevel": "example.com/rack"},
		"subGroups": []any{
			map[string]any{"name": "job-0-launcher", "minMember": int64(1)},
			map[string]any{"name": "job-0-worker", "minMember": int64(2)},
		},
	}
	if diff := cmp.Diff(want, group.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(group, podGang) {
		t.Errorf("the group is not the gang's: %v", group.GetOwnerReferences())
	}
	for key, value := range map[string]string{"kai.scheduler/queue": "team-a", "kai.scheduler/node-pool": "h100", "kai.scheduler/preemptibility": "non-preemptible", labels.PartOf: "job"} {
		if got := group.GetLabels()[key]; got != value {
			t.Errorf("label %s is %q, want %q", key, got, value)
		}
	}
}

// checkMembers holds that pods say which group they are in, and to whom else they are not.
func checkMembers(t *testing.T, pods []corev1.Pod, group string) {
	t.Helper()
	for i := range pods {
		pod := &pods[i]
		got := []string{pod.Annotations["pod-group-name"], pod.Annotations["kai.scheduler/skip-podgrouper"], pod.Labels["kai.scheduler/subgroup-name"]}
		if diff := cmp.Diff([]string{group, "true", pod.Labels[labels.PodClique]}, got); diff != "" {
			t.Errorf("pod %s (-want +got):\n%s", pod.Name, diff)
		}
		if len(pod.Spec.SchedulingGates) > 0 || pod.Spec.SchedulingGroup != nil {
			t.Errorf("pod %s is held, or in a group of another scheduler", pod.Name)
		}
	}
}

func patch(t *testing.T, groups dynamic.ResourceInterface, name, text string, subresources ...string) {
	t.Helper()
	if _, err := groups.Patch(t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresources...); err != nil {
		t.Fatal(err)
	}
}

// tellsOfLimit says whether gang and set tell that the queue above the gang's is over its limit.
func tellsOfLimit(ctx context.Context, ns *framework.Namespace) error {
	podGang, err := cluster.Copse.SchedulerV1alpha1().PodGangs(ns.Name).Get(ctx, "job-0", metav1.GetOptions{})
	if err != nil {
		return err
	}
	scheduled := meta.FindStatusCondition(podGang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled)
	if scheduled == nil || scheduled.Reason != schedulerv1alpha1.ReasonOverLimit || !strings.Contains(scheduled.Message, "department limit is 8 GPUs") {
		return fmt.Errorf("the condition of the gang is %+v", scheduled)
	}
	told := podGang.Status.SchedulingConditions
	if len(told) != 1 || len(told[0].Reasons) != 1 || told[0].Reasons[0].Details == nil || told[0].Reasons[0].Details.QueueDetails == nil {
		return fmt.Errorf("the gang tells %+v", told)
	}
	details := told[0].Reasons[0].Details.QueueDetails
	if limit := details.QueueResourceLimits["nvidia.com/gpu"]; details.Name != "department" || limit.Value() != 8 {
		return fmt.Errorf("the gang tells of the queue %+v", details)
	}
	pcs, err := cluster.Copse.GroveV1alpha1().PodCliqueSets(ns.Name).Get(ctx, "job", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(pcs.Status.ReplicaStatuses) != 1 || pcs.Status.ReplicaStatuses[0].WaitingFor == nil || pcs.Status.ReplicaStatuses[0].WaitingFor.Status != schedulerv1alpha1.ReasonOverLimit {
		return fmt.Errorf("the set tells %+v", pcs.Status.ReplicaStatuses)
	}
	return nil
}

// isPlaced says whether a gang tells that it was placed, and nothing of what was before.
func isPlaced(ctx context.Context, ns *framework.Namespace, pods int) error {
	podGang, err := cluster.Copse.SchedulerV1alpha1().PodGangs(ns.Name).Get(ctx, "job-0", metav1.GetOptions{})
	if err != nil {
		return err
	}
	scheduled := meta.FindStatusCondition(podGang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled)
	if scheduled == nil || scheduled.Message != fmt.Sprintf("all %d pods have been placed", pods) {
		return fmt.Errorf("the condition of the gang is %+v", scheduled)
	}
	if len(podGang.Status.SchedulingConditions) > 0 {
		return errors.New("a gang that runs tells why it does not")
	}
	return nil
}
