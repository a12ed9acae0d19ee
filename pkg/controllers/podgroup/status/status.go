// Package status decides the status of a PodGroup from its pods and from what its scheduler
// says. It reads and writes nothing.
package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/desired"
	"github.com/copse-dev/copse/pkg/scheduling/native"
)

// Reasons of conditions.
const (
	// ReasonSatisfied: enough pods have a node.
	ReasonSatisfied = "Satisfied"
	// ReasonBelowMinimum: fewer pods than the minimum have a node.
	ReasonBelowMinimum = "BelowMinimum"
	// ReasonUnsupported: the scheduler has nothing like it.
	ReasonUnsupported = "NotSupportedByScheduler"
	// ReasonInvalidOwner: the fields of the workload are not as they have to be.
	ReasonInvalidOwner = "InvalidOwner"
)

// Snapshot is a PodGroup and what is known about it.
type Snapshot struct {
	Group *schedulerv1alpha1.PodGroup
	// Members of the group, those that have ended included.
	Members []*corev1.Pod
	// BackEnd that places them; empty for one that knows no groups.
	BackEnd podgrouper.BackEnd
	// NativeName is the name of the group of Kubernetes' own scheduler, and Native the group;
	// nil when there is none.
	NativeName string
	Native     *schedulingv1beta1.PodGroup
	// Refused is why the scheduler's group cannot be made; nil when nothing stands in the way.
	Refused error
	// Copied are the scheduler's own words about the group, where they are in the form of ours.
	Copied []schedulerv1alpha1.SchedulingCondition
	// FirstPast says that the pods that come first have had their turn: the others wait for
	// none.
	FirstPast bool
	// Strays are how many pods belong to the group, and are in others, which they belonged to
	// before.
	Strays int32
	// NodePool of the group.
	NodePool string
	// Invalid is what is wrong with the fields of the workload; nil when nothing is.
	Invalid error
}

// Decide returns the status of a PodGroup, whether that is another one than it has, and
// whether that can wait because nothing but figures differs.
func Decide(s Snapshot, now time.Time) (out schedulerv1alpha1.PodGroupStatus, changed, figures bool) {
	before := &s.Group.Status
	out = *before.DeepCopy()
	c := count(s)
	out.ObservedGeneration = ptr.To(s.Group.Generation)
	out.Pending, out.Running, out.Succeeded, out.Failed = c.pending, c.running, c.succeeded, c.failed
	out.ResourcesStatus = resources(s)
	out.Phase = phase(c)
	why := explain(s, c)
	out.SchedulingConditions = gang.SchedulingConditions(before.SchedulingConditions, s.NodePool, why, now)
	if s.BackEnd == podgrouper.KAI {
		out.SchedulingConditions = s.Copied
	}
	s.setConditions(&out, c, why, now)
	changed = !apiequality.Semantic.DeepEqual(*before, out)
	return out, changed, changed && onlyFigures(before, &out)
}

func phase(c counts) schedulerv1alpha1.PodGroupPhase {
	switch {
	case c.members > 0 && c.succeeded+c.failed == c.members:
		return schedulerv1alpha1.PodGroupFinished
	case c.placed >= c.need:
		return schedulerv1alpha1.PodGroupRunning
	}
	return schedulerv1alpha1.PodGroupPending
}

