package app

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func moment(seconds int) metav1.Time {
	return metav1.NewTime(time.Date(2026, time.March, 1, 12, 0, seconds, 0, time.UTC))
}

// fullPod is a pod with everything that a decision reads, and much that none does.
func fullPod() *corev1.Pod {
	ended := func(name string, code int32, reason string, second int) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: name, Image: "image", ImageID: "id", ContainerID: "id", RestartCount: 3, Started: ptr.To(false),
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: code, Reason: reason, Message: "much text", StartedAt: moment(0), FinishedAt: moment(second), ContainerID: "id", Signal: 9,
			}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 77}},
		}
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "llm-0-worker-3-lkg2ifu6", UID: "uid", ResourceVersion: "7", Generation: 1,
			Labels: map[string]string{
				labels.PartOf: "llm", labels.ManagedBy: labels.ManagedByValue, labels.PodClique: "llm-0-worker",
				labels.PodIndex: "3", labels.RestartAttempt: "2", labels.PodTemplateHash: "hash", "team": "red",
			},
			Annotations:                map[string]string{"long": "text", podgrouper.PodGroupAnnotation: "llm-0-group"},
			ManagedFields:              []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
			OwnerReferences:            []metav1.OwnerReference{{Kind: "PodClique", Name: "llm-0-worker", UID: "clique", Controller: ptr.To(true)}},
			CreationTimestamp:          moment(1),
			DeletionTimestamp:          ptr.To(moment(50)),
			DeletionGracePeriodSeconds: ptr.To[int64](20),
			Finalizers:                 []string{"example.com/held"},
		},
		Spec: corev1.PodSpec{
			NodeName: "gpu-17", SchedulingGates: []corev1.PodSchedulingGate{{Name: "gate"}}, Hostname: "llm-0-worker-3",
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To("llm-0-group")},
			Containers: []corev1.Container{{
				Name: "main", Image: "image", Env: []corev1.EnvVar{{Name: "A", Value: "a"}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}},
			}},
			Volumes: []corev1.Volume{{Name: "data"}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodFailed, Reason: "Evicted", Message: "much text", HostIP: "10.0.0.1", PodIP: "10.1.0.1", QOSClass: corev1.PodQOSGuaranteed,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, Message: "text"},
			},
			InitContainerStatuses: []corev1.ContainerStatus{ended("init", 2, "Error", 10)},
			ContainerStatuses:     []corev1.ContainerStatus{ended("main", 137, "OOMKilled", 31), ended("log", 0, "Completed", 40)},
		},
	}
}

func strip(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	obj, err := stripPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*corev1.Pod)
}

func read(t *testing.T, pod *corev1.Pod) gang.Pod {
	t.Helper()
	return gang.NewPod(&grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "llm-0-worker", UID: "clique"}}, pod)
}

func TestAStrippedPodDecidesAsTheWholeOne(t *testing.T) {
	pod := fullPod()
	want := read(t, pod)
	// The comparison would prove nothing about a field that is empty in both.
	expect(t, "what is compared", gang.Pod{
		Name: "llm-0-worker-3-lkg2ifu6", UID: "uid", Version: "7", Index: 3, Attempt: 2, TemplateHash: "hash", Phase: corev1.PodFailed,
		Ready: true, Scheduled: true, Gated: true, Started: true, Node: "gpu-17",
		Created: moment(1).Time, DeletionRequested: ptr.To(moment(30).Time), DeletionDue: moment(50).Time, FinishedAt: moment(40).Time,
		Failure: "failed (init exit code 2; main exit code 137, OOMKilled; Evicted) on node gpu-17",
	}, want)
	expect(t, "stripped", want, read(t, strip(t, pod)))
	expect(t, "the pod that was stripped", fullPod(), pod)
}

