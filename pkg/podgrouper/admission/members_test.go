package admission

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

const jobGroup = "pg-job-"

func TestAPodJoinsTheGroupOfItsOwner(t *testing.T) {
	s := newScene(t)
	s.under("batch/v1", "Job", "job")
	warnings := s.add(t)
	group := s.group()
	if !strings.HasPrefix(group, jobGroup) {
		t.Fatalf("group %q", group)
	}
	expect(t, "warnings", []string(nil), warnings)
	expect(t, "annotations", map[string]string{"pod-group-name": group, "scheduler.grove.io/grouped-by": "pod-grouper"}, s.pod.Annotations)
	expect(t, "labels", map[string]string{}, s.pod.Labels)
	// The priority of the class that it had goes: the API server derives it anew.
	expect(t, "spec", corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, PriorityClassName: "train", SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group}}, s.pod.Spec)

	// Asked once more, as the API server does when another webhook changed the pod, nothing is
	// different; nor is it for another pod.
	again := s.pod.DeepCopy()
	expect(t, "warnings of the second call", []string(nil), s.add(t))
	expect(t, "pod of the second call", again, s.pod)
	other := newScene(t)
	other.under("batch/v1", "Job", "job")
	other.pod.Name, other.pod.GenerateName = "", "job-"
	other.add(t)
	expect(t, "group of another pod", group, other.group())
}

func TestAPodWithoutMapsJoins(t *testing.T) {
	s := newScene(t)
	s.pod.Labels, s.pod.Annotations, s.pod.Spec.SchedulerName = nil, nil, ""
	s.under("kubeflow.org/v1", "PyTorchJob", "job")
	s.pod.Labels = map[string]string{"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0"}
	s.add(t)
	expect(t, "subgroup", "worker", s.pod.Labels[podgrouper.SubGroupLabel])
	if s.group() == "" {
		t.Error("it has no group")
	}
}

func TestAPodThatIsAGroupOfItsOwnGetsItsOwnName(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*scene)
		want   string
	}{
		"with a name":      {func(*scene) {}, "pg-pod-"},
		"without one":      {func(s *scene) { s.pod.Name, s.pod.GenerateName = "", "web-5d-" }, "pg-web-5d-"},
		"of a Deployment":  {func(s *scene) { s.under("apps/v1", "ReplicaSet", "web-5d"); s.under("apps/v1", "Deployment", "web") }, "pg-pod-"},
		"with a long name": {func(s *scene) { s.pod.Name = strings.Repeat("long.", 50) + "x" }, "pg-long-long-"},
	} {
		t.Run(name, func(t *testing.T) {
			names := map[string]bool{}
			for _, id := range []string{"one", "two", "one"} {
				s := newScene(t)
				tc.change(s)
				if _, err := s.members().Add(t.Context(), s.pod, Request{ID: id}); err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(s.group(), tc.want) || len(s.group()) > 63 {
					t.Errorf("group %q", s.group())
				}
				names[s.group()] = true
				// It is ours: the controller finds it by what we wrote.
				expect(t, "annotation", s.group(), s.pod.Annotations[podgrouper.PodGroupAnnotation])
			}
			expect(t, "names of two", 2, len(names))
		})
	}
}

func TestTheClassOfAPod(t *testing.T) {
	group := func(t *testing.T) string {
		s := newScene(t)
		s.under("batch/v1", "Job", "job")
		s.add(t)
		return s.group()
	}(t)
	for name, tc := range map[string]struct {
		change   func(*scene)
		class    string
		kept     bool
		warnings []string
	}{
		"of the rule":         {func(*scene) {}, "train", false, nil},
		"of the owner":        {func(s *scene) { s.chain.Owners[0].Labels["priorityClassName"] = "high" }, "high", false, nil},
		"that the pod has":    {func(s *scene) { s.pod.Spec.PriorityClassName = "high" }, "high", true, nil},
		"that does not exist": {func(s *scene) { s.chain.Owners[0].Labels["priorityClassName"] = "none" }, "train", false, []string{"UnknownPriorityClass"}},
		"of the scheduler's group": {
			func(s *scene) { s.podGroup(group, "high"); s.native(group, "low") }, "low", false, []string{`PriorityOfGroup: group ` + group + ` has PriorityClass "low"`},
		},
		"of the PodGroup before the scheduler's is made": {func(s *scene) { s.podGroup(group, "high") }, "high", false, []string{"PriorityOfGroup"}},
		"of a group that has none":                       {func(s *scene) { s.native(group, "") }, "", false, []string{"has no PriorityClass"}},
		"of a group that has the same":                   {func(s *scene) { s.native(group, "train") }, "train", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.under("batch/v1", "Job", "job")
			tc.change(s)
			warnings := s.add(t)
			expect(t, "group", group, s.group())
			expect(t, "class", tc.class, s.pod.Spec.PriorityClassName)
			expect(t, "priority is kept", tc.kept, s.pod.Spec.Priority != nil)
			expect(t, "preemption policy is kept", tc.kept, s.pod.Spec.PreemptionPolicy != nil)
			expectWarnings(t, tc.warnings, warnings)
		})
	}
}