func (s *Snapshot) setConditions(out *schedulerv1alpha1.PodGroupStatus, c counts, why []schedulerv1alpha1.UnschedulableExplanation, now time.Time) {
	set := func(condition string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&out.Conditions, metav1.Condition{
			Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: s.Group.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	placed := fmt.Sprintf("%d of %d pods have a node or have succeeded", c.placed, c.need)
	if c.placed >= c.need {
		set(schedulerv1alpha1.PodGroupConditionSatisfied, metav1.ConditionTrue, ReasonSatisfied, fmt.Sprintf("at least %d pods have a node or have succeeded", c.need))
	} else {
		set(schedulerv1alpha1.PodGroupConditionSatisfied, metav1.ConditionFalse, ReasonBelowMinimum, placed)
	}
	switch {
	case meta.IsStatusConditionTrue(out.Conditions, schedulerv1alpha1.PodGroupConditionScheduled):
	case s.wasScheduled(c):
		set(schedulerv1alpha1.PodGroupConditionScheduled, metav1.ConditionTrue, schedulerv1alpha1.ReasonPodGangScheduled, "the minimum was scheduled")
	case len(why) > 0:
		set(schedulerv1alpha1.PodGroupConditionScheduled, metav1.ConditionFalse, why[0].Reason, why[0].Message)
	default:
		set(schedulerv1alpha1.PodGroupConditionScheduled, metav1.ConditionFalse, schedulerv1alpha1.ReasonWaitingForPods, placed)
	}
	presence := func(condition, reason, message string) {
		if message == "" {
			meta.RemoveStatusCondition(&out.Conditions, condition)
			return
		}
		set(condition, metav1.ConditionTrue, reason, message)
	}
	presence(schedulerv1alpha1.PodGroupConditionUnsupported, ReasonUnsupported, s.unsupported())
	presence(schedulerv1alpha1.PodGroupConditionNotAttachable, schedulerv1alpha1.ReasonNotAttachable, c.notAttachable())
	presence(schedulerv1alpha1.PodGroupConditionInvalid, ReasonInvalidOwner, s.invalid())
}

// wasScheduled says that the scheduler placed the group once. Where it does not say, or the
// pods are in no group of its own, enough nodes say it.
func (s *Snapshot) wasScheduled(c counts) bool {
	if s.BackEnd == podgrouper.Native && s.Native != nil && c.loose == 0 {
		return native.IsScheduled(s.Native)
	}
	return c.placed >= c.need
}

func (s *Snapshot) invalid() string {
	if s.Invalid == nil {
		return ""
	}
	return s.Invalid.Error()
}

// unsupported names what the group asks for and its scheduler cannot do.
func (s *Snapshot) minPods() int32 {
	if s.FirstPast {
		return 1
	}
	return desired.MinPods(s.Group)
}

func (s *Snapshot) unsupported() string {
	if s.BackEnd == podgrouper.KAI {
		return ""
	}
	spec := &s.Group.Spec
	var what []string
	if !ptr.Deref(spec.MarkUnschedulable, true) {
		what = append(what, "markUnschedulable: false (the scheduler always marks pods)")
	}
	if ptr.Deref(spec.SchedulingBackoff, -1) == 1 {
		what = append(what, "schedulingBackoff: 1 (the scheduler always tries again)")
	}
	if spec.Queue != "" {
		what = append(what, "queue")
	}
	if spec.Preemptibility != "" {
		what = append(what, "preemptibility (the priority decides)")
	}
	if hasTopology(spec) {
		what = append(what, "topologyConstraint")
	}
	if s.BackEnd == "" && s.minPods() > 1 {
		what = append(what, "a minimum of several pods (the scheduler places them one by one)")
	}
	if s.Native != nil && s.Native.Spec.PriorityClassName != spec.PriorityClassName {
		what = append(what, fmt.Sprintf("another priorityClassName than %q, which the group of the scheduler was made with and its pods have", s.Native.Spec.PriorityClassName))
	}
	if len(what) == 0 {
		return ""
	}
	return "the scheduler does not know: " + strings.Join(what, ", ")
}

func hasTopology(spec *schedulerv1alpha1.PodGroupSpec) bool {
	return spec.TopologyConstraint != nil || slices.ContainsFunc(spec.SubGroups, func(sub schedulerv1alpha1.SubGroup) bool { return sub.TopologyConstraint != nil })
}

// onlyFigures says that two statuses tell the same but for numbers of pods, resources, and
// the texts about them.
func onlyFigures(a, b *schedulerv1alpha1.PodGroupStatus) bool {
	return a.Phase == b.Phase && slices.Equal(said(a), said(b))
}

// said is what a status says in single words.
func said(status *schedulerv1alpha1.PodGroupStatus) []string {
	var out []string
	for _, c := range status.Conditions {
		out = append(out, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	slices.Sort(out)
	for _, c := range status.SchedulingConditions {
		for _, reason := range c.Reasons {
			out = append(out, reason.Reason)
		}
	}
	return out
}
