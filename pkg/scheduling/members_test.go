package scheduling

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

func newPod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func gated(pod *corev1.Pod) {
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/mine"}}
}

func onNode(pod *corev1.Pod) { pod.Spec.NodeName = "node" }

// says is a scheduler's answer about a pod.
func says(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "R", Message: "not ready"},
			corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message})
	}
}

func TestMembersAreThePodsThatAGangRefersTo(t *testing.T) {
	podGang := &schedulerv1alpha1.PodGang{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gang"},
		Spec: schedulerv1alpha1.PodGangSpec{PodGroups: []schedulerv1alpha1.PodGangPodGroup{
			{Name: "x", PodReferences: []schedulerv1alpha1.NamespacedName{{Name: "b"}, {Name: "missing"}}},
			{Name: "y", PodReferences: []schedulerv1alpha1.NamespacedName{{Name: "a"}}},
		}},
	}
	objects := []client.Object{newPod("a"), newPod("b"), newPod("c"), newPod("missing", func(p *corev1.Pod) { p.Namespace = "other" })}
	members, err := Members(t.Context(), fake.NewClientBuilder().WithObjects(objects...).Build(), podGang)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range members {
		names = append(names, pod.Name)
	}
	if diff := cmp.Diff([]string{"b", "a"}, names); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	broken := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("boom")
	}}).Build()
	if _, err := Members(t.Context(), broken, podGang); err == nil {
		t.Error("a cache that cannot be read is taken for one without pods")
	}
}

func TestUnplacedHasTheWordsAboutTheFirstPodThatWaits(t *testing.T) {
	why := func(reason, message string) []schedulerv1alpha1.UnschedulableExplanation {
		return []schedulerv1alpha1.UnschedulableExplanation{{Reason: reason, Message: message}}
	}
	tests := map[string]struct {
		pods []*corev1.Pod
		want []schedulerv1alpha1.UnschedulableExplanation
	}{
		"none":                  {},
		"nothing is said":       {pods: []*corev1.Pod{newPod("a")}},
		"no room":               {pods: []*corev1.Pod{newPod("a"), newPod("b", says("Unschedulable", "0/4"))}, want: why("NotEnoughResources", "pod b: 0/4")},
		"the scheduler fails":   {pods: []*corev1.Pod{newPod("a", says("SchedulerError", "boom"))}, want: why("SchedulerError", "pod a: boom")},
		"it has a node by now":  {pods: []*corev1.Pod{newPod("a", says("Unschedulable", "0/4"), onNode)}},
		"it is held by a gate":  {pods: []*corev1.Pod{newPod("a", says("SchedulingGated", "gated"), gated)}},
		"it was held by a gate": {pods: []*corev1.Pod{newPod("a", says("SchedulingGated", "gated")), newPod("b", says("Unschedulable", "0/4"))}, want: why("NotEnoughResources", "pod b: 0/4")},
		"the first one's words": {pods: []*corev1.Pod{newPod("a", says("Unschedulable", "A")), newPod("b", says("Unschedulable", "B"))}, want: why("NotEnoughResources", "pod a: A")},
		"who is told of nodes first": {
			pods: []*corev1.Pod{newPod("a", says("Unschedulable", "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining")), newPod("b", says("Unschedulable", "0/4 nodes are available: 4 full."))},
			want: why("NotEnoughResources", "pod b: 0/4 nodes are available: 4 full."),
		},
		"one behind those that run": {pods: []*corev1.Pod{newPod("a", onNode), newPod("b", says("Unschedulable", "B"))}, want: why("NotEnoughResources", "pod b: B")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Unplaced(tc.pods)); diff != "" {
				t.Errorf("explanation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGatedCountsPodsWithAnyGate(t *testing.T) {
	if got := Gated([]*corev1.Pod{newPod("a", gated), newPod("b"), newPod("c", gated)}); got != 2 {
		t.Errorf("%d are gated", got)
	}
}
