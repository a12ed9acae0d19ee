package v1alpha1

import "k8s.io/utils/ptr"

// DefaultMinMember is the minMember of a group that names no minimum.
const DefaultMinMember int32 = 1

// SetDefaults_PodGroup sets the defaults of seed 004: one pod is enough, pods are
// marked as unschedulable, and there is no back-off.
func SetDefaults_PodGroup(group *PodGroup) {
	spec := &group.Spec
	if spec.MinMember == nil && spec.MinSubGroup == nil {
		spec.MinMember = ptr.To(DefaultMinMember)
	}
	if spec.MarkUnschedulable == nil {
		spec.MarkUnschedulable = ptr.To(true)
	}
	if spec.SchedulingBackoff == nil {
		spec.SchedulingBackoff = ptr.To[int32](-1)
	}
}
