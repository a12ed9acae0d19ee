package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// PodCliqueScalingGroup is a group of cliques of one replica of a PodCliqueSet that
// scale together.
type PodCliqueScalingGroup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	Spec PodCliqueScalingGroupSpec `json:"spec"`
	// status is what is observed. Written by the controllers alone.
	// +optional
	Status PodCliqueScalingGroupStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodCliqueScalingGroupList is a list of PodCliqueScalingGroups.
type PodCliqueScalingGroupList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodCliqueScalingGroup `json:"items"`
}

// PodCliqueScalingGroupSpec is the wanted state of a PodCliqueScalingGroup.
type PodCliqueScalingGroupSpec struct {
	// replicas is how many copies of the group there are. Defaults to 1.
	// +optional
	Replicas int32 `json:"replicas"`
	// minAvailable is how many copies have to be available. Defaults to 1. Immutable.
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`
	// cliqueNames are cliques of the set's template. Immutable.
	// +listType=atomic
	CliqueNames []string `json:"cliqueNames"`
	// workloadType is the set's. Stamped by the controller, immutable.
	// +optional
	WorkloadType WorkloadType `json:"workloadType,omitempty"`
}

// PodCliqueScalingGroupStatus is the observed state of a PodCliqueScalingGroup.
type PodCliqueScalingGroupStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// conditions of the group.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// lastErrors are failures that the controllers met.
	// +optional
	// +listType=atomic
	LastErrors []LastError `json:"lastErrors,omitempty"`
	// observedAttempt is the attempt of the set's replica that this status speaks of. It
	// never falls.
	// +optional
	ObservedAttempt int32 `json:"observedAttempt"`
	// replicas is how many copies exist.
	// +optional
	Replicas int32 `json:"replicas"`
	// scheduledReplicas is how many copies have every clique scheduled.
	// +optional
	ScheduledReplicas int32 `json:"scheduledReplicas"`
	// availableReplicas is how many copies have every clique available.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`
	// updatedReplicas is how many copies follow the current template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// replicaAttempts are the attempts of copies that have been recycled.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +patchMergeKey=index
	// +patchStrategy=merge
	ReplicaAttempts []ScalingGroupReplicaAttempt `json:"replicaAttempts,omitempty" patchStrategy:"merge" patchMergeKey:"index"`
	// selector selects the pods of the group, as /scale shows it.
	// +optional
	Selector *string `json:"selector,omitempty"`
	// currentPodCliqueSetGenerationHash is the set's hash that the group follows.
	// +optional
	CurrentPodCliqueSetGenerationHash *string `json:"currentPodCliqueSetGenerationHash,omitempty"`
	// updateProgress tells how far an update has come.
	// +optional
	UpdateProgress *PodCliqueScalingGroupUpdateProgress `json:"updateProgress,omitempty"`
}

// ScalingGroupReplicaAttempt is the attempt of one copy of a scaling group.
type ScalingGroupReplicaAttempt struct {
	// index of the copy, from 0.
	Index int32 `json:"index"`
	// attempt counts how many times the copy has been recycled. It never falls.
	// +optional
	Attempt int32 `json:"attempt"`
	// setAttempt is the attempt of the set's replica at the last recycling.
	// +optional
	SetAttempt int32 `json:"setAttempt"`
	// message says why the copy was recycled last.
	// +optional
	Message string `json:"message,omitempty"`
}

// PodCliqueScalingGroupUpdateProgress tells how far the update of a scaling group has come.
type PodCliqueScalingGroupUpdateProgress struct {
	// updateStartedAt is when the update began.
	// +optional
	UpdateStartedAt metav1.Time `json:"updateStartedAt,omitempty"`
	// updateEndedAt is when the update ended.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`
	// podCliqueSetGenerationHash is the set's hash that the update goes to.
	// +optional
	PodCliqueSetGenerationHash string `json:"podCliqueSetGenerationHash,omitempty"`
	// updatedPodCliquesCount is how many PodCliques follow the template.
	// +optional
	UpdatedPodCliquesCount int32 `json:"updatedPodCliquesCount"`
	// totalPodCliquesCount is how many PodCliques there are.
	// +optional
	TotalPodCliquesCount int32 `json:"totalPodCliquesCount"`
	// readyReplicaIndicesSelectedToUpdate are the copies that the update replaces.
	// +optional
	ReadyReplicaIndicesSelectedToUpdate *ReplicaIndicesSelectedToUpdate `json:"readyReplicaIndicesSelectedToUpdate,omitempty"`
}

// ReplicaIndicesSelectedToUpdate names the copies that an update replaces.
type ReplicaIndicesSelectedToUpdate struct {
	// current is the first of the copies that are being replaced, or the last that was.
	// +optional
	Current int32 `json:"current"`
	// updating are the copies that are being replaced.
	// +optional
	// +listType=atomic
	Updating []int32 `json:"updating,omitempty"`
	// completed are the copies that have been replaced.
	// +optional
	// +listType=atomic
	Completed []int32 `json:"completed,omitempty"`
}
