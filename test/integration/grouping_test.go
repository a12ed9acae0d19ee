package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/test/framework"
)

// grouping is a namespace whose pods are grouped, and a client in it that keeps the warnings.
type grouping struct {
	*framework.Namespace
	t    *testing.T
	pods corev1client.PodInterface

	mu       sync.Mutex
	warnings []string
}

var _ rest.WarningHandler = &grouping{}

// HandleWarningHeader keeps a warning.
func (g *grouping) HandleWarningHeader(_ int, _ string, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.warnings = append(g.warnings, text)
}

// groupedNamespace makes a namespace that asks for its pods to be grouped, and waits until
// they are: the API server does not know of the label at once.
func groupedNamespace(t *testing.T) *grouping {
	t.Helper()
	g := &grouping{Namespace: cluster.Namespace(t), t: t}
	config := rest.CopyConfig(cluster.Config)
	config.WarningHandler = g
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	g.pods = client.Pods(g.Name)
	g.Kubectl("label", "namespace", g.Name, podgrouper.NamespaceLabel+"="+podgrouper.NamespaceEnabled)
	g.Eventually(time.Minute, func(context.Context) error {
		pod, err := g.create(newPod("try"), metav1.DryRunAll)
		if err == nil && groupOf(pod) == "" {
			err = errors.New("pods are not grouped")
		}
		return err
	})
	return g
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-", Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
	}
}

// ownedBy is a pod that an object controls.
func ownedBy(name string, owner metav1.Object, apiVersion, kind string) *corev1.Pod {
	pod := newPod(name)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}}
	return pod
}

func (g *grouping) create(pod *corev1.Pod, dryRun ...string) (*corev1.Pod, error) {
	return g.pods.Create(g.t.Context(), pod, metav1.CreateOptions{DryRun: dryRun})
}

// try creates a pod that is not kept, and returns it with the warnings that came.
func (g *grouping) try(pod *corev1.Pod) (*corev1.Pod, []string) {
	g.t.Helper()
	g.mu.Lock()
	g.warnings = nil
	g.mu.Unlock()
	created, err := g.create(pod, metav1.DryRunAll)
	if err != nil {
		g.t.Fatal(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return created, g.warnings
}

// object creates an object that pods can be below, itself below an owner.
func (g *grouping) object(apiVersion, kind, plural, name string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	g.t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	if strings.HasPrefix(apiVersion, "apps/") {
		// The cluster's own kinds are checked; this one makes no pods.
		labels := map[string]any{"of": name}
		container := map[string]any{"name": "main", "image": "example.com/main"}
		obj.Object["spec"] = map[string]any{
			"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{container}}},
		}
	}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetName(name)
	if owner != nil {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}})
	}
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		g.t.Fatal(err)
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		g.t.Fatal(err)
	}
	created, err := client.Resource(gv.WithResource(plural)).Namespace(g.Name).Create(g.t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	return created
}

// applyWorkloadKinds adds kinds of others to the cluster.
func applyWorkloadKinds(t *testing.T, g *grouping) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "workloads.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	g.Anywhere().Apply(string(text), "--server-side", "--force-conflicts")
	for _, kind := range []string{"pytorchjobs.kubeflow.org", "leaderworkersets.leaderworkerset.x-k8s.io", "workflows.argoproj.io", "sweeps.example.com"} {
		g.WaitFor("crd/"+kind, "condition=Established")
	}
}

// priorityClass makes a class for one test.
func priorityClass(t *testing.T, value int32) string {
	t.Helper()
	classes := cluster.Kube.SchedulingV1().PriorityClasses()
	class, err := classes.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Value: value}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = classes.Delete(context.Background(), class.Name, metav1.DeleteOptions{}) })
	return class.Name
}

func groupOf(pod *corev1.Pod) string {
	if pod.Spec.SchedulingGroup == nil {
		return ""
	}
	return ptr.Deref(pod.Spec.SchedulingGroup.PodGroupName, "")
}

// expectMarks wants a pod to be marked as a member of its group.
func expectMarks(t *testing.T, pod *corev1.Pod, prefix, subGroup string) {
	t.Helper()
	group := groupOf(pod)
	if !strings.HasPrefix(group, prefix) || group != pod.Annotations[podgrouper.PodGroupAnnotation] ||
		pod.Annotations[podgrouper.GroupedByAnnotation] != podgrouper.GroupedByValue || pod.Labels[podgrouper.SubGroupLabel] != subGroup {
		t.Errorf("pod %s is in group %q, with annotations %v and labels %v; want %s…, subgroup %q", pod.Name, group, pod.Annotations, pod.Labels, prefix, subGroup)
	}
}

const ownWorkloads = `
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  parallelism: 2
  completions: 2
  template: {metadata: {labels: {of: job}}, spec: {restartPolicy: Never, containers: [{name: main, image: example.com/main}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {of: web}}
  template: {metadata: {labels: {of: web}}, spec: {containers: [{name: main, image: example.com/main}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gang, annotations: {scheduler.grove.io/min-member: "2"}}
spec:
  replicas: 2
  selector: {matchLabels: {of: gang}}
  template: {metadata: {labels: {of: gang}}, spec: {containers: [{name: main, image: example.com/main}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  podManagementPolicy: Parallel
  selector: {matchLabels: {of: db}}
  template: {metadata: {labels: {of: db}}, spec: {containers: [{name: main, image: example.com/main}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {of: agent}}
  template: {metadata: {labels: {of: agent}}, spec: {containers: [{name: main, image: example.com/main}]}}
`