func expectWarnings(t *testing.T, want, got []string) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("warnings %q, want %q", got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("warning %q, want %q", got[i], want[i])
		}
	}
}

// Without a rule's class in the cluster a pod keeps what the API server has given it.
func TestAPodOfAGroupWithoutAClassKeepsItsOwn(t *testing.T) {
	s := newScene(t)
	s.grouper = podgrouperWithout(t)
	s.under("batch/v1", "Job", "job")
	spec := s.pod.Spec
	s.add(t)
	s.pod.Spec.SchedulingGroup = nil
	expect(t, "spec", spec, s.pod.Spec)
}

func TestTheClassInTheFieldsOfTheOwner(t *testing.T) {
	spec := func(class any) map[string]any {
		return map[string]any{"priorityClassName": class}
	}
	for name, tc := range map[string]struct {
		change   func(s *scene, owner *metav1.PartialObjectMetadata)
		class    string
		warnings []string
	}{
		"is read":             {func(s *scene, o *metav1.PartialObjectMetadata) { s.fields(o, spec("high")) }, "high", nil},
		"is not there":        {func(s *scene, o *metav1.PartialObjectMetadata) { s.fields(o, map[string]any{}) }, "train", nil},
		"cannot be read":      {func(s *scene, o *metav1.PartialObjectMetadata) { s.fields(o, spec(map[string]any{})) }, "train", []string{"InvalidOwner"}},
		"is not worth a look": {func(_ *scene, o *metav1.PartialObjectMetadata) { o.Labels["priorityClassName"] = "low" }, "low", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tc.change(s, s.under("kubevirt.io/v1", "VirtualMachineInstance", "vm"))
			expectWarnings(t, tc.warnings, s.add(t))
			expect(t, "class", tc.class, s.pod.Spec.PriorityClassName)
		})
	}
}

func TestPodsThatAreLeftAlone(t *testing.T) {
	daemon := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent-uid", Controller: ptr.To(true)}
	clique := metav1.OwnerReference{APIVersion: "grove.io/v1alpha1", Kind: "PodClique", Name: "clique", UID: "clique-uid", Controller: ptr.To(true)}
	for name, tc := range map[string]struct {
		change   func(*scene)
		searched bool
	}{
		"of a DaemonSet":             {func(s *scene) { s.pod.OwnerReferences = []metav1.OwnerReference{daemon} }, false},
		"of a PodClique":             {func(s *scene) { s.pod.OwnerReferences = []metav1.OwnerReference{clique} }, false},
		"of a kubelet":               {func(s *scene) { s.pod.Annotations[corev1.MirrorPodAnnotationKey] = "x" }, false},
		"of the system":              {func(s *scene) { s.pod.Namespace = metav1.NamespaceSystem }, false},
		"in a group":                 {func(s *scene) { s.pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("mine")} }, false},
		"with eviction responders":   {func(s *scene) { s.pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/a"}} }, false},
		"that opt out":               {func(s *scene) { s.pod.Annotations[podgrouper.SkipAnnotation] = "true" }, false},
		"that opt out in KAI's word": {func(s *scene) { s.pod.Annotations[podgrouper.KAISkipAnnotation] = "true" }, false},
		"of owners that opt out":     {func(s *scene) { s.under("batch/v1", "Job", "job").Annotations[podgrouper.SkipAnnotation] = "true" }, true},
		"of KAI":                     {func(s *scene) { s.pod.Spec.SchedulerName = "kai-scheduler" }, false},
		"of KAI with a PodGroup made by hand": {func(s *scene) {
			s.pod.Spec.SchedulerName, s.pod.Annotations[podgrouper.PodGroupAnnotation] = "kai-scheduler", "mine"
		}, false},
		"of another scheduler": {func(s *scene) { s.pod.Spec.SchedulerName = "other" }, false},
		"of another scheduler's DaemonSet": {func(s *scene) {
			s.pod.Spec.SchedulerName, s.pod.Annotations[podgrouper.PodGroupAnnotation] = "other", "mine"
			s.pod.OwnerReferences = []metav1.OwnerReference{daemon}
		}, false},
		"that opt out of another scheduler's PodGroup": {func(s *scene) {
			s.pod.Spec.SchedulerName, s.pod.Annotations[podgrouper.PodGroupAnnotation], s.pod.Annotations[podgrouper.SkipAnnotation] = "other", "mine", "true"
		}, false},
		"that have a node": {func(s *scene) {
			s.pod.Spec.SchedulerName, s.pod.Annotations[podgrouper.PodGroupAnnotation], s.pod.Spec.NodeName = "other", "mine", "node"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tc.change(s)
			before := s.pod.DeepCopy()
			expect(t, "warnings", []string(nil), s.add(t))
			expect(t, "pod", before, s.pod)
			expect(t, "its owners were looked for", tc.searched, s.searched)
		})
	}
}

func TestThePodGroupThatAPodNames(t *testing.T) {
	mine := podgrouper.NativeName("mine", "mine-uid")
	for name, tc := range map[string]struct {
		change func(*scene)
		class  string
	}{
		"with a class":                  {func(s *scene) { s.podGroup("mine", "high") }, "high"},
		"without one":                   {func(s *scene) { s.podGroup("mine", "") }, ""},
		"that the scheduler has in use": {func(s *scene) { s.podGroup("mine", "high"); s.native(mine, "low") }, "low"},
		"though it has an owner":        {func(s *scene) { s.podGroup("mine", "high"); s.under("batch/v1", "Job", "job") }, "high"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.pod.Annotations[podgrouper.PodGroupAnnotation] = "mine"
			tc.change(s)
			s.add(t)
			expect(t, "group", mine, s.group())
			expect(t, "class", tc.class, s.pod.Spec.PriorityClassName)
			expect(t, "annotations", map[string]string{podgrouper.PodGroupAnnotation: "mine"}, s.pod.Annotations)
			again := s.pod.DeepCopy()
			s.add(t)
			expect(t, "pod of the second call", again, s.pod)
		})
	}
}

