package v1alpha1

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// PodCliqueSet is a set of cliques of pods that are scheduled, started, restarted and
// ended together: a multi-node inference service, or a distributed training job.
type PodCliqueSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	Spec PodCliqueSetSpec `json:"spec"`
	// status is what is observed and decided. Written by the controllers alone.
	// +optional
	Status PodCliqueSetStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodCliqueSetList is a list of PodCliqueSets.
type PodCliqueSetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodCliqueSet `json:"items"`
}

// PodCliqueSetSpec is the wanted state of a PodCliqueSet.
type PodCliqueSetSpec struct {
	// replicas is how many copies of the template run. Defaults to 0; at least 1, and
	// immutable, in Training.
	// +optional
	Replicas int32 `json:"replicas"`
	// updateStrategy says how pods follow a changed template. Nil acts as RollingRecreate.
	// +optional
	UpdateStrategy *PodCliqueSetUpdateStrategy `json:"updateStrategy,omitempty"`
	// workloadType says whether the workload ends. Defaults to Inference. Immutable.
	// +optional
	WorkloadType WorkloadType `json:"workloadType,omitempty"`
	// trainingSpec bounds a training workload. Only with workloadType Training; nil means
	// no restarts and no deadline.
	// +optional
	TrainingSpec *TrainingSpec `json:"trainingSpec,omitempty"`
	// startupPolicy makes the cliques of a replica start one after the other. Immutable.
	// +optional
	StartupPolicy *StartupPolicy `json:"startupPolicy,omitempty"`
	// groupSchedulingConfig holds main containers back until every pod of the gang has
	// started. Immutable.
	// +optional
	GroupSchedulingConfig *GroupSchedulingConfig `json:"groupSchedulingConfig,omitempty"`
	// template describes one replica.
	Template PodCliqueSetTemplateSpec `json:"template"`
}

// UpdateStrategyType names a way of following a changed template.
// +enum
type UpdateStrategyType string

const (
	// UpdateStrategyRollingRecreate replaces pods one replica at a time. It is the default.
	UpdateStrategyRollingRecreate UpdateStrategyType = "RollingRecreate"
	// UpdateStrategyOnDelete changes a pod only when somebody deletes it.
	UpdateStrategyOnDelete UpdateStrategyType = "OnDelete"
)

// PodCliqueSetUpdateStrategy says how pods follow a changed template.
type PodCliqueSetUpdateStrategy struct {
	// type defaults to RollingRecreate.
	// +optional
	Type UpdateStrategyType `json:"type,omitempty"`
	// maxUnavailable is how many pods of a standalone clique, and how many copies of a scaling
	// group, an update by RollingRecreate may keep from being available at once. At least 1,
	// which is also what nil means: pods are replaced in place, on the room that they have.
	// +optional
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`
}

// TrainingSpec bounds a training workload.
type TrainingSpec struct {
	// maxRuntime is how long the workload may run, counted from status.startTime and over
	// restarts. When it has passed, all pods are terminated and the set is Failed. Nil means no limit.
	// +optional
	MaxRuntime *metav1.Duration `json:"maxRuntime,omitempty"`
	// maxRestarts is how many times failed replicas are restarted, in total over all
	// replicas, before the set is Failed. Defaults to 0. May be changed until the end.
	// +optional
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`
}

