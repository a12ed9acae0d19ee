package grove

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadType says whether a workload ends (seed 000).
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
	MinReplicas *int32
	MaxReplicas int32
	Metrics     []autoscalingv2.MetricSpec
	Behavior    *autoscalingv2.HorizontalPodAutoscalerBehavior
}

// TopologyConstraint asks for the pods below it to be placed close together.
type TopologyConstraint struct {
	TopologyName string
	Pack         *TopologyPackConstraint
	PackDomain   string
}

// TopologyPackConstraint names the domains of a ClusterTopologyBinding to pack into.
// At least one of the two has to be set.
type TopologyPackConstraint struct {
	Required  string
	Preferred string
}

// ResourceSharingScope says which pods share one ResourceClaim.
type ResourceSharingScope string

const (
	// ResourceSharingScopeAllReplicas makes one claim for all replicas of the owner.
	ResourceSharingScopeAllReplicas ResourceSharingScope = "AllReplicas"
	// ResourceSharingScopePerReplica makes one claim for each replica of the owner.
	ResourceSharingScopePerReplica ResourceSharingScope = "PerReplica"
)

// ResourceSharingSpec refers to a ResourceClaimTemplate from which claims are made
// that pods share.
type ResourceSharingSpec struct {
	Name      string
	Namespace string
	Scope     ResourceSharingScope
}

// LastError is a failure that a controller met while it worked on an object.
type LastError struct {
	Code        string
	Description string
	ObservedAt  metav1.Time
}
