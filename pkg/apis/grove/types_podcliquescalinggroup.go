package grove

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodCliqueScalingGroup is a group of cliques of one replica of a PodCliqueSet that
// scale together.
type PodCliqueScalingGroup struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   PodCliqueScalingGroupSpec
	Status PodCliqueScalingGroupStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodCliqueScalingGroupList is a list of PodCliqueScalingGroups.
type PodCliqueScalingGroupList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []PodCliqueScalingGroup
}

// PodCliqueScalingGroupSpec is the wanted state of a PodCliqueScalingGroup.
type PodCliqueScalingGroupSpec struct {
	Replicas     int32
	MinAvailable *int32
	CliqueNames  []string
	WorkloadType WorkloadType
}

// PodCliqueScalingGroupStatus is the observed state of a PodCliqueScalingGroup.
type PodCliqueScalingGroupStatus struct {
	ObservedGeneration                *int64
	Conditions                        []metav1.Condition
	LastErrors                        []LastError
	ObservedAttempt                   int32
	Replicas                          int32
	ScheduledReplicas                 int32
	AvailableReplicas                 int32
	UpdatedReplicas                   int32
	ReplicaAttempts                   []ScalingGroupReplicaAttempt
	Selector                          *string
	CurrentPodCliqueSetGenerationHash *string
	UpdateProgress                    *PodCliqueScalingGroupUpdateProgress
}

// ScalingGroupReplicaAttempt is the attempt of one copy of a scaling group.
type ScalingGroupReplicaAttempt struct {
	Index      int32
	Attempt    int32
	SetAttempt int32
	Message    string
}

// PodCliqueScalingGroupUpdateProgress tells how far the update of a scaling group has come.
type PodCliqueScalingGroupUpdateProgress struct {
	UpdateStartedAt                     metav1.Time
	UpdateEndedAt                       *metav1.Time
	PodCliqueSetGenerationHash          string
	UpdatedPodCliquesCount              int32
	TotalPodCliquesCount                int32
	ReadyReplicaIndicesSelectedToUpdate *ReplicaIndicesSelectedToUpdate
}

// ReplicaIndicesSelectedToUpdate names the copies that an update replaces.
type ReplicaIndicesSelectedToUpdate struct {
	Current   int32
	Updating  []int32
	Completed []int32
}
