package grove

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterTopologyBinding names the levels of a cluster's topology, from broad to
// narrow, by the node labels that mark them.
type ClusterTopologyBinding struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   ClusterTopologyBindingSpec
	Status ClusterTopologyBindingStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterTopologyBindingList is a list of ClusterTopologyBindings.
type ClusterTopologyBindingList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []ClusterTopologyBinding
}

// ClusterTopologyBindingSpec is a topology and its binding to schedulers.
type ClusterTopologyBindingSpec struct {
	Levels                    []TopologyLevel
	SchedulerTopologyBindings []SchedulerTopologyBinding
}

// TopologyLevel is one level of a topology.
type TopologyLevel struct {
	Domain string
	Key    string
}

// SchedulerTopologyBinding names the topology object of a scheduler.
type SchedulerTopologyBinding struct {
	SchedulerName     string
	TopologyReference string
}

// ClusterTopologyBindingStatus is the observed state of a ClusterTopologyBinding.
type ClusterTopologyBindingStatus struct {
	ObservedGeneration        *int64
	Conditions                []metav1.Condition
	SchedulerTopologyStatuses []SchedulerTopologyStatus
}

// SchedulerTopologyStatus compares a scheduler's topology with the binding.
type SchedulerTopologyStatus struct {
	SchedulerTopologyBinding
	InSync                                     bool
	SchedulerBackendTopologyObservedGeneration int64
	Message                                    string
}
