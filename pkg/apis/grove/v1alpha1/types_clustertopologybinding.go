package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ClusterTopologyBinding names the levels of a cluster's topology, from broad to
// narrow, by the node labels that mark them.
type ClusterTopologyBinding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the topology.
	Spec ClusterTopologyBindingSpec `json:"spec"`
	// status tells how schedulers' own topologies compare. Written by the controllers alone.
	// +optional
	Status ClusterTopologyBindingStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterTopologyBindingList is a list of ClusterTopologyBindings.
type ClusterTopologyBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterTopologyBinding `json:"items"`
}

// ClusterTopologyBindingSpec is a topology and its binding to schedulers.
type ClusterTopologyBindingSpec struct {
	// levels of the topology, from broad to narrow; at least one.
	// +listType=atomic
	Levels []TopologyLevel `json:"levels"`
	// schedulerTopologyBindings name topology objects that schedulers have already.
	// +optional
	// +listType=map
	// +listMapKey=schedulerName
	SchedulerTopologyBindings []SchedulerTopologyBinding `json:"schedulerTopologyBindings,omitempty"`
}

// TopologyLevel is one level of a topology.
type TopologyLevel struct {
	// domain by which constraints name the level, such as zone, rack or host.
	Domain string `json:"domain"`
	// key of the node label whose values are the domains of this level.
	Key string `json:"key"`
}

// SchedulerTopologyBinding names the topology object of a scheduler.
type SchedulerTopologyBinding struct {
	// schedulerName is the scheduler's name.
	SchedulerName string `json:"schedulerName"`
	// topologyReference is the name of its topology object.
	TopologyReference string `json:"topologyReference"`
}

// ClusterTopologyBindingStatus is the observed state of a ClusterTopologyBinding.
type ClusterTopologyBindingStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// conditions of the binding.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// schedulerTopologyStatuses compare each scheduler's topology with the binding.
	// +optional
	// +listType=map
	// +listMapKey=schedulerName
	SchedulerTopologyStatuses []SchedulerTopologyStatus `json:"schedulerTopologyStatuses,omitempty"`
}

// SchedulerTopologyStatus compares a scheduler's topology with the binding.
type SchedulerTopologyStatus struct {
	SchedulerTopologyBinding `json:",inline"`
	// inSync says whether the two agree.
	// +optional
	InSync bool `json:"inSync"`
	// schedulerBackendTopologyObservedGeneration is the generation of the scheduler's
	// object that was compared.
	// +optional
	SchedulerBackendTopologyObservedGeneration int64 `json:"schedulerBackendTopologyObservedGeneration,omitempty"`
	// message says what differs.
	// +optional
	Message string `json:"message,omitempty"`
}
