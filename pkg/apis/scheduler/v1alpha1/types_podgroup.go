package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// PodGroup is a group of pods of any workload that are scheduled together.
type PodGroup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	Spec PodGroupSpec `json:"spec"`
	// status is what the scheduler makes of it. Written by the controllers alone.
	// +optional
	Status PodGroupStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodGroupList is a list of PodGroups.
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodGroup `json:"items"`
}

// Preemptibility says whether a group may be preempted.
// +enum
type Preemptibility string

const (
	// Preemptible groups may be preempted and may go over quota.
	Preemptible Preemptibility = "preemptible"
	// NonPreemptible groups are never preempted and stay within quota.
	NonPreemptible Preemptibility = "non-preemptible"
)

// PodGroupSpec is the wanted state of a PodGroup, with the field names of seed 004.
type PodGroupSpec struct {
	// minMember is how many pods have to be scheduled together. Defaults to 1
	// unless minSubGroup is set, which takes the place of that default when it comes later.
	// +optional
	MinMember *int32 `json:"minMember,omitempty"`
	// minSubGroup is how many top subgroups have to be scheduled together. Excludes minMember.
	// +optional
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`
	// queue to which the workload belongs.
	// +optional
	Queue string `json:"queue,omitempty"`
	// priorityClassName is the PriorityClass of the group.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// preemptibility of the group. Empty lets the priority decide.
	// +optional
	Preemptibility Preemptibility `json:"preemptibility,omitempty"`
	// markUnschedulable says whether pods are marked as unschedulable after failed
	// attempts to schedule them.
	// +optional
	MarkUnschedulable *bool `json:"markUnschedulable,omitempty"`
	// schedulingBackoff is the number of scheduling cycles before the group is marked as
	// unschedulable: 1, or -1 for no back-off.
	// +optional
	SchedulingBackoff *int32 `json:"schedulingBackoff,omitempty"`
	// topologyConstraint places the whole group.
	// +optional
	TopologyConstraint *PodGroupTopologyConstraint `json:"topologyConstraint,omitempty"`
	// subGroups split the group; each pod names its own by label.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	SubGroups []SubGroup `json:"subGroups,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// PodGroupTopologyConstraint places the pods of a group.
type PodGroupTopologyConstraint struct {
	// topology names the topology whose levels are meant.
	// +optional
	Topology string `json:"topology,omitempty"`
	// requiredTopologyLevel is the level that all pods must share.
	// +optional
	RequiredTopologyLevel string `json:"requiredTopologyLevel,omitempty"`
	// preferredTopologyLevel is the level that the pods should share.
	// +optional
	PreferredTopologyLevel string `json:"preferredTopologyLevel,omitempty"`
}

// SubGroup is a part of a PodGroup with a minimum of its own.
type SubGroup struct {
	// name of the subgroup, a DNS label, unique in the group.
	Name string `json:"name"`
	// parent is the subgroup above this one. Empty means the group itself.
	// +optional
	Parent *string `json:"parent,omitempty"`
	// minMember is how many pods of a leaf have to be scheduled together.
	// +optional
	MinMember *int32 `json:"minMember,omitempty"`
	// minSubGroup is how many children of an inner subgroup have to be scheduled together.
	// +optional
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`
	// topologyConstraint places the pods of the subgroup.
	// +optional
	TopologyConstraint *PodGroupTopologyConstraint `json:"topologyConstraint,omitempty"`
}

// PodGroupPhase says how far a group has come.
// +enum
type PodGroupPhase string

const (
	// PodGroupPending: fewer than the minimum are scheduled.
	PodGroupPending PodGroupPhase = "Pending"
	// PodGroupRunning: the minimum is scheduled.
	PodGroupRunning PodGroupPhase = "Running"
	// PodGroupFinished: every pod has ended.
	PodGroupFinished PodGroupPhase = "Finished"
)

// Types of conditions of a PodGroup.
const (
	// PodGroupConditionScheduled: the minimum was scheduled together once. It stays.
	PodGroupConditionScheduled = "Scheduled"
	// PodGroupConditionSatisfied: as many pods as the minimum asks for have a node, or have
	// succeeded, now.
	PodGroupConditionSatisfied = "Satisfied"
	// PodGroupConditionUnsupported: the group asks for what its scheduler cannot do.
	PodGroupConditionUnsupported = "Unsupported"
	// PodGroupConditionNotAttachable: pods of the group were created before they could be put
	// into it, and are scheduled without it.
	PodGroupConditionNotAttachable = "NotAttachable"
	// PodGroupConditionInvalid: the group cannot follow its workload.
	PodGroupConditionInvalid = "Invalid"
)

// PodGroupStatus is the observed state of a PodGroup.
type PodGroupStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// phase says how far the group has come.
	// +optional
	Phase PodGroupPhase `json:"phase,omitempty"`
	// conditions of the group.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// pending is how many pods wait for a node.
	// +optional
	Pending int32 `json:"pending"`
	// running is how many pods run.
	// +optional
	Running int32 `json:"running"`
	// succeeded is how many pods have exited with 0.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// failed is how many pods have failed.
	// +optional
	Failed int32 `json:"failed"`
	// resourcesStatus sums the resources of the pods.
	// +optional
	ResourcesStatus *PodGroupResourcesStatus `json:"resourcesStatus,omitempty"`
	// schedulingConditions explain why the group is not scheduled, one per node pool,
	// newest last. Empty when nothing is pending.
	// +optional
	// +listType=atomic
	SchedulingConditions []SchedulingCondition `json:"schedulingConditions,omitempty"`
}

// PodGroupResourcesStatus sums the resources of the pods of a group.
type PodGroupResourcesStatus struct {
	// allocated to pods that have a node.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`
	// allocatedNonPreemptible is the part of allocated that is not preemptible.
	// +optional
	AllocatedNonPreemptible corev1.ResourceList `json:"allocatedNonPreemptible,omitempty"`
	// requested by all pods that have not ended.
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
}

// SchedulingConditionType names a kind of SchedulingCondition.
// +enum
type SchedulingConditionType string

// UnschedulableOnNodePool says that the group does not fit into a node pool.
const UnschedulableOnNodePool SchedulingConditionType = "UnschedulableOnNodePool"

// SchedulingCondition explains why a group is not scheduled.
type SchedulingCondition struct {
	// type of the condition.
	Type SchedulingConditionType `json:"type"`
	// nodePool that was tried.
	// +optional
	NodePool string `json:"nodePool,omitempty"`
	// status is True while it holds.
	Status corev1.ConditionStatus `json:"status"`
	// transitionID counts the changes of the group's conditions.
	// +optional
	TransitionID string `json:"transitionID,omitempty"`
	// lastTransitionTime is when this condition changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason in one word.
	//
	// Deprecated: use reasons.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message for people.
	//
	// Deprecated: use reasons.
	// +optional
	Message string `json:"message,omitempty"`
	// reasons why the group is not scheduled.
	// +optional
	// +listType=atomic
	Reasons []UnschedulableExplanation `json:"reasons,omitempty"`
}

// UnschedulableExplanation is one reason why a group is not scheduled.
type UnschedulableExplanation struct {
	// reason in one word. Clients have to accept words that they do not know.
	Reason string `json:"reason"`
	// message for people.
	// +optional
	Message string `json:"message,omitempty"`
	// details for programs.
	// +optional
	Details *UnschedulableExplanationDetails `json:"details,omitempty"`
}

// UnschedulableExplanationDetails are the figures behind a reason.
type UnschedulableExplanationDetails struct {
	// queueDetails are the figures of the queue that is over its quota or limit.
	// +optional
	QueueDetails *QueueDetails `json:"queueDetails,omitempty"`
	// resourceDetails are the figures of resources that do not suffice.
	// +optional
	ResourceDetails *ResourceDetails `json:"resourceDetails,omitempty"`
	// podDetails count the pods that are waited for.
	// +optional
	PodDetails *PodDetails `json:"podDetails,omitempty"`
}

// QueueDetails are the figures of a queue.
type QueueDetails struct {
	// name of the queue, or of the queue above it that is over.
	// +optional
	Name string `json:"name,omitempty"`
	// queueRequestedResources is what the queue's workloads ask for.
	// +optional
	QueueRequestedResources corev1.ResourceList `json:"queueRequestedResources,omitempty"`
	// queueDeservedResources is the queue's quota.
	// +optional
	QueueDeservedResources corev1.ResourceList `json:"queueDeservedResources,omitempty"`
	// queueAllocatedResources is what the queue's workloads have.
	// +optional
	QueueAllocatedResources corev1.ResourceList `json:"queueAllocatedResources,omitempty"`
	// queueAllocatedNonPreemptibleResources is the part of it that is not preemptible.
	// +optional
	QueueAllocatedNonPreemptibleResources corev1.ResourceList `json:"queueAllocatedNonPreemptibleResources,omitempty"`
	// queueResourceLimits is the queue's limit.
	// +optional
	QueueResourceLimits corev1.ResourceList `json:"queueResourceLimits,omitempty"`
	// podGroupRequestedResources is what the group asks for.
	// +optional
	PodGroupRequestedResources corev1.ResourceList `json:"podGroupRequestedResources,omitempty"`
	// podGroupRequestedNonPreemptibleResources is the part of it that is not preemptible.
	// +optional
	PodGroupRequestedNonPreemptibleResources corev1.ResourceList `json:"podGroupRequestedNonPreemptibleResources,omitempty"`
}

// ResourceDetails say what a group asks for. What the cluster has left is for the scheduler's
// message to say: who does not place pods does not watch all of them.
type ResourceDetails struct {
	// requested by the pending pods.
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
}

// PodDetails count pods.
type PodDetails struct {
	// have is how many pods there are.
	// +optional
	Have int32 `json:"have"`
	// need is how many pods there have to be.
	// +optional
	Need int32 `json:"need"`
	// gated is how many of them are held by a scheduling gate.
	// +optional
	Gated int32 `json:"gated"`
}
