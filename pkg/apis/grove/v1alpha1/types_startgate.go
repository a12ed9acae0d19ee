package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// StartGate tells the waiting init containers of one replica of a PodCliqueSet which
// cliques may start. It is written by the controller and watched by the pods.
type StartGate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status says which cliques may start. Written by the controllers alone.
	// +optional
	Status StartGateStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// StartGateList is a list of StartGates.
type StartGateList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []StartGate `json:"items"`
}

// StartGateStatus says which cliques may start.
type StartGateStatus struct {
	// cliques that wait, or have waited, at the gate.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	Cliques []StartGateClique `json:"cliques,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// conditions of the gate: NameConflict.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// StartGateClique is the gate of one PodClique.
type StartGateClique struct {
	// name of the PodClique.
	Name string `json:"name"`
	// attempt of the PodClique that this entry speaks of.
	// +optional
	Attempt int32 `json:"attempt"`
	// open says that the containers of this attempt may start. Never closed within an attempt.
	// +optional
	Open bool `json:"open"`
	// since is when open or expired became true.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// firstStarted is when the first pod of the gang started in this attempt.
	// +optional
	FirstStarted *metav1.Time `json:"firstStarted,omitempty"`
	// expired says that the deadline passed before all pods had started. Never together with open.
	// +optional
	Expired bool `json:"expired"`
	// message names the pods that had not started when the gate expired.
	// +optional
	Message string `json:"message,omitempty"`
}
