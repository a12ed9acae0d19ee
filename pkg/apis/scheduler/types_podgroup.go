package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodGroup is a group of pods of any workload that are scheduled together (seed 004).
type PodGroup struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   PodGroupSpec
	Status PodGroupStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodGroupList is a list of PodGroups.
type PodGroupList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []PodGroup
}

// Preemptibility says whether a group may be preempted.
type Preemptibility string

const (
	// Preemptible groups may be preempted and may go over quota.
	Preemptible Preemptibility = "preemptible"
	// NonPreemptible groups are never preempted and stay within quota.
	NonPreemptible Preemptibility = "non-preemptible"
)

// PodGroupSpec is the wanted state of a PodGroup, with the field names of seed 004.
type PodGroupSpec struct {
	MinMember          *int32
	MinSubGroup        *int32
	Queue              string
	PriorityClassName  string
	Preemptibility     Preemptibility
	MarkUnschedulable  *bool
	SchedulingBackoff  *int32
	TopologyConstraint *PodGroupTopologyConstraint
	SubGroups          []SubGroup
}

// PodGroupTopologyConstraint places the pods of a group.
type PodGroupTopologyConstraint struct {
	Topology               string
	RequiredTopologyLevel  string
	PreferredTopologyLevel string
}

// SubGroup is a part of a PodGroup with a minimum of its own.
type SubGroup struct {
	Name               string
	Parent             *string
	MinMember          *int32
	MinSubGroup        *int32
	TopologyConstraint *PodGroupTopologyConstraint
}

// PodGroupPhase says how far a group has come.
type PodGroupPhase string

const (
	// PodGroupPending: fewer than the minimum are scheduled.
	PodGroupPending PodGroupPhase = "Pending"
	// PodGroupRunning: the minimum is scheduled.
	PodGroupRunning PodGroupPhase = "Running"
	// PodGroupFinished: every pod has ended.
	PodGroupFinished PodGroupPhase = "Finished"
)

// PodGroupStatus is the observed state of a PodGroup.
type PodGroupStatus struct {
	ObservedGeneration   *int64
	Phase                PodGroupPhase
	Conditions           []metav1.Condition
	Pending              int32
	Running              int32
	Succeeded            int32
	Failed               int32
	ResourcesStatus      *PodGroupResourcesStatus
	SchedulingConditions []SchedulingCondition
}

// PodGroupResourcesStatus sums the resources of the pods of a group.
type PodGroupResourcesStatus struct {
	Allocated               corev1.ResourceList
	AllocatedNonPreemptible corev1.ResourceList
	Requested               corev1.ResourceList
}

// SchedulingConditionType names a kind of SchedulingCondition.
type SchedulingConditionType string

// UnschedulableOnNodePool says that the group does not fit into a node pool.
const UnschedulableOnNodePool SchedulingConditionType = "UnschedulableOnNodePool"

// SchedulingCondition explains why a group is not scheduled.
type SchedulingCondition struct {
	Type               SchedulingConditionType
	NodePool           string
	Status             corev1.ConditionStatus
	TransitionID       string
	LastTransitionTime metav1.Time
	Reason             string
	Message            string
	Reasons            []UnschedulableExplanation
}

// UnschedulableExplanation is one reason why a group is not scheduled.
type UnschedulableExplanation struct {
	Reason  string
	Message string
	Details *UnschedulableExplanationDetails
}

// UnschedulableExplanationDetails are the figures behind a reason.
type UnschedulableExplanationDetails struct {
	QueueDetails    *QueueDetails
	ResourceDetails *ResourceDetails
	PodDetails      *PodDetails
}

// QueueDetails are the figures of a queue.
type QueueDetails struct {
	Name                                     string
	QueueRequestedResources                  corev1.ResourceList
	QueueDeservedResources                   corev1.ResourceList
	QueueAllocatedResources                  corev1.ResourceList
	QueueAllocatedNonPreemptibleResources    corev1.ResourceList
	QueueResourceLimits                      corev1.ResourceList
	PodGroupRequestedResources               corev1.ResourceList
	PodGroupRequestedNonPreemptibleResources corev1.ResourceList
}

// ResourceDetails say what a group asks for.
type ResourceDetails struct {
	Requested corev1.ResourceList
}

// PodDetails count pods.
type PodDetails struct {
	Have  int32
	Need  int32
	Gated int32
}
