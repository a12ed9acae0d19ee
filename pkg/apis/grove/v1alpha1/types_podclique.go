package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// PodClique is a group of pods with one template: one clique of one replica of a
// PodCliqueSet, or of one copy of a scaling group.
type PodClique struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	Spec PodCliqueSpec `json:"spec"`
	// status is what is observed and recorded. Written by the controllers alone.
	// +optional
	Status PodCliqueStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodCliqueList is a list of PodCliques.
type PodCliqueList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodClique `json:"items"`
}

// PodCliqueSpec is the wanted state of a PodClique, and its template in a PodCliqueSet.
type PodCliqueSpec struct {
	// roleName is the role of the pods, unique in the set.
	// +optional
	RoleName string `json:"roleName,omitempty"`
	// podSpec of the pods. In Training restartPolicy defaults to Never, else to Always.
	PodSpec corev1.PodSpec `json:"podSpec"`
	// replicas is how many pods the clique has. 0 and absent are 1 in a template.
	// +optional
	Replicas int32 `json:"replicas"`
	// minAvailable is how many pods have to be scheduled together and have to be
	// available. Defaults to replicas. Immutable.
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`
	// startsAfter are the cliques that have to be there before the containers of this one
	// start, with cliqueStartupType Explicit. Immutable. In PodClique objects it holds names of PodCliques.
	// +optional
	// +listType=atomic
	StartsAfter []string `json:"startsAfter,omitempty"`
	// autoScalingConfig scales the clique automatically. Not allowed in Training, nor in a scaling group.
	// +optional
	AutoScalingConfig *AutoScalingConfig `json:"autoScalingConfig,omitempty"`
	// workloadType is the set's. Stamped on PodClique objects; not to be set in a template.
	// +optional
	WorkloadType WorkloadType `json:"workloadType,omitempty"`
	// attempt is the attempt that the pods have to belong to. Written by the controller;
	// not to be set in a template.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
}

// PodCliqueStatus is the observed state of a PodClique. Terminating pods and pods of
// other attempts are never counted.
type PodCliqueStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// conditions of the clique.
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
	// observedAttempt is the attempt that this status speaks of. It never falls.
	// +optional
	ObservedAttempt int32 `json:"observedAttempt"`
	// createdAttempt is the highest attempt of which all pods have been created. Nil until
	// the first is complete.
	// +optional
	CreatedAttempt *int32 `json:"createdAttempt,omitempty"`
	// createdReplicas is how many pods createdAttempt had when it was complete, lowered by
	// scale-in: a missing index below it is lost, one at or above it is simply not there yet.
	// +optional
	CreatedReplicas int32 `json:"createdReplicas"`
	// wasAvailable is true once minAvailable pods have been available in this attempt. A
	// clique that is scaled to 0 forgets it, and starts anew when it is scaled out again.
	// +optional
	WasAvailable bool `json:"wasAvailable"`
	// replicas is how many pods exist.
	// +optional
	Replicas int32 `json:"replicas"`
	// oldReplicas is how many pods of earlier attempts still exist. No pod of a new attempt
	// is made before there is none in the whole replica.
	// +optional
	OldReplicas int32 `json:"oldReplicas,omitempty"`
	// readyReplicas is how many pods are Ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// runningReplicas is how many pods have a container, or an init container, that runs.
	// +optional
	RunningReplicas int32 `json:"runningReplicas"`
	// updatedReplicas is how many pods follow the current template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// scheduledReplicas is how many pods are bound to a node.
	// +optional
	ScheduledReplicas int32 `json:"scheduledReplicas"`
	// scheduleGatedReplicas is how many pods are held by a scheduling gate.
	// +optional
	ScheduleGatedReplicas int32 `json:"scheduleGatedReplicas"`
	// startedReplicas is how many pods have come to the start barrier, of those that it waits
	// for, which have an index below minAvailable: the container that waits there runs, or
	// has ended with 0. Only where groupSchedulingConfig holds the clique.
	// +optional
	StartedReplicas int32 `json:"startedReplicas,omitempty"`
	// completedIndexes are the indexes whose pods exited with 0, in Training, as "0-3,7".
	// They only grow within an attempt.
	// +optional
	CompletedIndexes string `json:"completedIndexes,omitempty"`
	// failedIndexes are the indexes whose pods failed or were lost in this attempt: those that
	// are broken, and the eight that recovered last. One writer writes it as a whole: tracking
	// the owner of each entry would double its size.
	// +optional
	// +listType=atomic
	FailedIndexes []FailedIndex `json:"failedIndexes,omitempty"`
	// recoveredIndexes are the indexes that recovered before those of failedIndexes did. Each
	// is in short what an entry of failedIndexes is: "12x2@2026-11-29T04:57:56Z/dc4c7c9e" is
	// index 12, with count 2 (1 if there is none), its recoveredTime, and how podUID begins.
	// +optional
	// +listType=atomic
	RecoveredIndexes []string `json:"recoveredIndexes,omitempty"`
	// hpaPodSelector selects the pods of the clique, as /scale shows it.
	// +optional
	HPAPodSelector *string `json:"hpaPodSelector,omitempty"`
	// currentPodCliqueSetGenerationHash is the set's hash that the clique follows.
	// +optional
	CurrentPodCliqueSetGenerationHash *string `json:"currentPodCliqueSetGenerationHash,omitempty"`
	// currentPodTemplateHash is the clique's hash that all its pods follow.
	// +optional
	CurrentPodTemplateHash *string `json:"currentPodTemplateHash,omitempty"`
	// updateProgress tells how far an update has come.
	// +optional
	UpdateProgress *PodCliqueUpdateProgress `json:"updateProgress,omitempty"`
}

// MaxFailedIndexes bounds status.failedIndexes and status.recoveredIndexes together, which
// would otherwise not fit into etcd. When it is reached, an index that has recovered makes
// room for one that fails; while there is none, further failures wait to be recorded, and
// their pods to be replaced.
const MaxFailedIndexes = 8000

// FailedIndex tells of failures of one index within an attempt.
type FailedIndex struct {
	// index of the pod, from 0.
	Index int32 `json:"index"`
	// count of failures, one per pod UID.
	// +optional
	Count int32 `json:"count"`
	// lastTime is when the last failure happened.
	// +optional
	LastTime metav1.Time `json:"lastTime,omitempty"`
	// recoveredTime is when a pod of the index was Ready again after the last failure. Unset
	// while the index is broken.
	// +optional
	RecoveredTime *metav1.Time `json:"recoveredTime,omitempty"`
	// podUID is the UID of the pod that failed last, empty when it was lost.
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`
	// message says what happened, for people: exit code, reason, node. Empty where more than
	// 500 indexes have failed before this one.
	// +optional
	Message string `json:"message,omitempty"`
}

