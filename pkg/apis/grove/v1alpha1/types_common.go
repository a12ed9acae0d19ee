package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadType says whether a workload ends.
// +enum
type WorkloadType string

const (
	// WorkloadTypeInference marks a workload that lives for ever: every pod that
	// ends is replaced. It is the default.
	WorkloadTypeInference WorkloadType = "Inference"
	// WorkloadTypeTraining marks a workload that finishes: a pod that exits with
	// 0 is not made again, and the set ends as Succeeded or Failed.
	WorkloadTypeTraining WorkloadType = "Training"
)

// AutoScalingConfig makes the controllers create a HorizontalPodAutoscaler for the
// clique or scaling group that carries it. Not allowed in Training.
type AutoScalingConfig struct {
	// minReplicas is the lower bound of the autoscaler. Defaults to replicas.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// maxReplicas is the upper bound of the autoscaler, at least minReplicas and replicas.
	MaxReplicas int32 `json:"maxReplicas"`
	// metrics are handed to the HorizontalPodAutoscaler as they are. Empty means the
	// autoscaler's own default, 80 percent CPU.
	// +optional
	// +listType=atomic
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
	// behavior is handed to the HorizontalPodAutoscaler as it is: how fast it scales up and
	// down. Empty means the autoscaler's own default.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}

// TopologyConstraint asks for the pods below it to be placed close together.
type TopologyConstraint struct {
	// topologyName names the ClusterTopologyBinding whose domains are meant. May be
	// inherited from the level above.
	// +optional
	TopologyName string `json:"topologyName,omitempty"`
	// pack names the domains within which the pods are packed.
	// +optional
	Pack *TopologyPackConstraint `json:"pack,omitempty"`
	// packDomain is the former spelling of pack.required.
	//
	// Deprecated: use pack.required.
	// +optional
	PackDomain string `json:"packDomain,omitempty"`
}

// TopologyPackConstraint names the domains of a ClusterTopologyBinding to pack into.
// At least one of the two has to be set.
type TopologyPackConstraint struct {
	// required is the domain that all pods must share.
	// +optional
	Required string `json:"required,omitempty"`
	// preferred is the domain that the pods should share where that is possible.
	// +optional
	Preferred string `json:"preferred,omitempty"`
}

// ResourceSharingScope says which pods share one ResourceClaim.
// +enum
type ResourceSharingScope string

const (
	// ResourceSharingScopeAllReplicas makes one claim for all replicas of the set, scaling
	// group or clique that asks for it.
	ResourceSharingScopeAllReplicas ResourceSharingScope = "AllReplicas"
	// ResourceSharingScopePerReplica makes one claim for each replica of the set, copy of the
	// scaling group, or pod of the clique.
	ResourceSharingScopePerReplica ResourceSharingScope = "PerReplica"
)

// ResourceSharingSpec refers to a ResourceClaimTemplate from which claims are made
// that pods share.
type ResourceSharingSpec struct {
	// name of the template: an entry of template.resourceClaimTemplates, or a
	// ResourceClaimTemplate object.
	Name string `json:"name"`
	// namespace of the ResourceClaimTemplate object. Empty means the set's own; must be
	// empty when name is an entry of template.resourceClaimTemplates.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// scope says which pods share one claim.
	Scope ResourceSharingScope `json:"scope"`
}

// LastError is a failure that a controller met while it worked on an object.
type LastError struct {
	// code classifies the failure.
	Code string `json:"code"`
	// description says what happened, for people.
	Description string `json:"description"`
	// observedAt is when the failure was met.
	ObservedAt metav1.Time `json:"observedAt"`
}

// Condition types of the grove.io kinds.
const (
	// ConditionTypeMinAvailableBreached is on PodClique and PodCliqueScalingGroup: True
	// while fewer than minAvailable units are available though they once were.
	ConditionTypeMinAvailableBreached = "MinAvailableBreached"
	// ConditionTypePodCliqueScheduled is on PodClique: True while at least minAvailable
	// pods are bound to a node.
	ConditionTypePodCliqueScheduled = "PodCliqueScheduled"
	// ConditionTypeSucceeded is on PodClique and PodCliqueSet in Training: every pod
	// has exited with 0.
	ConditionTypeSucceeded = "Succeeded"
	// ConditionTypeFailureTarget is on PodCliqueSet in Training: the workload has failed
	// for good, and its active pods are being terminated. It becomes Failed when none is left.
	// On PodClique it says that the clique has seen its set's: no pod of it is made any more.
	ConditionTypeFailureTarget = "FailureTarget"
	// ConditionTypeFailed is on PodCliqueSet in Training: the workload has failed and no
	// pod of it is active any more.
	ConditionTypeFailed = "Failed"
	// ConditionTypeStartupPolicyInProgress is on PodCliqueSet with startupPolicy InOrder:
	// some cliques are still held back.
	ConditionTypeStartupPolicyInProgress = "StartupPolicyInProgress"
	// ConditionTypeStartupPolicyCompleted is on PodCliqueSet with startupPolicy InOrder:
	// every clique has started.
	ConditionTypeStartupPolicyCompleted = "StartupPolicyCompleted"
	// ConditionTypeUpdatePending is on PodCliqueSet in Inference: True while running pods do
	// not follow the template, and how far their update has come; False when all do.
	ConditionTypeUpdatePending = "UpdatePending"
	// ConditionTypeRestarting is on PodCliqueSet once a replica, or a copy of a scaling group,
	// has been restarted: True until every replica that was is available again.
	ConditionTypeRestarting = "Restarting"
	// ConditionTypeNameConflict is on PodClique and StartGate: an object of another owner holds a name
	// that the clique needs.
	ConditionTypeNameConflict = "NameConflict"
	// ConditionTypePodsStuckTerminating is on PodCliqueSet and PodClique: pods that are
	// being deleted do not go away and hold up the next step.
	ConditionTypePodsStuckTerminating = "PodsStuckTerminating"
	// ConditionTypePodCreationFailed is on PodClique: the API server refuses the clique's pods.
	ConditionTypePodCreationFailed = "PodCreationFailed"
	// ConditionTypeResourceClaimsMissing is on PodCliqueSet: ResourceClaims that pods share
	// cannot be made, and the pods wait for them.
	ConditionTypeResourceClaimsMissing = "ResourceClaimsMissing"
	// ConditionTypeTopologyLevelsUnavailable is on PodCliqueSet with topology constraints: True
	// when a domain that one names does not exist, Unknown when none is followed.
	ConditionTypeTopologyLevelsUnavailable = "TopologyLevelsUnavailable"
	// ConditionTypeSchedulerTopologyDrift is on ClusterTopologyBinding: a scheduler's own
	// topology object differs from the binding.
	ConditionTypeSchedulerTopologyDrift = "SchedulerTopologyDrift"
)

// Reasons of conditions.
const (
	// ReasonSufficientReadyPods: MinAvailableBreached is False, enough pods are available.
	ReasonSufficientReadyPods = "SufficientReadyPods"
	// ReasonInsufficientReadyPods: MinAvailableBreached is True.
	ReasonInsufficientReadyPods = "InsufficientReadyPods"
	// ReasonNeverAvailable: MinAvailableBreached is False, the clique has not been available yet.
	ReasonNeverAvailable = "NeverAvailable"
	// ReasonPodsFailed: MinAvailableBreached is True though the clique has never been
	// available, because its pods failed (Training).
	ReasonPodsFailed = "PodsFailed"
	// ReasonUpdateInProgress: MinAvailableBreached is Unknown.
	ReasonUpdateInProgress = "UpdateInProgress"
	// ReasonSufficientScheduledPods: PodCliqueScheduled is True.
	ReasonSufficientScheduledPods = "SufficientScheduledPods"
	// ReasonInsufficientScheduledPods: PodCliqueScheduled is False.
	ReasonInsufficientScheduledPods = "InsufficientScheduledPods"
	// ReasonSufficientAvailableReplicas: MinAvailableBreached of a scaling group is False.
	ReasonSufficientAvailableReplicas = "SufficientAvailablePodCliqueScalingGroupReplicas"
	// ReasonInsufficientAvailableReplicas: MinAvailableBreached of a scaling group is True.
	ReasonInsufficientAvailableReplicas = "InsufficientAvailablePodCliqueScalingGroupReplicas"
	// ReasonAllPodsSucceeded: Succeeded of a PodClique is True.
	ReasonAllPodsSucceeded = "AllPodsSucceeded"
	// ReasonAllReplicasSucceeded: Succeeded of a PodCliqueSet is True.
	ReasonAllReplicasSucceeded = "AllReplicasSucceeded"
	// ReasonMaxRestartsExceeded: the restart budget is used up.
	ReasonMaxRestartsExceeded = "MaxRestartsExceeded"
	// ReasonMaxRuntimeExceeded: the deadline has passed.
	ReasonMaxRuntimeExceeded = "MaxRuntimeExceeded"
	// ReasonPodCliqueSetFailing: FailureTarget of a PodClique is True, as that of its set is.
	ReasonPodCliqueSetFailing = "PodCliqueSetFailing"
	// ReasonInOrderStartupPolicyInProgress and ReasonInOrderStartupPolicyCompleted are
	// those of seed 003.
	ReasonInOrderStartupPolicyInProgress = "InOrderStartupPolicyInProgress"
	ReasonInOrderStartupPolicyCompleted  = "InOrderStartupPolicyCompleted"
	// ReasonReplicaRestarting: Restarting is True, replicas have been restarted.
	ReasonReplicaRestarting = "ReplicaRestarting"
	// ReasonReplicaRestarted: Restarting is False, restarted replicas are available again.
	ReasonReplicaRestarted = "ReplicaRestarted"
	// ReasonWorkloadEnded: Restarting is False, the workload has ended.
	ReasonWorkloadEnded = "WorkloadEnded"
	// ReasonPodsTerminating: PodsStuckTerminating is True, pods exist past their grace period.
	ReasonPodsTerminating = "PodsTerminating"
	// ReasonForeignPod: a pod name is held by a pod of another owner.
	ReasonForeignPod = "ForeignPod"
	// ReasonForeignConfigMap: the name of a gate's ConfigMap is held by another owner's.
	ReasonForeignConfigMap = "ForeignConfigMap"
	// ReasonResourceClaimTemplateNotFound: ResourceClaimsMissing is True, a template that claims
	// are made from does not exist.
	ReasonResourceClaimTemplateNotFound = "ResourceClaimTemplateNotFound"
	// ReasonResourceClaimsNotServed: ResourceClaimsMissing is True, the cluster does not know
	// ResourceClaims.
	ReasonResourceClaimsNotServed = "ResourceClaimsNotServed"
	// ReasonRollingUpdate: UpdatePending is True, pods are replaced.
	ReasonRollingUpdate = "RollingUpdate"
	// ReasonWaitingForDeletion: UpdatePending is True, pods are replaced when somebody deletes
	// them.
	ReasonWaitingForDeletion = "WaitingForDeletion"
	// ReasonPodsFollowTemplate: UpdatePending is False.
	ReasonPodsFollowTemplate = "PodsFollowTemplate"
	// ReasonAllTopologyLevelsAvailable: TopologyLevelsUnavailable is False.
	ReasonAllTopologyLevelsAvailable = "AllClusterTopologyLevelsAvailable"
	// ReasonTopologyLevelsUnavailable: TopologyLevelsUnavailable is True, the ClusterTopologyBinding
	// lacks domains that constraints name.
	ReasonTopologyLevelsUnavailable = "ClusterTopologyLevelsUnavailable"
	// ReasonClusterTopologyNotFound: TopologyLevelsUnavailable is Unknown, there is no such
	// ClusterTopologyBinding.
	ReasonClusterTopologyNotFound = "ClusterTopologyNotFound"
	// ReasonTopologyNameMissing: TopologyLevelsUnavailable is Unknown, no constraint names the
	// ClusterTopologyBinding.
	ReasonTopologyNameMissing = "TopologyNameMissing"
	// ReasonTopologyDisabled: TopologyLevelsUnavailable is Unknown, topology is switched off, or
	// the scheduler follows no constraints.
	ReasonTopologyDisabled = "TopologyAwareSchedulingDisabled"
	// ReasonTopologyInSync: SchedulerTopologyDrift is False.
	ReasonTopologyInSync = "InSync"
	// ReasonTopologyDrift: SchedulerTopologyDrift is True, a scheduler has other levels.
	ReasonTopologyDrift = "Drift"
	// ReasonTopologyNotFound: SchedulerTopologyDrift is Unknown, a scheduler or its topology
	// object is not there.
	ReasonTopologyNotFound = "TopologyNotFound"
)
