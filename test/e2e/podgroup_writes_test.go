package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// writes counts the requests that change PodGroups, in any API, or pods by a patch.
func writes(t *testing.T) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, server := range []string{"copse-apiserver", "kube-apiserver"} {
		for name, count := range cluster.Requests(t, server, func(labels map[string]string) bool {
			switch labels["resource"] {
			case "podgroups":
				return labels["verb"] != "GET" && labels["verb"] != "LIST" && labels["verb"] != "WATCH"
			case "pods":
				return labels["verb"] == "PATCH" && labels["subresource"] == ""
			}
			return false
		}) {
			out[server+" "+name] += count
		}
	}
	return out
}

func since(before, after map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name, count := range after {
		if more := count - before[name]; more > 0 {
			out[name] = more
		}
	}
	return out
}

// A thousand pods are one group, which is written once; its status follows at its own pace.
// The test is not parallel: others would write as well.
func TestAThousandPodsAreOneWrite(t *testing.T) {
	ns := groupedNamespace(t)
	const count = 1000
	uid := ns.gang("large", "", fmt.Sprintf("{replicas: %d}", count))
	name := nameOf("large", uid)
	// They want what no node has: all that is written is about the group.
	before, started := writes(t), time.Now()
	makers := errgroup.Group{}
	makers.SetLimit(16)
	for i := range count {
		makers.Go(func() error {
			pod := member(fmt.Sprintf("large-%d", i), "large", uid, asking("example.com/nowhere", 1))
			_, err := cluster.Kube.CoreV1().Pods(ns.Name).Create(t.Context(), pod, metav1.CreateOptions{})
			return err
		})
	}
	if err := makers.Wait(); err != nil {
		t.Fatal(err)
	}
	group := ns.group(name, func(group *schedulerv1alpha1.PodGroup) error {
		if group.Status.Pending != count {
			return fmt.Errorf("%d pods wait", group.Status.Pending)
		}
		return explaining("NotEnoughResources", nil)(group)
	})
	if group.Generation != 1 {
		t.Errorf("generation %d", group.Generation)
	}
	took := time.Since(started)
	got := since(before, writes(t))
	t.Logf("in %s: %v", took, got)
	for request, n := range got {
		isStatus := strings.Contains(request, "status")
		switch {
		case strings.Contains(request, "DELETE"):
			// Namespaces of the tests before end meanwhile.
		case strings.HasPrefix(request, "copse-apiserver") && isStatus:
			if most := took.Seconds() + 4; n > most {
				t.Errorf("%s %v times in %s", request, n, took)
			}
		case strings.HasPrefix(request, "copse-apiserver") && n > 1:
			t.Errorf("%s %v times", request, n)
		case strings.Contains(request, "pods"):
			if !strings.Contains(request, "podgroups") {
				t.Errorf("pods were written: %s %v times", request, n)
			}
		}
	}
}

// A controller manager that starts anew finds all as it should be, and writes nothing. The
// test is not parallel: others would see that it is gone.
func TestARestartWritesNothing(t *testing.T) {
	ns := groupedNamespace(t)
	uid := ns.gang("bert", ", labels: {priorityClassName: nobody-has-this}", "{replicas: 2}")
	ns.disable()
	ns.create(member("bert-0", "bert", uid), member("bert-1", "bert", uid), ungrouped("loose", "bert", uid))
	ns.enable()
	ns.group(nameOf("bert", uid), func(group *schedulerv1alpha1.PodGroup) error {
		if group.Status.Running != 3 {
			return fmt.Errorf("%d pods run", group.Status.Running)
		}
		return errors.Join(inPhase(schedulerv1alpha1.PodGroupRunning)(group), having("NotAttachable")(group))
	})
	cluster.Stop(t, "copse-controller-manager")
	before := ns.versions()
	cluster.Start(t, "copse-controller-manager")
	// What comes now is seen after what was there.
	later := ns.gang("later", "", "{replicas: 1}")
	ns.create(member("later-0", "later", later))
	ns.group(nameOf("later", later), inPhase(schedulerv1alpha1.PodGroupRunning))
	after := ns.versions()
	for name, version := range before {
		if after[name] != version {
			t.Errorf("%s was written", name)
		}
	}
}

