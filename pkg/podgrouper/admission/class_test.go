package admission

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/podgrouper"
)

// A launcher and its workers that ask for different classes come within milliseconds, before
// their group is there. The scheduler would never place a group of both.
func TestPodsOfAGroupThatIsNotThereYetAllGetTheClassOfTheFirst(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	recent := NewRecent(clock)
	ask := func(job, class string, dryRun bool) (string, []string) {
		s := newScene(t)
		s.recent, s.dryRun = recent, dryRun
		s.under("batch/v1", "Job", job)
		s.pod.Spec.PriorityClassName = class
		warnings := s.add(t)
		return s.pod.Spec.PriorityClassName, warnings
	}
	// One that is only tried out is not the first.
	class, _ := ask("job", "low", true)
	expect(t, "class of one that is tried out", "low", class)
	class, warnings := ask("job", "high", false)
	expect(t, "class of the first", "high", class)
	expectWarnings(t, nil, warnings)
	class, warnings = ask("job", "low", false)
	expect(t, "class of the second", "high", class)
	expectWarnings(t, []string{`PriorityOfGroup: group pg-job-`}, warnings)
	class, _ = ask("other", "low", false)
	expect(t, "class in another group", "low", class)
	clock.SetTime(time.Unix(0, 0).Add(recentFor + time.Second))
	class, _ = ask("job", "low", false)
	expect(t, "class when the group should have been there for long", "low", class)
}

// A pod whose priority is not its group's would keep the whole group from being placed, and
// neither of them can change.
func TestAPodThatCannotHaveThePriorityOfItsGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		class    string
		priority *int32
		grouped  bool
	}{
		"the class is as it was": {"high", ptr.To[int32](3), true},
		"the class is gone":      {"gone", ptr.To[int32](5), false},
		"the class is gone before the scheduler's group is made": {"gone", nil, false},
		"the class has another value":                            {"high", ptr.To[int32](5), false},
		"the default is as it was":                               {"", ptr.To[int32](0), true},
		"there is another default":                               {"", ptr.To[int32](5), false},
		"the scheduler's group is not made yet":                  {"high", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := schedulingv1beta1.PodGroupSpec{PriorityClassName: tc.class, Priority: tc.priority}

			s := newScene(t)
			s.under("batch/v1", "Job", "job")
			s.add(t)
			group := s.group()
			s = newScene(t)
			s.under("batch/v1", "Job", "job")
			s.cluster = append(s.cluster, &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: group}, Spec: spec})
			before := s.pod.DeepCopy()
			warnings := s.add(t)
			expect(t, "grouped", tc.grouped, s.group() == group)
			if !tc.grouped {
				expect(t, "pod that stays alone", before, s.pod)
				expectWarnings(t, []string{"NotGrouped: group " + group}, warnings)
			}

			byHand := newScene(t)
			byHand.pod.Annotations[podgrouper.PodGroupAnnotation] = "mine"
			byHand.podGroup("mine", tc.class)
			byHand.cluster = append(byHand.cluster, &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podgrouper.NativeName("mine", "mine-uid")}, Spec: spec})
			if tc.grouped {
				byHand.add(t)
				expect(t, "class by hand", tc.class, byHand.pod.Spec.PriorityClassName)
				return
			}
			expect(t, "code", int32(http.StatusForbidden), byHand.refuses(t).Code)
		})
	}
}

// Who names a PodGroup, and a class beside it, is told that the class does not count.
func TestTheClassOfAPodThatNamesItsPodGroup(t *testing.T) {
	for asked, want := range map[string][]string{"normal": nil, "high": {`PriorityOfGroup: group mine has no PriorityClass`}} {
		s := newScene(t)
		s.pod.Annotations[podgrouper.PodGroupAnnotation] = "mine"
		s.pod.Spec.PriorityClassName, s.pod.Spec.PreemptionPolicy = asked, ptr.To(corev1.PreemptNever)
		s.podGroup("mine", "")
		expectWarnings(t, want, s.add(t))
		expect(t, "class", "", s.pod.Spec.PriorityClassName)
	}
}

// Kubernetes' scheduler takes no group of a class of the system: a pod in one would wait for a
// group that is refused for ever.
func TestAPodOfAClassThatNoGroupCanHave(t *testing.T) {
	for name, change := range map[string]func(*scene){
		"of its own": func(s *scene) { s.pod.Spec.PriorityClassName = critical },
		"of its own, in a group of one": func(s *scene) {
			s.chain.Owners, s.pod.Spec.PriorityClassName = nil, critical
			s.under("apps/v1", "Deployment", "web")
		},
		"of its owner": func(s *scene) { s.chain.Owners[0].Labels["priorityClassName"] = critical },
		"in the fields of its owner": func(s *scene) {
			s.chain.Owners = nil
			s.fields(s.under("kubevirt.io/v1", "VirtualMachineInstance", "vm"), map[string]any{"priorityClassName": critical})
		},
		"of the PodGroup": func(s *scene) {
			first := newScene(t)
			first.under("batch/v1", "Job", "job")
			first.add(t)
			s.podGroup(first.group(), critical)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.under("batch/v1", "Job", "job")
			change(s)
			before := s.pod.DeepCopy()
			warnings := s.add(t)
			expect(t, "pod that stays alone", before, s.pod)
			expectWarnings(t, []string{`would have PriorityClass "system-cluster-critical" and a priority above 1000000000`}, warnings)
			if !strings.HasPrefix(warnings[0], "NotGrouped: group pg-") {
				t.Errorf("warning %q", warnings[0])
			}
		})
	}
}

// It leaves those of other classes their group.
func TestThePodsBesideOneOfAClassThatNoGroupCanHave(t *testing.T) {
	recent := NewRecent(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	for _, class := range []string{critical, "high"} {
		s := newScene(t)
		s.recent = recent
		s.under("batch/v1", "Job", "job")
		s.pod.Spec.PriorityClassName = class
		s.add(t)
		expect(t, "one of "+class+" is grouped", class == "high", s.group() != "")
		expect(t, "class", class, s.pod.Spec.PriorityClassName)
	}
}

func TestAPodGroupOfAClassThatNoGroupCanHaveTakesNoPods(t *testing.T) {
	s := newScene(t)
	s.pod.Annotations[podgrouper.PodGroupAnnotation] = "mine"
	s.podGroup("mine", critical)
	status := s.refuses(t)
	expect(t, "code", int32(http.StatusForbidden), status.Code)
	expect(t, "message", `PodGroup mine has PriorityClass "system-cluster-critical" and a priority above 1000000000, the highest that Kubernetes' scheduler takes for a group: `+
		`name a PodGroup with another class, or leave annotation pod-group-name out`, status.Message)
}