func TestPodsOfTheClustersOwnWorkloadsJoinTheirGroups(t *testing.T) {
	g := groupedNamespace(t)
	g.Apply(ownWorkloads)
	for of, want := range map[string]struct {
		prefix string
		groups int
	}{"job": {"pg-job-", 1}, "web": {"pg-web-", 2}, "gang": {"pg-gang-", 1}, "db": {"pg-db-", 1}, "agent": {"", 0}} {
		is := func(pod *corev1.Pod) bool { return pod.Labels["of"] == of }
		count := 2
		if of == "agent" {
			nodes, err := cluster.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			count = len(nodes.Items)
		}
		groups := map[string]bool{}
		for _, pod := range g.WaitForPods(count, time.Minute, is) {
			switch {
			case !is(&pod):
			case want.groups == 0 && (pod.Spec.SchedulingGroup != nil || pod.Annotations[podgrouper.PodGroupAnnotation] != ""):
				t.Errorf("pod %s is in group %q", pod.Name, groupOf(&pod))
			case want.groups > 0:
				expectMarks(t, &pod, want.prefix, "")
				groups[groupOf(&pod)] = true
			}
		}
		if len(groups) != want.groups {
			t.Errorf("the pods of %s are in %d groups, want %d", of, len(groups), want.groups)
		}
	}
}

func TestPodsOfOthersWorkloadsJoinTheirGroups(t *testing.T) {
	g := groupedNamespace(t)
	applyWorkloadKinds(t, g)
	workflow := g.object("argoproj.io/v1alpha1", "Workflow", "workflows", "flow", nil)
	job := g.object("kubeflow.org/v1", "PyTorchJob", "pytorchjobs", "torch", workflow)
	replica := ownedBy("torch-worker-0", job, "kubeflow.org/v1", "PyTorchJob")
	replica.Labels["training.kubeflow.org/replica-type"] = "worker"
	worker, warnings := g.try(replica)
	expectMarks(t, worker, "pg-torch-", "worker")
	if len(warnings) > 0 {
		t.Errorf("warnings %q", warnings)
	}
	replica.Labels["training.kubeflow.org/replica-type"] = "master"
	master, _ := g.try(replica)
	expectMarks(t, master, groupOf(worker), "master")
	// A step that is a pod is its own group: a Workflow is none.
	step, _ := g.try(ownedBy("flow-step", workflow, "argoproj.io/v1alpha1", "Workflow"))
	expectMarks(t, step, "pg-flow-step-", "")

	set := g.object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets", "lws", nil)
	leaders := g.object("apps/v1", "StatefulSet", "statefulsets", "lws", set)
	groups := map[string]bool{}
	for _, index := range []string{"0", "1"} {
		leader := ownedBy("lws-"+index, leaders, "apps/v1", "StatefulSet")
		leader.Labels["leaderworkerset.sigs.k8s.io/group-index"], leader.Labels["leaderworkerset.sigs.k8s.io/worker-index"] = index, "0"
		created, _ := g.try(leader)
		expectMarks(t, created, "pg-lws-group-"+index+"-", "leader")
		groups[groupOf(created)] = true
	}
	if len(groups) != 2 {
		t.Errorf("the leaders are in %v", groups)
	}

	// What may not be read is known by what is below it.
	sweep := g.object("example.com/v1", "Sweep", "sweeps", "sweep", nil)
	trial := g.object("apps/v1", "ReplicaSet", "replicasets", "trial", sweep)
	pod, warnings := g.try(ownedBy("trial", trial, "apps/v1", "ReplicaSet"))
	expectMarks(t, pod, "pg-trial-", "")
	contains(t, strings.Join(warnings, "\n"), "OwnerForbidden: owner Sweep sweep may not be read")
}

func TestPodsThatAreNotGrouped(t *testing.T) {
	g := groupedNamespace(t)
	other := cluster.Namespace(t)
	for name, tc := range map[string]struct {
		namespace string
		change    func(*corev1.Pod)
	}{
		"in a namespace that does not ask for it": {other.Name, func(*corev1.Pod) {}},
		"in a group already":                      {g.Name, func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("mine")} }},
		"opted out":                               {g.Name, func(p *corev1.Pod) { p.Annotations[podgrouper.SkipAnnotation] = "true" }},
		"of KAI":                                  {g.Name, func(p *corev1.Pod) { p.Spec.SchedulerName = "kai-scheduler" }},
		"of another scheduler":                    {g.Name, func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }},
	} {
		pod := newPod("alone")
		tc.change(pod)
		created, err := cluster.Kube.CoreV1().Pods(tc.namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if groupOf(created) != groupOf(pod) || created.Annotations[podgrouper.PodGroupAnnotation] != "" || len(created.Spec.SchedulingGates) > 0 {
			t.Errorf("%s: group %q, annotations %v", name, groupOf(created), created.Annotations)
		}
	}
}

// An owner that is not there is no reason to guess.
func TestAPodWhoseOwnerIsMissingIsRefusedForTheMoment(t *testing.T) {
	g := groupedNamespace(t)
	g.Apply("apiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\nspec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: i}]}}}\n")
	job, err := cluster.Kube.BatchV1().Jobs(g.Name).Get(t.Context(), "job", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, message := range map[string]string{
		"gone": fmt.Sprintf("owner Job %s/gone with UID 1 does not exist", g.Name),
		"job":  fmt.Sprintf("owner Job %s/job with UID 1 does not exist: the object by that name has UID %s", g.Name, job.UID),
	} {
		_, err := g.create(ownedBy("pod", &metav1.ObjectMeta{Name: name, UID: "1"}, "batch/v1", "Job"))
		if !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		contains(t, err.Error(), `admission webhook "pods.pod-grouper.grove.io" denied the request: the group of the pod is not known yet, try again: `+message)
	}
	pod, _ := g.try(ownedBy("pod", job, "batch/v1", "Job"))
	expectMarks(t, pod, "pg-job-", "")
}