// versions of the PodGroups, pods and events that there are.
func (n grouped) versions() map[string]string {
	n.t.Helper()
	out := map[string]string{}
	for _, kind := range []string{"podgroups.scheduler.grove.io", "podgroups.scheduling.k8s.io", "pods", "events.events.k8s.io"} {
		for line := range strings.Lines(n.Kubectl("get", kind, "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)) {
			name, version, _ := strings.Cut(strings.TrimSpace(line), " ")
			out[kind+"/"+name] = version
		}
	}
	return out
}

// KAI places no group without a queue, and its own grouper leaves pods alone that are in one of
// ours: where nobody asks for a queue, it is KAI's own.
func TestPodsOfKAIThatAskForNoQueue(t *testing.T) {
	ns := groupedNamespace(t)
	ns.installKAI()
	uid := ns.gang("bert", "", "{replicas: many}")
	ns.create(ungrouped("bert-0", "bert", uid, func(pod *corev1.Pod) { pod.Spec.SchedulerName = "kai-scheduler" }))
	queue := func(name, want string) {
		ns.Eventually(30*time.Second, func(context.Context) error {
			got, err := ns.TryKubectl("get", "podgroups.scheduling.run.ai", name, "-o", `jsonpath={.spec.queue},{.metadata.labels.kai\.scheduler/queue}`)
			if err == nil && got != want {
				err = fmt.Errorf("queue %q, want %q", got, want)
			}
			return err
		})
	}
	// The workload makes no sense yet, and its pods wait.
	queue(nameOf("bert", uid), ",")
	ns.Kubectl("patch", "gangs.podgroups.example.com", "bert", "--type=merge", "-p", `{"spec":{"replicas":1}}`)
	queue(nameOf("bert", uid), "default-queue,default-queue")

	ns.Apply("apiVersion: scheduler.grove.io/v1alpha1\nkind: PodGroup\nmetadata: {name: mine}\nspec: {minMember: 1}\n")
	ns.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{podgrouper.PodGroupAnnotation: "mine"}},
		Spec:       corev1.PodSpec{SchedulerName: "kai-scheduler", Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
	})
	queue("mine", "default-queue,")
}

// KAI's pods are put into their group when they are there, with one patch each, and the
// group is KAI's own object.
func TestPodsOfKAI(t *testing.T) {
	ns := groupedNamespace(t)
	ns.installKAI()
	uid := ns.gang("bert", ", labels: {kai.scheduler/queue: research, kai.scheduler/preemptibility: preemptible}", "{replicas: 2}")
	name := nameOf("bert", uid)
	ofKAI := func(pod *corev1.Pod) { pod.Spec.SchedulerName = "kai-scheduler" }
	before := writes(t)
	ns.create(ungrouped("bert-0", "bert", uid, ofKAI), ungrouped("bert-1", "bert", uid, ofKAI))
	ns.WaitForPods(2, time.Minute, func(pod *corev1.Pod) bool {
		return pod.Annotations[podgrouper.PodGroupAnnotation] == name && pod.Annotations[podgrouper.GroupedByAnnotation] == podgrouper.GroupedByValue &&
			pod.Annotations[podgrouper.KAISkipAnnotation] == "true" && pod.Spec.SchedulingGroup == nil
	})
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	groups := client.Resource(schema.GroupVersionResource{Group: "scheduling.run.ai", Version: "v2alpha2", Resource: "podgroups"}).Namespace(ns.Name)
	var group *unstructured.Unstructured
	get := func(ctx context.Context) error {
		group, err = groups.Get(ctx, name, metav1.GetOptions{})
		return err
	}
	ns.Eventually(30*time.Second, get)
	spec, _, _ := unstructured.NestedMap(group.Object, "spec")
	if spec["queue"] != "research" || spec["preemptibility"] != "preemptible" || fmt.Sprint(spec["minMember"]) != "2" || len(group.GetOwnerReferences()) != 1 || group.GetOwnerReferences()[0].UID != uid {
		t.Errorf("got %v of %v", spec, group.GetOwnerReferences())
	}
	own, err := cluster.Copse.SchedulerV1alpha1().PodGroups(ns.Name).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(own.Items) > 0 {
		t.Errorf("there are PodGroups of ours as well: %v, %v", own, err)
	}
	if got := since(before, writes(t)); got["kube-apiserver PATCH pods"] != 2 {
		t.Errorf("writes: %v", got)
	}

	ns.Kubectl("patch", "gangs.podgroups.example.com", "bert", "--type=merge", "-p", `{"metadata":{"labels":{"kai.scheduler/preemptibility":null}},"spec":{"replicas":3}}`)
	ns.Eventually(30*time.Second, func(ctx context.Context) error {
		if err := get(ctx); err != nil {
			return err
		}
		minimum, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember")
		if preemptibility, is, _ := unstructured.NestedString(group.Object, "spec", "preemptibility"); minimum != 3 || is {
			return fmt.Errorf("minMember %d, preemptibility %q", minimum, preemptibility)
		}
		return nil
	})
	ns.Kubectl("delete", "podgroups.scheduling.run.ai", name)
	ns.Eventually(30*time.Second, get)
}
