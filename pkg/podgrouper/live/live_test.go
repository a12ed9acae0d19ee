package live

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// ofWidget is a pod of a kind that nothing is known about.
func ofWidget(scheduler string) (*corev1.Pod, owners.Chain) {
	widget := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", UID: "w-uid"},
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod-uid"}, Spec: corev1.PodSpec{SchedulerName: scheduler},
	}, owners.Chain{Owners: []*metav1.PartialObjectMetadata{widget}}
}

func identify(t *testing.T, l *Live, scheduler string) podgrouper.Identity {
	t.Helper()
	pod, chain := ofWidget(scheduler)
	id, err := l.Current().Identify(pod, chain)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestTheConfigMapCountsAsItIsNow(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	l := newLive(&informertest.FakeInformers{}, Options{Namespace: "copse-system", Recorder: recorder, KAISchedulers: []string{"kai-scheduler"}})
	changes := 0
	l.OnChange(func() { changes++ })
	if l.Current() != nil {
		t.Error("there is a grouper before it is known what it is to do")
	}
	l.configure(nil)
	if id := identify(t, l, "kai-scheduler"); id.Rule != "Default" {
		t.Errorf("rule %q", id.Rule)
	}
	l.configure(&corev1.ConfigMap{Data: map[string]string{
		"passOver": "[{group: example.com, kind: Widget}]", "rules": "[{group: example.com}]",
	}})
	if id := identify(t, l, "kai-scheduler"); !id.PerPod {
		t.Error("the kind is not passed over")
	}
	select {
	case event := <-recorder.Events:
		if !strings.Contains(event, "InvalidConfiguration") || !strings.Contains(event, "rules") {
			t.Errorf("event %q", event)
		}
	default:
		t.Error("nothing tells of the mistake")
	}
	// Without its ConfigMap it is what comes with the program.
	l.configure(nil)
	if id := identify(t, l, "kai-scheduler"); id.PerPod {
		t.Error("what was configured still counts")
	}
	if changes != 3 {
		t.Errorf("told %d times of 3 changes", changes)
	}
}

func TestSchedulersThatTakeGroups(t *testing.T) {
	for _, native := range []bool{false, true} {
		l := newLive(&informertest.FakeInformers{}, Options{Namespace: "copse-system", KAISchedulers: []string{"kai-scheduler"}})
		l.native = native
		l.configure(nil)
		if got := identify(t, l, "").Needed(); got != native {
			t.Errorf("native gangs %v: grouped %v", native, got)
		}
		if !identify(t, l, "kai-scheduler").Needed() || identify(t, l, "other").Needed() {
			t.Error("KAI's pods are grouped, another scheduler's are not")
		}
	}
}

func TestClasses(t *testing.T) {
	class := func(name string, value int32, globalDefault bool) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: globalDefault}
	}
	c := Classes{fake.NewClientBuilder().WithObjects(class("high", 9, true), class("low", 1, true), class("none", 0, false)).Build()}
	if !c.Exists("none") || c.Exists("other") || c.GlobalDefault() != "low" {
		t.Errorf("default %q", c.GlobalDefault())
	}
	if got := (Classes{fake.NewClientBuilder().Build()}).GlobalDefault(); got != "" {
		t.Errorf("default %q without a class", got)
	}
}

func TestTheValueOfAClass(t *testing.T) {
	c := Classes{fake.NewClientBuilder().WithObjects(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 9}).Build()}
	for name, want := range map[string]int32{"high": 9, "other": 0, "": 0} {
		if value, exists := c.Value(name); value != want || exists != (name == "high") {
			t.Errorf("class %q has %d, %v", name, value, exists)
		}
	}
}
