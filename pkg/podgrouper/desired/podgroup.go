package desired

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	schedulerac "github.com/copse-dev/copse/pkg/generated/applyconfiguration/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// FieldManager is who the PodGroups are applied by.
const FieldManager = "copse-pod-grouper"

// PodGroup returns what to apply, with force, for a group: what follows the workload. The
// queue, markUnschedulable, schedulingBackoff and the labels of the queue and the node pool
// are the workload's when the PodGroup is created, and the users' from then on: they are
// taken from live, the PodGroup as it was read, which is nil when there is none. They are
// applied as they were, not left out, because apply removes what its manager leaves out.
// The resource version of live makes sure that they still are so.
func PodGroup(group *podgrouper.Group, live *schedulerv1alpha1.PodGroup) *schedulerac.PodGroupApplyConfiguration {
	out := schedulerac.PodGroup(group.Name, group.Namespace).
		WithLabels(labelsOf(group, live)).
		WithAnnotations(group.Annotations).
		WithAnnotations(map[string]string{podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue, podgrouper.MadeAsAnnotation: group.Name}).
		WithSpec(spec(group, live))
	if group.FirstPods != nil {
		out.WithAnnotations(map[string]string{podgrouper.FirstPodsAnnotation: strconv.FormatInt(*group.FirstPods, 10)})
	}
	if owner := group.Owner; owner != nil {
		out.WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).WithName(owner.Name).WithUID(owner.UID))
	}
	if live != nil {
		out.WithResourceVersion(live.ResourceVersion)
	}
	return out
}

// labelsOf the workload and of where it runs.
func labelsOf(group *podgrouper.Group, live *schedulerv1alpha1.PodGroup) map[string]string {
	out := make(map[string]string, len(group.Labels)+2)
	for key, value := range group.Labels {
		out[key] = value
	}
	for key, value := range map[string]string{podgrouper.QueueLabel: group.Queue, podgrouper.NodePoolLabel: group.NodePool} {
		if live != nil {
			value = live.Labels[key]
		}
		// The name of a queue may be longer than a label can be; the spec has it anyway.
		if value == "" || len(validation.IsValidLabelValue(value)) > 0 {
			delete(out, key)
			continue
		}
		out[key] = value
	}
	return out
}

func spec(group *podgrouper.Group, live *schedulerv1alpha1.PodGroup) *schedulerac.PodGroupSpecApplyConfiguration {
	users := schedulerv1alpha1.PodGroupSpec{Queue: group.Queue, MarkUnschedulable: group.MarkUnschedulable, SchedulingBackoff: group.SchedulingBackoff}
	if live != nil {
		users = live.Spec
	}
	out := schedulerac.PodGroupSpec()
	out.MinMember, out.MinSubGroup = group.MinMember, group.MinSubGroup
	out.MarkUnschedulable, out.SchedulingBackoff = users.MarkUnschedulable, users.SchedulingBackoff
	if users.Queue != "" {
		out.WithQueue(users.Queue)
	}
	if group.PriorityClassName != "" {
		out.WithPriorityClassName(group.PriorityClassName)
	}
	if group.Preemptibility != "" {
		out.WithPreemptibility(schedulerv1alpha1.Preemptibility(group.Preemptibility))
	}
	if group.Topology != nil {
		out.WithTopologyConstraint(topology(group.Topology))
	}
	for i := range group.SubGroups {
		out.WithSubGroups(subGroup(&group.SubGroups[i]))
	}
	return out
}

func subGroup(group *podgrouper.SubGroup) *schedulerac.SubGroupApplyConfiguration {
	out := schedulerac.SubGroup().WithName(group.Name)
	if group.Parent != "" {
		out.WithParent(group.Parent)
	}
	if group.MinMember != nil {
		out.MinMember = ptr.To(int32(*group.MinMember))
	}
	if group.MinSubGroup != nil {
		out.MinSubGroup = ptr.To(int32(*group.MinSubGroup))
	}
	if group.Topology != nil {
		out.WithTopologyConstraint(topology(group.Topology))
	}
	return out
}

func topology(of *podgrouper.Topology) *schedulerac.PodGroupTopologyConstraintApplyConfiguration {
	out := schedulerac.PodGroupTopologyConstraint().WithTopology(of.Name)
	if of.Required != "" {
		out.WithRequiredTopologyLevel(of.Required)
	}
	if of.Preferred != "" {
		out.WithPreferredTopologyLevel(of.Preferred)
	}
	return out
}
