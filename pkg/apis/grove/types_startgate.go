package grove

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// StartGate tells the waiting init containers of one replica of a PodCliqueSet which
// cliques may start. It is written by the controller and watched by the pods.
type StartGate struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status StartGateStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// StartGateList is a list of StartGates.
type StartGateList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []StartGate
}

// StartGateStatus says which cliques may start.
type StartGateStatus struct {
	Cliques    []StartGateClique
	Conditions []metav1.Condition
}

// StartGateClique is the gate of one PodClique.
type StartGateClique struct {
	Name         string
	Attempt      int32
	Open         bool
	Since        *metav1.Time
	FirstStarted *metav1.Time
	Expired      bool
	Message      string
}