// Parts of a pod that decide only when others are missing, in all their combinations.
func TestStrippedPodsDecideAsTheWholeOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cuts := []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Status.InitContainerStatuses = nil },
		func(p *corev1.Pod) { p.Status.ContainerStatuses = nil },
		func(p *corev1.Pod) {
			p.Status.ContainerStatuses = p.Status.ContainerStatuses[:min(1, len(p.Status.ContainerStatuses))]
		},
		func(p *corev1.Pod) { p.Status.Conditions = nil },
		func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse },
		func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionUnknown },
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending },
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning },
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		func(p *corev1.Pod) { p.Status.Reason = "" },
		func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = nil, nil },
		func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = nil },
		func(p *corev1.Pod) { p.Spec.NodeName = "" },
		func(p *corev1.Pod) { p.Spec.SchedulingGates = nil },
		func(p *corev1.Pod) { delete(p.Labels, labels.PodTemplateHash) },
		func(p *corev1.Pod) { delete(p.Labels, labels.PodClique) },
		func(p *corev1.Pod) {
			for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
				for i := range statuses {
					statuses[i].State = []corev1.ContainerState{
						{}, {Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, {Running: &corev1.ContainerStateRunning{StartedAt: moment(2)}}, statuses[i].State,
					}[r.IntN(4)]
				}
			}
		},
	}
	for n := range 2000 {
		pod := fullPod()
		var done []int
		for i, cut := range cuts {
			if r.IntN(4) > 0 || len(pod.Status.Conditions) == 0 && (i == 4 || i == 5) {
				continue
			}
			cut(pod)
			done = append(done, i)
		}
		if diff := cmp.Diff(read(t, pod), read(t, strip(t, pod))); diff != "" {
			t.Fatalf("case %d, cuts %v (-whole +stripped):\n%s", n, done, diff)
		}
	}
}

// What the controllers read of a pod beside that: who it is, whose it is, and which set to look at.
func TestAStrippedPodIsFoundAndDeleted(t *testing.T) {
	pod := strip(t, fullPod())
	expect(t, "meta", metav1.ObjectMeta{
		Namespace: "ns", Name: "llm-0-worker-3-lkg2ifu6", UID: "uid", ResourceVersion: "7",
		Labels: map[string]string{
			labels.PartOf: "llm", labels.ManagedBy: labels.ManagedByValue, labels.PodClique: "llm-0-worker",
			labels.PodIndex: "3", labels.RestartAttempt: "2", labels.PodTemplateHash: "hash",
		},
		OwnerReferences:            fullPod().OwnerReferences,
		CreationTimestamp:          moment(1),
		DeletionTimestamp:          ptr.To(moment(50)),
		DeletionGracePeriodSeconds: ptr.To[int64](20),
		Finalizers:                 []string{"example.com/held"},
		Annotations:                map[string]string{podgrouper.PodGroupAnnotation: "llm-0-group"},
	}, pod.ObjectMeta)
	// Back ends ask which group of the scheduler a pod has joined.
	expect(t, "group", fullPod().Spec.SchedulingGroup, pod.Spec.SchedulingGroup)
	alone := fullPod()
	alone.Annotations, alone.Spec.SchedulingGroup = nil, nil
	expect(t, "annotations of a pod of no group", map[string]string(nil), strip(t, alone).Annotations)
	expect(t, "containers", 0, len(pod.Spec.Containers))
}

func TestStrippingPaysOff(t *testing.T) {
	size := func(pod *corev1.Pod) int {
		text, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	pod := fullPod()
	pod.Spec.Containers[0].Args = slices.Repeat([]string{"argument"}, 1000)
	pod.Annotations["big"] = fmt.Sprint(make([]int, 1000))
	if n := size(strip(t, pod)); n > 1600 {
		t.Errorf("a stripped pod has %d bytes of the %d", n, size(pod))
	}
}

func TestOnlyPodsAreStripped(t *testing.T) {
	service := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "None"}}
	got, err := stripPod(service)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "Service", any(service), got)
}

