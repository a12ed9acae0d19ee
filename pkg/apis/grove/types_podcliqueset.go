package grove

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodCliqueSet is a set of cliques of pods that are scheduled, started, restarted and
// ended together: a multi-node inference service, or a distributed training job.
type PodCliqueSet struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   PodCliqueSetSpec
	Status PodCliqueSetStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodCliqueSetList is a list of PodCliqueSets.
type PodCliqueSetList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []PodCliqueSet
}

// PodCliqueSetSpec is the wanted state of a PodCliqueSet.
type PodCliqueSetSpec struct {
	Replicas              int32
	UpdateStrategy        *PodCliqueSetUpdateStrategy
	WorkloadType          WorkloadType
	TrainingSpec          *TrainingSpec
	StartupPolicy         *StartupPolicy
	GroupSchedulingConfig *GroupSchedulingConfig
	Template              PodCliqueSetTemplateSpec
}

// UpdateStrategyType names a way of following a changed template.
type UpdateStrategyType string

const (
	// UpdateStrategyRollingRecreate replaces pods one replica at a time. It is the default.
	UpdateStrategyRollingRecreate UpdateStrategyType = "RollingRecreate"
	// UpdateStrategyOnDelete changes a pod only when somebody deletes it.
	UpdateStrategyOnDelete UpdateStrategyType = "OnDelete"
)

// PodCliqueSetUpdateStrategy says how pods follow a changed template.
type PodCliqueSetUpdateStrategy struct {
	Type           UpdateStrategyType
	MaxUnavailable *int32
}

// TrainingSpec bounds a training workload (seed 000).
type TrainingSpec struct {
	MaxRuntime  *metav1.Duration
	MaxRestarts *int32
}

// PodCliqueSetTemplateSpec describes one replica of a PodCliqueSet.
type PodCliqueSetTemplateSpec struct {
	Cliques                []PodCliqueTemplateSpec
	StartupType            *CliqueStartupType
	PriorityClassName      string
	HeadlessServiceConfig  *HeadlessServiceConfig
	TopologyConstraint     *TopologyConstraint
	TerminationDelay       *metav1.Duration
	ResourceClaimTemplates []ResourceClaimTemplateConfig
	ResourceSharing        []PCSResourceSharingSpec
	PodCliqueScalingGroups []PodCliqueScalingGroupConfig
}

// HeadlessServiceConfig configures the headless Service of each replica.
type HeadlessServiceConfig struct {
	PublishNotReadyAddresses *bool
}

// ResourceClaimTemplateConfig is a ResourceClaimTemplate inside a PodCliqueSet.
type ResourceClaimTemplateConfig struct {
	Name         string
	TemplateSpec resourcev1.ResourceClaimTemplateSpec
}

// PCSResourceSharingSpec shares claims over a PodCliqueSet.
type PCSResourceSharingSpec struct {
	ResourceSharingSpec
	Filter *PCSResourceSharingFilter
}

// PCSResourceSharingFilter names children of a PodCliqueSet.
type PCSResourceSharingFilter struct {
	ChildCliqueNames       []string
	ChildScalingGroupNames []string
}

// PodCliqueTemplateSpec describes one clique of a PodCliqueSet.
type PodCliqueTemplateSpec struct {
	Name               string
	Labels             map[string]string
	Annotations        map[string]string
	TopologyConstraint *TopologyConstraint
	ResourceSharing    []ResourceSharingSpec
	Spec               PodCliqueSpec
}

// PodCliqueScalingGroupConfig describes a group of cliques that scale together.
type PodCliqueScalingGroupConfig struct {
	Name               string
	CliqueNames        []string
	Annotations        map[string]string
	Replicas           *int32
	MinAvailable       *int32
	ScaleConfig        *AutoScalingConfig
	TerminationDelay   *metav1.Duration
	ResourceSharing    []PCSGResourceSharingSpec
	TopologyConstraint *TopologyConstraint
}

// PCSGResourceSharingSpec shares claims over a scaling group.
type PCSGResourceSharingSpec struct {
	ResourceSharingSpec
	Filter *PCSGResourceSharingFilter
}

// PCSGResourceSharingFilter names cliques of a scaling group.
type PCSGResourceSharingFilter struct {
	ChildCliqueNames []string
}

// PodCliqueSetPhase is where a workload is in its life (seed 000).
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
	ObservedGeneration    *int64
	Conditions            []metav1.Condition
	LastErrors            []LastError
	Phase                 PodCliqueSetPhase
	RestartCount          int32
	StartTime             *metav1.Time
	CompletionTime        *metav1.Time
	Replicas              int32
	UpdatedReplicas       int32
	AvailableReplicas     int32
	SucceededReplicas     int32
	Pods                  int32
	AvailablePods         int32
	ReplicaStatuses       []PodCliqueSetReplicaStatus
	HPAPodSelector        *string
	PodGangStatuses       []PodGangStatusSummary
	CurrentGenerationHash *string
	CliqueHashes          []CliqueHash
	UpdateProgress        *PodCliqueSetUpdateProgress
}

// PodCliqueSetReplicaStatus is the state of one replica.
type PodCliqueSetReplicaStatus struct {
	Index      int32
	Phase      PodCliqueSetPhase
	Attempt    int32
	OpenStages []string
	WaitingFor *WaitingFor
}

// WaitingFor says what a replica waits for.
type WaitingFor struct {
	Clique  string
	Status  string
	Have    int32
	Want    int32
	Message string
}

// PodGangStatusSummary mirrors the status of one PodGang.
type PodGangStatusSummary struct {
	Name       string
	Phase      string
	Conditions []metav1.Condition
}

// CliqueHash identifies the pod template of one clique.
type CliqueHash struct {
	Name string
	Hash string
}

// PodCliqueSetUpdateProgress tells how far an update has come.
type PodCliqueSetUpdateProgress struct {
	UpdateStartedAt                    metav1.Time
	UpdateEndedAt                      *metav1.Time
	PodCliqueSetGenerationHash         string
	UpdatedPodCliquesCount             int32
	TotalPodCliquesCount               int32
	UpdatedPodCliqueScalingGroupsCount int32
	TotalPodCliqueScalingGroupsCount   int32
	CurrentlyUpdating                  []PodCliqueSetReplicaUpdateProgress
}

// PodCliqueSetReplicaUpdateProgress tells how far the update of one replica has come.
type PodCliqueSetReplicaUpdateProgress struct {
	ReplicaIndex    int32
	UpdateStartedAt metav1.Time
	WasAvailable    bool
	UpdateEndedAt   *metav1.Time
}
