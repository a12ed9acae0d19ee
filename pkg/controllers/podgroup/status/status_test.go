package status

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

type podOption func(*corev1.Pod)

func onNode(p *corev1.Pod)      { p.Spec.NodeName = "node" }
func running(p *corev1.Pod)     { p.Spec.NodeName, p.Status.Phase = "node", corev1.PodRunning }
func succeeded(p *corev1.Pod)   { p.Spec.NodeName, p.Status.Phase = "node", corev1.PodSucceeded }
func failed(p *corev1.Pod)      { p.Spec.NodeName, p.Status.Phase = "node", corev1.PodFailed }
func terminating(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }
func gated(p *corev1.Pod)       { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate"}} }
func loose(p *corev1.Pod)       { p.Spec.SchedulingGroup = nil }
func refused(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no room"}}
}
func lacks(p *corev1.Pod) {
	refused(p)
	p.Status.Conditions[0].Message = "0/4 nodes are available: 4 full."
}

// pod of the group pg that waits and asks for one CPU.
func pod(options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec: corev1.PodSpec{
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To("pg")},
			Containers:      []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, option := range options {
		option(p)
	}
	return p
}

func nativeGroup(minCount int32, conditions ...metav1.Condition) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		Spec:   schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount}}},
		Status: schedulingv1beta1.PodGroupStatus{Conditions: conditions},
	}
}

func says(status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: status, Reason: schedulingv1beta1.PodGroupReasonUnschedulable, Message: message}
}

func snapshot(backEnd podgrouper.BackEnd, minimum int32, members ...*corev1.Pod) Snapshot {
	return Snapshot{
		Group:   &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "pg", Generation: 3}, Spec: schedulerv1alpha1.PodGroupSpec{MinMember: &minimum}},
		Members: members, BackEnd: backEnd, NativeName: "pg",
	}
}

// word is what of a status is one word.
type word struct {
	phase                               schedulerv1alpha1.PodGroupPhase
	pending, running, succeeded, failed int32
	conditions                          map[string]string
	why                                 string
}

func words(status *schedulerv1alpha1.PodGroupStatus) word {
	w := word{phase: status.Phase, pending: status.Pending, running: status.Running, succeeded: status.Succeeded, failed: status.Failed, conditions: map[string]string{}}
	for _, c := range status.Conditions {
		w.conditions[c.Type] = string(c.Status) + " " + c.Reason
	}
	for _, c := range status.SchedulingConditions {
		w.why += c.Reasons[0].Reason
	}
	return w
}