// Of the cluster's own kinds only what we made may be in the cache: a cluster has many
// more pods than ours.
func TestTheCacheHoldsWhatIsOurs(t *testing.T) {
	kinds := map[string]bool{}
	for obj, options := range cacheOptions(true).ByObject {
		kind := fmt.Sprintf("%T", obj)
		kinds[kind] = true
		if _, isNode := obj.(*corev1.Node); isNode {
			// No node is ours: each is kept, as little as there is to know.
			expect(t, "selector of nodes", nil, options.Label)
			continue
		}
		if options.Label == nil || !options.Label.Matches(apilabels.Set(labels.Managed("n", "set", "c"))) || options.Label.Matches(apilabels.Set{labels.PartOf: "set"}) {
			t.Errorf("%s: selector %v", kind, options.Label)
		}
	}
	want := map[string]bool{}
	// A cluster that does not schedule gangs knows no groups: to name them here would keep the cache from starting.
	for _, obj := range []any{&corev1.Pod{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.Node{}, &autoscalingv2.HorizontalPodAutoscaler{}, &resourcev1.ResourceClaim{}} {
		want[fmt.Sprintf("%T", obj)] = true
	}
	expect(t, "kinds", want, kinds)
	// Nor does one without ResourceClaims know those.
	for obj := range cacheOptions(false).ByObject {
		if _, isClaim := obj.(*resourcev1.ResourceClaim); isClaim {
			t.Error("the cache asks for claims where there are none")
		}
	}
}

// A container that waits to be started once more says with what it ended; the state before
// the last is of no use to one that runs or has ended.
func TestWaitingContainersKeepHowTheyEnded(t *testing.T) {
	exit := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: "much text", FinishedAt: moment(9)}}
	}
	kept := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", FinishedAt: moment(9)}}
	}
	waiting := func(text string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: text}}
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: moment(3)}}
	got := containerStates([]corev1.ContainerStatus{
		{Name: "loops", RestartCount: 7, State: waiting("back-off 5m0s"), LastTerminationState: exit(3)},
		{Name: "runs", State: runs, LastTerminationState: exit(4)},
		{Name: "ended", State: exit(5), LastTerminationState: exit(6)},
		{Name: "new", State: waiting("")},
	})
	expect(t, "states", []corev1.ContainerStatus{
		{Name: "loops", State: waiting(""), LastTerminationState: kept(3)},
		{Name: "runs", State: runs},
		{Name: "ended", State: kept(5)},
		{Name: "new", State: waiting("")},
	}, got)
}

// A heartbeat changes nothing of what is kept.
func TestOfANodeItsTaintsAndReadinessAreKept(t *testing.T) {
	taints := []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-17", UID: "uid", ResourceVersion: "7", Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"long": "text"}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.0.0.0/24", ProviderID: "x", Taints: taints},
		Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"much"}}}, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", LastHeartbeatTime: moment(9), LastTransitionTime: moment(5)},
		}},
	}
	before := node.DeepCopy()
	for obj, options := range cacheOptions(true).ByObject {
		if _, isNode := obj.(*corev1.Node); !isNode {
			continue
		}
		got, err := options.Transform(node)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "node", any(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "gpu-17", UID: "uid", ResourceVersion: "7"}, Spec: corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: moment(5)}}},
		}), got)
		expect(t, "the node that was stripped", before, node)
		other, err := options.Transform(&corev1.Service{})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "something else", any(&corev1.Service{}), other)
		return
	}
	t.Error("no options for nodes")
}

func TestPodsAreStrippedOnTheirWayIntoTheCache(t *testing.T) {
	for obj, options := range cacheOptions(true).ByObject {
		if _, isPod := obj.(*corev1.Pod); !isPod {
			continue
		}
		got, err := options.Transform(fullPod())
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "pod", strip(t, fullPod()), got.(*corev1.Pod))
		return
	}
	t.Error("no options for pods")
}
