package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// PodGang is a set of pods that are scheduled all or nothing: the base gang of a
// replica of a PodCliqueSet, or one further copy of a scaling group.
type PodGang struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	Spec PodGangSpec `json:"spec"`
	// status is what the scheduler makes of it. Written by the controllers alone.
	// +optional
	Status PodGangStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodGangList is a list of PodGangs.
type PodGangList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodGang `json:"items"`
}

// PodGangSpec is the wanted state of a PodGang.
type PodGangSpec struct {
	// podgroups are the groups of pods of the gang, one per PodClique.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	PodGroups []PodGangPodGroup `json:"podgroups" patchStrategy:"merge" patchMergeKey:"name"`
	// topologyConstraint places the whole gang.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
	// topologyConstraintGroupConfigs place some of the groups together.
	// +optional
	// +listType=map
	// +listMapKey=name
	TopologyConstraintGroupConfigs []TopologyConstraintGroupConfig `json:"topologyConstraintGroupConfigs,omitempty"`
	// priorityClassName is the PriorityClass of the gang and its pods.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// reuseReservationRef names a PodGang whose nodes this one may take over.
	// +optional
	ReuseReservationRef *NamespacedName `json:"reuseReservationRef,omitempty"`
}

// PodGangPodGroup is a group of pods of a gang that are alike.
type PodGangPodGroup struct {
	// name of the PodClique.
	Name string `json:"name"`
	// podReferences are the pods of the group.
	// +optional
	// +listType=atomic
	PodReferences []NamespacedName `json:"podReferences,omitempty"`
	// minReplicas is how many of them have to be scheduled together.
	// +optional
	MinReplicas int32 `json:"minReplicas"`
	// topologyConstraint places the pods of the group.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
}

// NamespacedName refers to an object.
type NamespacedName struct {
	// namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
}

// TopologyConstraint places pods by node labels.
type TopologyConstraint struct {
	// packConstraint names the node labels whose value the pods share.
	// +optional
	PackConstraint *TopologyPackConstraint `json:"packConstraint,omitempty"`
}

// TopologyPackConstraint names node labels.
type TopologyPackConstraint struct {
	// required is the key of the label whose value all pods must share.
	// +optional
	Required *string `json:"required,omitempty"`
	// preferred is the key of the label whose value the pods should share.
	// +optional
	Preferred *string `json:"preferred,omitempty"`
}

// TopologyConstraintGroupConfig places some groups of a gang together.
type TopologyConstraintGroupConfig struct {
	// name of the configuration, unique in the gang.
	Name string `json:"name"`
	// podGroupNames are names of groups of the gang.
	// +listType=set
	PodGroupNames []string `json:"podGroupNames"`
	// topologyConstraint places them.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
}

// PodGangPhase says how far a gang has come.
// +enum
type PodGangPhase string

const (
	// PodGangPending: the gang is not scheduled.
	PodGangPending PodGangPhase = "Pending"
	// PodGangStarting: the gang is scheduled and not all of it is Ready.
	PodGangStarting PodGangPhase = "Starting"
	// PodGangRunning: the gang is Ready.
	PodGangRunning PodGangPhase = "Running"
)

// Condition types of PodGang.
const (
	// PodGangConditionInitialized: every pod that the gang needs has been created.
	PodGangConditionInitialized = "Initialized"
	// PodGangConditionScheduled: the gang was scheduled once in this attempt.
	PodGangConditionScheduled = "Scheduled"
	// PodGangConditionReady: enough pods of each group are Ready.
	PodGangConditionReady = "Ready"
	// PodGangConditionUnhealthy: a group of the gang is in breach of its minimum.
	PodGangConditionUnhealthy = "Unhealthy"
	// PodGangConditionDisruptionTarget: the gang is about to be preempted.
	PodGangConditionDisruptionTarget = "DisruptionTarget"
)

// Reasons of what a gang, or a group, waits for.
const (
	// ReasonPodGangScheduled: the scheduler has placed the gang.
	ReasonPodGangScheduled = "Scheduled"
	// ReasonWaitingForPods: pods are still missing, or the scheduler has not looked yet. Its
	// details are podDetails.
	ReasonWaitingForPods = "WaitingForPods"
	// ReasonNotEnoughResources: the gang does not fit.
	ReasonNotEnoughResources = "NotEnoughResources"
	// ReasonTopologyUnsatisfied: the gang does not fit where its topology constraint wants it.
	ReasonTopologyUnsatisfied = "TopologyUnsatisfied"
	// ReasonMemberMismatch: pods of the gang differ in what they have to have in common.
	ReasonMemberMismatch = "MemberMismatch"
	// ReasonPreemptionPending: others have been told to make room.
	ReasonPreemptionPending = "PreemptionPending"
	// ReasonSchedulerError: the scheduler refuses the gang as it is.
	ReasonSchedulerError = "SchedulerError"
	// ReasonNotAttachable: pods were created before they could be put into a group.
	ReasonNotAttachable = "NotAttachable"
	// ReasonQueueDoesNotExist: the queue of the gang does not exist.
	ReasonQueueDoesNotExist = "QueueDoesNotExist"
	// ReasonOverLimit: the queue's limit does not allow it. Its details are queueDetails.
	ReasonOverLimit = "OverLimit"
	// ReasonNonPreemptibleOverQuota: the queue's quota does not allow what cannot be preempted.
	// Its details are queueDetails.
	ReasonNonPreemptibleOverQuota = "NonPreemptibleOverQuota"
	// ReasonPodGroupMissing: the scheduler's own group object could not be created.
	ReasonPodGroupMissing = "GroupObjectMissing"
	// ReasonGangsUnsupported: the scheduler places pods one by one.
	ReasonGangsUnsupported = "GangSchedulingUnsupported"
)

// PodGangStatus is the observed state of a PodGang.
type PodGangStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// observedAttempt is the attempt that this status speaks of. It never falls.
	// +optional
	ObservedAttempt int32 `json:"observedAttempt"`
	// phase says how far the gang has come.
	// +optional
	Phase PodGangPhase `json:"phase,omitempty"`
	// conditions of the gang.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// schedulingConditions explain why pods of the gang are not scheduled, with details for
	// programs. Empty when none waits.
	// +optional
	// +listType=atomic
	SchedulingConditions []SchedulingCondition `json:"schedulingConditions,omitempty"`
	// placementScore rates the placement between 0 and 1, where the scheduler tells it.
	// +optional
	PlacementScore *float64 `json:"placementScore,omitempty"`
}
