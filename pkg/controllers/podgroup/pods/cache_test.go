package pods

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func requesting(cpu string) corev1.Container {
	return corev1.Container{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
}

func TestStrip(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "ns", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
			Annotations:   map[string]string{"pod-group-name": "g", corev1.LastAppliedConfigAnnotation: "{}"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{
			SchedulerName: "s", NodeName: "n", NodeSelector: map[string]string{"pool": "x"}, PriorityClassName: "train",
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To("g")}, SchedulingGates: []corev1.PodSchedulingGate{{Name: "gate"}},
			InitContainers: []corev1.Container{requesting("4")}, Containers: []corev1.Container{requesting("1"), requesting("2")}, Volumes: []corev1.Volume{{Name: "v"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, PodIP: "1.2.3.4", Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse},
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no room", LastProbeTime: metav1.Now()},
		}},
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "ns", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"pod-group-name": "g"},
		},
		Spec: corev1.PodSpec{
			SchedulerName: "s", NodeName: "n", NodeSelector: map[string]string{"pool": "x"}, PriorityClassName: "train",
			SchedulingGroup: pod.Spec.SchedulingGroup, SchedulingGates: pod.Spec.SchedulingGates,
			Containers: []corev1.Container{{Resources: requesting("4").Resources}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no room"},
		}},
	}
	got, err := Strip(pod)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if other, _ := Strip("a tombstone"); other != "a tombstone" {
		t.Errorf("got %v", other)
	}
}

func TestWhatIsSelected(t *testing.T) {
	pod := func(namespace, name string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if change != nil {
			change(p)
		}
		return p
	}
	in := func(group string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{"pod-group-name": group} }
	}
	b := fake.NewClientBuilder()
	b.WithIndex(&corev1.Pod{}, groupIndex, groups).WithIndex(&corev1.Pod{}, looseIndex, loose)
	c := b.WithObjects(
		pod("ns", "member", in("g")), pod("ns", "of-another", in("h")), pod("other", "elsewhere", in("g")),
		pod("ns", "loose", nil), pod("other", "loose-elsewhere", nil),
		pod("ns", "ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("ns", "grouped", func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{} }),
	).Build()
	for name, tc := range map[string]struct {
		options []client.ListOption
		want    []string
	}{
		"members": {InGroup("ns", "g"), []string{"member"}},
		"loose":   {Loose("ns"), []string{"ended", "loose"}},
	} {
		list := &corev1.PodList{}
		if err := c.List(t.Context(), list, tc.options...); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range list.Items {
			got = append(got, list.Items[i].Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