// PodCliqueSetTemplateSpec describes one replica of a PodCliqueSet.
type PodCliqueSetTemplateSpec struct {
	// cliques are the kinds of pods of a replica; at least one.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	Cliques []PodCliqueTemplateSpec `json:"cliques" patchStrategy:"merge" patchMergeKey:"name"`
	// cliqueStartupType defaults to CliqueStartupTypeAnyOrder. Immutable.
	// +optional
	StartupType *CliqueStartupType `json:"cliqueStartupType,omitempty"`
	// priorityClassName is the PriorityClass of all pods and gangs of the set.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// headlessServiceConfig configures the headless Service of each replica.
	// +optional
	HeadlessServiceConfig *HeadlessServiceConfig `json:"headlessServiceConfig,omitempty"`
	// topologyConstraint places each replica as a whole. Immutable.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
	// terminationDelay is how long a breach of minAvailable has to last before the gang
	// is terminated. Unset means never in Inference, and 0s in Training.
	// +optional
	TerminationDelay *metav1.Duration `json:"terminationDelay,omitempty"`
	// resourceClaimTemplates are templates that resourceSharing refers to by name. Immutable.
	// +optional
	// +listType=map
	// +listMapKey=name
	ResourceClaimTemplates []ResourceClaimTemplateConfig `json:"resourceClaimTemplates,omitempty"`
	// resourceSharing makes claims shared by the pods of the set. Immutable.
	// +optional
	// +listType=atomic
	ResourceSharing []PCSResourceSharingSpec `json:"resourceSharing,omitempty"`
	// podCliqueScalingGroups are groups of cliques that scale together. No entry can be
	// added, removed or renamed later.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	PodCliqueScalingGroups []PodCliqueScalingGroupConfig `json:"podCliqueScalingGroups,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// HeadlessServiceConfig configures the headless Service of each replica.
type HeadlessServiceConfig struct {
	// publishNotReadyAddresses makes pods resolvable before they are Ready. Defaults to
	// true.
	// +optional
	PublishNotReadyAddresses *bool `json:"publishNotReadyAddresses,omitempty"`
}

// ResourceClaimTemplateConfig is a ResourceClaimTemplate inside a PodCliqueSet.
type ResourceClaimTemplateConfig struct {
	// name by which resourceSharing refers to this template.
	Name string `json:"name"`
	// templateSpec is the claims' template.
	TemplateSpec resourcev1.ResourceClaimTemplateSpec `json:"templateSpec"`
}

// PCSResourceSharingSpec shares claims over a PodCliqueSet.
type PCSResourceSharingSpec struct {
	ResourceSharingSpec `json:",inline"`
	// filter names the children that take part. Absent means all.
	// +optional
	Filter *PCSResourceSharingFilter `json:"filter,omitempty"`
}

// PCSResourceSharingFilter names children of a PodCliqueSet.
type PCSResourceSharingFilter struct {
	// childCliqueNames are cliques of the template, those of scaling groups as well.
	// +optional
	// +listType=atomic
	ChildCliqueNames []string `json:"childCliqueNames,omitempty"`
	// childScalingGroupNames are scaling groups of the template.
	// +optional
	// +listType=atomic
	ChildScalingGroupNames []string `json:"childScalingGroupNames,omitempty"`
}

// PodCliqueTemplateSpec describes one clique of a PodCliqueSet.
type PodCliqueTemplateSpec struct {
	// name of the clique, a DNS label, unique in the set.
	Name string `json:"name"`
	// labels are put on the PodClique and its pods.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are put on the PodClique and its pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// topologyConstraint places the pods of the clique. Immutable.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
	// resourceSharing makes claims shared by the pods of the clique. Immutable.
	// +optional
	// +listType=atomic
	ResourceSharing []ResourceSharingSpec `json:"resourceSharing,omitempty"`
	// spec of the PodClique.
	Spec PodCliqueSpec `json:"spec"`
}

// PodCliqueScalingGroupConfig describes a group of cliques that scale together.
type PodCliqueScalingGroupConfig struct {
	// name of the group, a DNS label, unique in the set.
	Name string `json:"name"`
	// cliqueNames are cliques of the template; a clique is in one group at most. Immutable.
	// +listType=atomic
	CliqueNames []string `json:"cliqueNames"`
	// annotations are put on the PodCliqueScalingGroup.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// replicas is how many copies of the group a replica of the set starts with. Defaults to 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// minAvailable is how many copies have to be available, and form the base gang together
	// with the standalone cliques. Defaults to 1, and to replicas in Training. Immutable.
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`
	// scaleConfig scales the group automatically. Not allowed in Training.
	// +optional
	ScaleConfig *AutoScalingConfig `json:"scaleConfig,omitempty"`
	// terminationDelay overrides the set's for this group. Only when the set has one.
	// +optional
	TerminationDelay *metav1.Duration `json:"terminationDelay,omitempty"`
	// resourceSharing makes claims shared by the pods of the group. Immutable.
	// +optional
	// +listType=atomic
	ResourceSharing []PCSGResourceSharingSpec `json:"resourceSharing,omitempty"`
	// topologyConstraint places each copy of the group. Immutable.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
}

// PCSGResourceSharingSpec shares claims over a scaling group.
type PCSGResourceSharingSpec struct {
	ResourceSharingSpec `json:",inline"`
	// filter names the cliques that take part. Absent means all.
	// +optional
	Filter *PCSGResourceSharingFilter `json:"filter,omitempty"`
}

// PCSGResourceSharingFilter names cliques of a scaling group.
type PCSGResourceSharingFilter struct {
	// childCliqueNames are cliques of the group.
	// +optional
	// +listType=atomic
	ChildCliqueNames []string `json:"childCliqueNames,omitempty"`
}

// PodCliqueSetPhase is where a workload is in its life.
// +enum
type PodCliqueSetPhase string

const (
	// PodCliqueSetPending: no pod of a current attempt runs.
	PodCliqueSetPending PodCliqueSetPhase = "Pending"
	// PodCliqueSetRunning: a pod of a current attempt runs.
	PodCliqueSetRunning PodCliqueSetPhase = "Running"
	// PodCliqueSetSucceeded: every pod has exited with 0. Training only, final.
	PodCliqueSetSucceeded PodCliqueSetPhase = "Succeeded"
	// PodCliqueSetFailed: the workload has failed and no pod is active. Training only, final.
	PodCliqueSetFailed PodCliqueSetPhase = "Failed"
)

// PodCliqueSetStatus is the observed state of a PodCliqueSet.
type PodCliqueSetStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// conditions of the set.
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
	// phase says where the workload is in its life.
	// +optional
	Phase PodCliqueSetPhase `json:"phase,omitempty"`
	// restartCount is how many restarts of replicas there have been, in Training. It never falls.
	// +optional
	RestartCount int32 `json:"restartCount"`
	// startTime is when the phase first became Running. It is never reset.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the phase became Succeeded or Failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// replicas is how many replicas exist.
	// +optional
	Replicas int32 `json:"replicas"`
	// updatedReplicas is how many replicas are available and follow the current template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// availableReplicas is how many replicas have every clique and scaling group available.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`
	// succeededReplicas is how many replicas have succeeded, in Training.
	// +optional
	SucceededReplicas int32 `json:"succeededReplicas"`
	// pods is how many pods the set wants at its present size.
	// +optional
	Pods int32 `json:"pods"`
	// availablePods is how many pods of current attempts are Ready; in Training, Ready or Succeeded.
	// +optional
	AvailablePods int32 `json:"availablePods"`
	// replicaStatuses tell of replicas that have something to tell: in Training, when
	// restarted, or while they wait. In Inference at most 50.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +patchMergeKey=index
	// +patchStrategy=merge
	ReplicaStatuses []PodCliqueSetReplicaStatus `json:"replicaStatuses,omitempty" patchStrategy:"merge" patchMergeKey:"index"`
	// hpaPodSelector selects the pods of the set, as /scale shows it.
	// +optional
	HPAPodSelector *string `json:"hpaPodSelector,omitempty"`
	// podGangStatuses mirror the phases of the set's PodGangs.
	// +optional
	// +listType=map
	// +listMapKey=name
	PodGangStatuses []PodGangStatusSummary `json:"podGangStatuses,omitempty"`
	// currentGenerationHash identifies the pod templates of all cliques. Written by the server alone.
	// +optional
	CurrentGenerationHash *string `json:"currentGenerationHash,omitempty"`
	// cliqueHashes identify the pod template of each clique. Written by the server alone.
	// +optional
	// +listType=map
	// +listMapKey=name
	CliqueHashes []CliqueHash `json:"cliqueHashes,omitempty"`
	// updateProgress tells how far an update has come.
	// +optional
	UpdateProgress *PodCliqueSetUpdateProgress `json:"updateProgress,omitempty"`
}

// PodCliqueSetReplicaStatus is the state of one replica.
type PodCliqueSetReplicaStatus struct {
	// index of the replica, from 0.
	Index int32 `json:"index"`
	// phase of the replica.
	// +optional
	Phase PodCliqueSetPhase `json:"phase,omitempty"`
	// attempt counts how many times the replica has been made anew. It never falls.
	// +optional
	Attempt int32 `json:"attempt"`
	// openStages are the cliques whose stage of startupPolicy has been opened in this attempt.
	// +optional
	// +listType=set
	OpenStages []string `json:"openStages,omitempty"`
	// waitingFor is what holds the replica back.
	// +optional
	WaitingFor *WaitingFor `json:"waitingFor,omitempty"`
}

// WaitingFor says what a replica waits for.
type WaitingFor struct {
	// clique that is waited for.
	// +optional
	Clique string `json:"clique,omitempty"`
	// status that the clique has to reach, Started at a start barrier, or the reason why
	// the gang is not scheduled.
	Status string `json:"status"`
	// have is how many pods have reached the status.
	// +optional
	Have int32 `json:"have"`
	// want is how many pods have to reach it.
	// +optional
	Want int32 `json:"want"`
	// message says it for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// PodGangStatusSummary mirrors the status of one PodGang.
type PodGangStatusSummary struct {
	// name of the PodGang.
	Name string `json:"name"`
	// phase of the PodGang.
	// +optional
	Phase string `json:"phase,omitempty"`
	// conditions of the PodGang.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CliqueHash identifies the pod template of one clique.
type CliqueHash struct {
	// name of the clique in the template.
	Name string `json:"name"`
	// hash of the clique's labels, annotations, podSpec and the set's priorityClassName.
	Hash string `json:"hash"`
}

// PodCliqueSetUpdateProgress tells how far an update has come.
type PodCliqueSetUpdateProgress struct {
	// updateStartedAt is when the update began.
	// +optional
	UpdateStartedAt metav1.Time `json:"updateStartedAt,omitempty"`
	// updateEndedAt is when all pods followed the template, or, with OnDelete, when it was left
	// to others to delete them.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`
	// podCliqueSetGenerationHash is the set's hash that the update goes to.
	// +optional
	PodCliqueSetGenerationHash string `json:"podCliqueSetGenerationHash,omitempty"`
	// updatedPodCliquesCount is how many standalone PodCliques follow the template.
	// +optional
	UpdatedPodCliquesCount int32 `json:"updatedPodCliquesCount"`
	// totalPodCliquesCount is how many standalone PodCliques there are.
	// +optional
	TotalPodCliquesCount int32 `json:"totalPodCliquesCount"`
	// updatedPodCliqueScalingGroupsCount is how many scaling groups follow the template.
	// +optional
	UpdatedPodCliqueScalingGroupsCount int32 `json:"updatedPodCliqueScalingGroupsCount"`
	// totalPodCliqueScalingGroupsCount is how many scaling groups there are.
	// +optional
	TotalPodCliqueScalingGroupsCount int32 `json:"totalPodCliqueScalingGroupsCount"`
	// currentlyUpdating are the replicas that are being updated.
	// +optional
	// +listType=map
	// +listMapKey=replicaIndex
	CurrentlyUpdating []PodCliqueSetReplicaUpdateProgress `json:"currentlyUpdating,omitempty"`
}

// PodCliqueSetReplicaUpdateProgress tells how far the update of one replica has come.
type PodCliqueSetReplicaUpdateProgress struct {
	// replicaIndex is the index of the replica.
	ReplicaIndex int32 `json:"replicaIndex"`
	// updateStartedAt is when its update began.
	// +optional
	UpdateStartedAt metav1.Time `json:"updateStartedAt,omitempty"`
	// wasAvailable says that the replica was available then: the next one waits until it is so
	// again.
	// +optional
	WasAvailable bool `json:"wasAvailable,omitempty"`
	// updateEndedAt is when its update ended.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`
}