func TestDecide(t *testing.T) {
	const notYet, yes = "False BelowMinimum", "True Satisfied"
	with := func(s Snapshot, change func(*Snapshot)) Snapshot {
		change(&s)
		return s
	}
	scheduled := func(count int32) func(*Snapshot) {
		return func(s *Snapshot) { s.Native = nativeGroup(count, says(metav1.ConditionTrue, "")) }
	}
	silent := func(count int32) func(*Snapshot) { return func(s *Snapshot) { s.Native = nativeGroup(count) } }
	refuses := func(message string) func(*Snapshot) {
		return func(s *Snapshot) { s.Native = nativeGroup(2, says(metav1.ConditionFalse, message)) }
	}
	for name, tc := range map[string]struct {
		s    Snapshot
		want word
	}{
		"a pod is missing": {
			with(snapshot(podgrouper.Native, 2, pod()), silent(2)),
			word{"Pending", 1, 0, 0, 0, map[string]string{"Scheduled": "False WaitingForPods", "Satisfied": notYet}, "WaitingForPods"},
		},
		"all are held": {
			with(snapshot(podgrouper.Native, 2, pod(gated), pod(gated)), silent(2)),
			word{"Pending", 2, 0, 0, 0, map[string]string{"Scheduled": "False WaitingForPods", "Satisfied": notYet}, "WaitingForPods"},
		},
		"the scheduler has not looked": {
			with(snapshot(podgrouper.Native, 2, pod(), pod()), silent(2)),
			word{"Pending", 2, 0, 0, 0, map[string]string{"Scheduled": "False WaitingForPods", "Satisfied": notYet}, "WaitingForPods"},
		},
		"it refuses": {
			with(snapshot(podgrouper.Native, 2, pod(), pod()), refuses("no room")),
			word{"Pending", 2, 0, 0, 0, map[string]string{"Scheduled": "False NotEnoughResources", "Satisfied": notYet}, "NotEnoughResources"},
		},
		"its pods differ": {
			with(snapshot(podgrouper.Native, 2, pod(), pod()), refuses("all pods in a single pod group should have the same priority")),
			word{"Pending", 2, 0, 0, 0, map[string]string{"Scheduled": "False MemberMismatch", "Satisfied": notYet}, "MemberMismatch"},
		},
		"the scheduler's group is missing": {
			snapshot(podgrouper.Native, 2, pod(), pod()),
			word{"Pending", 2, 0, 0, 0, map[string]string{"Scheduled": "False GroupObjectMissing", "Satisfied": notYet}, "GroupObjectMissing"},
		},
		"placed": {
			with(snapshot(podgrouper.Native, 2, pod(onNode), pod(running)), scheduled(2)),
			word{"Running", 0, 1, 0, 0, map[string]string{"Scheduled": "True Scheduled", "Satisfied": yes}, ""},
		},
		"one more than needed does not fit": {
			with(snapshot(podgrouper.Native, 1, pod(running), pod(refused)), scheduled(1)),
			word{"Running", 1, 1, 0, 0, map[string]string{"Scheduled": "True Scheduled", "Satisfied": yes}, "NotEnoughResources"},
		},
		"one was lost": {
			with(snapshot(podgrouper.Native, 2, pod(running), pod(refused)), scheduled(2)),
			word{"Pending", 1, 1, 0, 0, map[string]string{"Scheduled": "True Scheduled", "Satisfied": notYet}, "NotEnoughResources"},
		},
		"a replacement is placed by a minimum that was lowered": {
			with(snapshot(podgrouper.Native, 3, pod(succeeded), pod(succeeded), pod()), scheduled(1)),
			word{"Pending", 1, 0, 2, 0, map[string]string{"Scheduled": "True Scheduled", "Satisfied": notYet}, "WaitingForPods"},
		},
		"one goes and waits for nothing": {
			with(snapshot(podgrouper.Native, 1, pod(running), pod(terminating)), scheduled(1)),
			word{"Running", 0, 1, 0, 0, map[string]string{"Scheduled": "True Scheduled", "Satisfied": yes}, ""},
		},
		"all have ended": {
			with(snapshot(podgrouper.Native, 2, pod(succeeded), pod(failed)), scheduled(2)),
			word{"Finished", 0, 0, 1, 1, map[string]string{"Scheduled": "True Scheduled", "Satisfied": notYet}, ""},
		},
		"from before it was grouped": {
			snapshot(podgrouper.Native, 2, pod(loose, running), pod(loose, refused)),
			word{"Pending", 1, 1, 0, 0, map[string]string{"Scheduled": "False NotEnoughResources", "Satisfied": notYet, "NotAttachable": "True NotAttachable"}, "NotEnoughResources"},
		},
		"beside pods that are in groups from before": {
			with(snapshot(podgrouper.Native, 4, pod(running)), func(s *Snapshot) { scheduled(1)(s); s.Strays = 3 }),
			word{"Running", 0, 1, 0, 0, map[string]string{"Scheduled": "True Scheduled", "Satisfied": yes, "NotAttachable": "True NotAttachable"}, ""},
		},
		"a scheduler without groups": {
			snapshot("", 2, pod(loose, running), pod(loose, onNode)),
			word{"Running", 0, 1, 0, 0, map[string]string{"Scheduled": "True Scheduled", "Satisfied": yes, "Unsupported": "True NotSupportedByScheduler"}, ""},
		},
		"and a group that is not complete": {
			snapshot("", 2, pod(loose, gated)),
			word{"Pending", 1, 0, 0, 0, map[string]string{"Scheduled": "False WaitingForPods", "Satisfied": notYet, "Unsupported": "True NotSupportedByScheduler"}, "WaitingForPods"},
		},
		"the workload makes no sense": {
			with(snapshot(podgrouper.Native, 1, pod(running)), func(s *Snapshot) {
				scheduled(1)(s)
				s.Invalid = errors.New("spec.replicas: must be a number")
			}),
			word{"Running", 0, 1, 0, 0, map[string]string{"Scheduled": "True Scheduled", "Satisfied": yes, "Invalid": "True InvalidOwner"}, ""},
		},
		"KAI's own words": {
			with(snapshot(podgrouper.KAI, 2, pod(loose), pod(loose)), func(s *Snapshot) {
				s.Copied = []schedulerv1alpha1.SchedulingCondition{{Reasons: []schedulerv1alpha1.UnschedulableExplanation{{Reason: "OverLimit"}}}}
			}),
			word{"Pending", 2, 0, 0, 0, map[string]string{"Scheduled": "False WaitingForPods", "Satisfied": notYet}, "OverLimit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, changed, figures := Decide(tc.s, time.Unix(100, 0))
			if diff := cmp.Diff(tc.want, words(&out), cmp.AllowUnexported(word{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !changed || figures {
				t.Errorf("changed %v, figures alone %v", changed, figures)
			}
			tc.s.Group.Status = out
			if again, changed, _ := Decide(tc.s, time.Unix(200, 0)); changed {
				t.Errorf("it is written anew:\n%s", cmp.Diff(out, again))
			}
		})
	}
}

func TestWhatIsUnsupported(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		want   bool
	}{
		"nothing": {func(*Snapshot) {}, false},
		"defaults": {func(s *Snapshot) {
			s.Group.Spec.MarkUnschedulable, s.Group.Spec.SchedulingBackoff = ptr.To(true), ptr.To[int32](-1)
		}, false},
		"no marks":       {func(s *Snapshot) { s.Group.Spec.MarkUnschedulable = ptr.To(false) }, true},
		"a back-off":     {func(s *Snapshot) { s.Group.Spec.SchedulingBackoff = ptr.To[int32](1) }, true},
		"a queue":        {func(s *Snapshot) { s.Group.Spec.Queue = "q" }, true},
		"preemptibility": {func(s *Snapshot) { s.Group.Spec.Preemptibility = schedulerv1alpha1.Preemptible }, true},
		"a topology":     {func(s *Snapshot) { s.Group.Spec.TopologyConstraint = &schedulerv1alpha1.PodGroupTopologyConstraint{} }, true},
		"that of a part": {func(s *Snapshot) {
			s.Group.Spec.SubGroups = []schedulerv1alpha1.SubGroup{{TopologyConstraint: &schedulerv1alpha1.PodGroupTopologyConstraint{}}}
		}, true},
		"a queue, which KAI has": {func(s *Snapshot) { s.Group.Spec.Queue, s.BackEnd = "q", podgrouper.KAI }, false},
		"another class":          {func(s *Snapshot) { s.Native = nativeGroup(1); s.Native.Spec.PriorityClassName = "old" }, true},
	} {
		s := snapshot(podgrouper.Native, 1, pod(running))
		tc.change(&s)
		if got := s.unsupported(); (got != "") != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestDetails(t *testing.T) {
	s := snapshot(podgrouper.Native, 4, pod(), pod(), pod(gated), pod(terminating))
	s.Native, s.NodePool = nativeGroup(4), "a100"
	out, _, _ := Decide(s, time.Unix(100, 0))
	want := []schedulerv1alpha1.SchedulingCondition{{
		Type: "UnschedulableOnNodePool", NodePool: "a100", Status: "True", TransitionID: "1", LastTransitionTime: metav1.Unix(100, 0),
		Reasons: []schedulerv1alpha1.UnschedulableExplanation{{
			Reason: "WaitingForPods", Message: "3 of 4 pods exist",
			Details: &schedulerv1alpha1.UnschedulableExplanationDetails{PodDetails: &schedulerv1alpha1.PodDetails{Have: 3, Need: 4, Gated: 1}},
		}},
	}}
	if diff := cmp.Diff(want, out.SchedulingConditions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	s.Group.Status = out
	s.Members, s.Native = []*corev1.Pod{pod(), pod(), pod(), pod()}, nativeGroup(4, says(metav1.ConditionFalse, "no room"))
	out, _, figures := Decide(s, time.Unix(200, 0))
	condition := out.SchedulingConditions[0]
	requested := condition.Reasons[0].Details.ResourceDetails.Requested
	if condition.TransitionID != "2" || requested.Cpu().Value() != 4 || figures {
		t.Errorf("got %+v, figures alone %v", condition, figures)
	}
}

// Where the pods are that the scheduler does not count as members decides what is to be done.
func TestPodsThatAreNotInTheSchedulersGroup(t *testing.T) {
	elsewhere := func(p *corev1.Pod) { p.Spec.SchedulingGroup.PodGroupName = ptr.To("other") }
	for want, members := range map[string][]*corev1.Pod{
		"1 of 2 pods were created outside the group, and are scheduled without it":                                   {pod(loose), pod()},
		"1 of 2 pods are in another group of the scheduler's, such as that of a PodGroup of this name which is gone": {pod(elsewhere), pod()},
		"of 3 pods 2 were created outside the group, and 1 are in another group of the scheduler's":                  {pod(loose), pod(loose), pod(elsewhere)},
	} {
		if got := count(snapshot(podgrouper.Native, 2, members...)).notAttachable(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s := snapshot(podgrouper.Native, 3, pod(), pod(), pod(loose))
	s.Native = nativeGroup(3)
	out, _, _ := Decide(s, time.Unix(100, 0))
	if got := out.SchedulingConditions[0].Reasons[0].Message; got != "2 of 3 pods are in the scheduler's group" {
		t.Errorf("got %q", got)
	}
}

// One pod from before does not hide why the others wait.
func TestWhyPodsWaitBesideOneThatIsNotInTheSchedulersGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		members         []*corev1.Pod
		change          func(*Snapshot)
		reason, message string
	}{
		"the scheduler's group is missing": {
			[]*corev1.Pod{pod(loose, running), pod()}, func(*Snapshot) {},
			"GroupObjectMissing", "the scheduler's group of these pods does not exist",
		},
		"it is refused": {
			[]*corev1.Pod{pod(loose, running), pod()}, func(s *Snapshot) { s.Refused = errors.New("no such PriorityClass") },
			"GroupObjectMissing", "the scheduler's group of these pods does not exist: no such PriorityClass",
		},
		"it is not made, for the workload makes no sense": {
			[]*corev1.Pod{pod(loose, running), pod()}, func(s *Snapshot) { s.Invalid = errors.New("TFJob train: spec.tfReplicaSpecs: Required value") },
			"GroupObjectMissing", "the scheduler's group of these pods does not exist: TFJob train: spec.tfReplicaSpecs: Required value",
		},
		"too few are in it": {
			[]*corev1.Pod{pod(loose, running), pod()}, func(s *Snapshot) { s.Native = nativeGroup(2) },
			"WaitingForPods", "1 of 2 pods are in the scheduler's group",
		},
		"too few are in it that was placed once": {
			[]*corev1.Pod{pod(loose, running), pod()}, func(s *Snapshot) { s.Native = nativeGroup(2, says(metav1.ConditionTrue, "")) },
			"WaitingForPods", "1 of 2 pods are in the scheduler's group",
		},
		"it does not fit": {
			[]*corev1.Pod{pod(loose, running), pod(), pod()}, func(s *Snapshot) { s.Native = nativeGroup(2, says(metav1.ConditionFalse, "the gang does not fit")) },
			"NotEnoughResources", "the gang does not fit",
		},
		"it does not fit, and of one pod it is told why": {
			[]*corev1.Pod{pod(loose, running), pod(refused), pod(lacks)}, func(s *Snapshot) { s.Native = nativeGroup(2, says(metav1.ConditionFalse, "the gang does not fit")) },
			"NotEnoughResources", "the gang does not fit; pod pod: 0/4 nodes are available: 4 full.",
		},
		"the one from before waits alone": {
			[]*corev1.Pod{pod(loose, refused), pod(running)}, func(s *Snapshot) { s.Native = nativeGroup(2) },
			"NotEnoughResources", "pod pod: no room",
		},
		"and without a group": {
			[]*corev1.Pod{pod(loose, refused), pod(loose, running)}, func(*Snapshot) {},
			"NotEnoughResources", "pod pod: no room",
		},
	} {
		s := snapshot(podgrouper.Native, 3, tc.members...)
		tc.change(&s)
		out, _, _ := Decide(s, time.Unix(100, 0))
		if why := out.SchedulingConditions[0].Reasons[0]; why.Reason != tc.reason || why.Message != tc.message {
			t.Errorf("%s: got %s: %s", name, why.Reason, why.Message)
		}
	}
}

func TestResources(t *testing.T) {
	cpu := func(n string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
	}
	s := snapshot(podgrouper.Native, 1, pod(running), pod(), pod(succeeded))
	want := &schedulerv1alpha1.PodGroupResourcesStatus{Allocated: cpu("1"), Requested: cpu("2")}
	if diff := cmp.Diff(want, resources(s), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Group.Spec.Preemptibility = schedulerv1alpha1.NonPreemptible
	if want.AllocatedNonPreemptible = cpu("1"); cmp.Diff(want, resources(s), cmpopts.EquateEmpty()) != "" {
		t.Errorf("got %+v", resources(s))
	}
	s.Members = []*corev1.Pod{pod(succeeded)}
	if resources(s) != nil {
		t.Errorf("got %+v of pods that have ended", resources(s))
	}
}

// Only figures can wait to be told.
func TestOnlyFigures(t *testing.T) {
	s := snapshot(podgrouper.Native, 3, pod(), pod())
	s.Native = nativeGroup(3)
	s.Group.Status, _, _ = Decide(s, time.Unix(100, 0))
	s.Members = s.Members[:1]
	if _, changed, figures := Decide(s, time.Unix(200, 0)); !changed || !figures {
		t.Errorf("one pod less: changed %v, figures alone %v", changed, figures)
	}
	s.Members = []*corev1.Pod{pod(running), pod(running), pod(running)}
	if _, changed, figures := Decide(s, time.Unix(200, 0)); !changed || figures {
		t.Errorf("it runs: changed %v, figures alone %v", changed, figures)
	}
}