// PodCliqueUpdateProgress tells how far the update of a PodClique has come.
type PodCliqueUpdateProgress struct {
	// updateStartedAt is when the update began.
	// +optional
	UpdateStartedAt metav1.Time `json:"updateStartedAt,omitempty"`
	// updateEndedAt is when the update ended.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`
	// podCliqueSetGenerationHash is the set's hash that the update goes to.
	// +optional
	PodCliqueSetGenerationHash string `json:"podCliqueSetGenerationHash,omitempty"`
	// podTemplateHash is the clique's hash that the update goes to.
	// +optional
	PodTemplateHash string `json:"podTemplateHash,omitempty"`
	// readyReplicas is how many pods were Ready when the update began: it ends when as many are
	// again, all of the new template.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// readyPodsSelectedToUpdate is Grove's, and not filled here: which pods are replaced
	// follows from their labels, and updatedReplicas says how many have been.
	// +optional
	ReadyPodsSelectedToUpdate *PodsSelectedToUpdate `json:"readyPodsSelectedToUpdate,omitempty"`
}

// PodsSelectedToUpdate names the pods that an update replaces.
type PodsSelectedToUpdate struct {
	// current is the pod that is being replaced.
	// +optional
	Current string `json:"current,omitempty"`
	// completed are the pods that have been replaced.
	// +optional
	// +listType=atomic
	Completed []string `json:"completed,omitempty"`
}
