package grove

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodClique is a group of pods with one template: one clique of one replica of a
// PodCliqueSet, or of one copy of a scaling group.
type PodClique struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   PodCliqueSpec
	Status PodCliqueStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodCliqueList is a list of PodCliques.
type PodCliqueList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []PodClique
}

// PodCliqueSpec is the wanted state of a PodClique, and its template in a PodCliqueSet.
type PodCliqueSpec struct {
	RoleName          string
	PodSpec           corev1.PodSpec
	Replicas          int32
	MinAvailable      *int32
	StartsAfter       []string
	AutoScalingConfig *AutoScalingConfig
	WorkloadType      WorkloadType
	Attempt           int32
}

// PodCliqueStatus is the observed state of a PodClique. Terminating pods and pods of
// other attempts are never counted.
type PodCliqueStatus struct {
	ObservedGeneration                *int64
	Conditions                        []metav1.Condition
	LastErrors                        []LastError
	ObservedAttempt                   int32
	CreatedAttempt                    *int32
	CreatedReplicas                   int32
	WasAvailable                      bool
	Replicas                          int32
	OldReplicas                       int32
	ReadyReplicas                     int32
	RunningReplicas                   int32
	UpdatedReplicas                   int32
	ScheduledReplicas                 int32
	ScheduleGatedReplicas             int32
	StartedReplicas                   int32
	CompletedIndexes                  string
	FailedIndexes                     []FailedIndex
	RecoveredIndexes                  []string
	HPAPodSelector                    *string
	CurrentPodCliqueSetGenerationHash *string
	CurrentPodTemplateHash            *string
	UpdateProgress                    *PodCliqueUpdateProgress
}

// FailedIndex tells of failures of one index within an attempt.
type FailedIndex struct {
	Index         int32
	Count         int32
	LastTime      metav1.Time
	RecoveredTime *metav1.Time
	PodUID        types.UID
	Message       string
}

// PodCliqueUpdateProgress tells how far the update of a PodClique has come.
type PodCliqueUpdateProgress struct {
	UpdateStartedAt            metav1.Time
	UpdateEndedAt              *metav1.Time
	PodCliqueSetGenerationHash string
	PodTemplateHash            string
	ReadyReplicas              int32
	ReadyPodsSelectedToUpdate  *PodsSelectedToUpdate
}

// PodsSelectedToUpdate names the pods that an update replaces.
type PodsSelectedToUpdate struct {
	Current   string
	Completed []string
}