func TestPodsOfOtherSchedulersAreHeldForTheirPodGroup(t *testing.T) {
	s := newScene(t)
	s.pod.Spec.SchedulerName, s.pod.Annotations[podgrouper.PodGroupAnnotation] = "other", "mine"
	s.podGroup("mine", "high")
	want := s.pod.DeepCopy()
	want.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: naming.PendingGate}}
	s.add(t)
	expect(t, "pod", want, s.pod)
	s.add(t)
	expect(t, "pod of the second call", want, s.pod)
}

func TestPodsThatAreRefused(t *testing.T) {
	const missing = `PodGroup mine, which annotation pod-group-name names, does not exist in namespace ns: create it first, or leave the annotation out`
	for name, tc := range map[string]struct {
		change  func(*scene)
		code    int32
		message string
	}{
		"the owner is missing": {func(s *scene) {
			s.err = &owners.MissingError{Ref: metav1.OwnerReference{Kind: "Job", Name: "job", UID: "uid"}, Namespace: namespace}
		}, http.StatusServiceUnavailable, "the group of the pod is not known yet, try again: owner Job ns/job with UID uid does not exist"},
		"the owner cannot be read":     {func(s *scene) { s.err = errors.New("no answer") }, http.StatusServiceUnavailable, "the group of the pod is not known yet, try again: no answer"},
		"the grouper is starting":      {func(s *scene) { s.starting = true }, http.StatusServiceUnavailable, "the group of the pod is not known yet, try again: the pod grouper is starting"},
		"the owner's fields cannot be": {func(s *scene) { s.under("kubevirt.io/v1", "VirtualMachineInstance", "vm") }, http.StatusServiceUnavailable, `the group of the pod is not known yet, try again: read VirtualMachineInstance ns/vm: virtualmachineinstances.kubevirt.io "vm" not found`},
		"its PodGroup is missing":      {func(s *scene) { s.pod.Annotations[podgrouper.PodGroupAnnotation] = "mine" }, http.StatusForbidden, missing},
		"so it is for another scheduler": {func(s *scene) {
			s.pod.Annotations[podgrouper.PodGroupAnnotation], s.pod.Spec.SchedulerName = "mine", "x"
		}, http.StatusForbidden, missing},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tc.change(s)
			status := s.refuses(t)
			expect(t, "code", tc.code, status.Code)
			expect(t, "message", tc.message, status.Message)
		})
	}
}

// A pod that was written after another has that one's marks; its group would be the other's.
func TestMarksOfAnotherPodDoNotCount(t *testing.T) {
	s := newScene(t)
	s.pod.Annotations = map[string]string{podgrouper.PodGroupAnnotation: "pg-old", podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue}
	s.add(t)
	if s.group() == "pg-old" || s.group() == "" || s.pod.Annotations[podgrouper.PodGroupAnnotation] != s.group() {
		t.Errorf("group %q, annotations %v", s.group(), s.pod.Annotations)
	}
}

func TestNotesAreWarnings(t *testing.T) {
	s := newScene(t)
	s.under("batch/v1", "Job", "job").Annotations[podgrouper.MinMemberAnnotation] = "many"
	s.chain.Notes = []owners.Note{{Reason: owners.ReasonForbidden, Message: "owner Sweep x may not be read"}}
	expectWarnings(t, []string{"OwnerForbidden: owner Sweep x may not be read", "InvalidOverride: annotation"}, s.add(t))
}
