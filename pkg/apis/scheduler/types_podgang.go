package scheduler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodGang is a set of pods that are scheduled all or nothing: the base gang of a
// replica of a PodCliqueSet, or one further copy of a scaling group.
type PodGang struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   PodGangSpec
	Status PodGangStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodGangList is a list of PodGangs.
type PodGangList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []PodGang
}

// PodGangSpec is the wanted state of a PodGang.
type PodGangSpec struct {
	PodGroups                      []PodGangPodGroup
	TopologyConstraint             *TopologyConstraint
	TopologyConstraintGroupConfigs []TopologyConstraintGroupConfig
	PriorityClassName              string
	ReuseReservationRef            *NamespacedName
}

// PodGangPodGroup is a group of pods of a gang that are alike.
type PodGangPodGroup struct {
	Name               string
	PodReferences      []NamespacedName
	MinReplicas        int32
	TopologyConstraint *TopologyConstraint
}

// NamespacedName refers to an object.
type NamespacedName struct {
	Namespace string
	Name      string
}

// TopologyConstraint places pods by node labels.
type TopologyConstraint struct {
	PackConstraint *TopologyPackConstraint
}

// TopologyPackConstraint names node labels.
type TopologyPackConstraint struct {
	Required  *string
	Preferred *string
}

// TopologyConstraintGroupConfig places some groups of a gang together.
type TopologyConstraintGroupConfig struct {
	Name               string
	PodGroupNames      []string
	TopologyConstraint *TopologyConstraint
}

// PodGangPhase says how far a gang has come.
type PodGangPhase string

const (
	// PodGangPending: the gang is not scheduled.
	PodGangPending PodGangPhase = "Pending"
	// PodGangStarting: the gang is scheduled and not all of it is Ready.
	PodGangStarting PodGangPhase = "Starting"
	// PodGangRunning: the gang is Ready.
	PodGangRunning PodGangPhase = "Running"
)

// PodGangStatus is the observed state of a PodGang.
type PodGangStatus struct {
	ObservedGeneration *int64
	ObservedAttempt    int32
	Phase              PodGangPhase
	Conditions         []metav1.Condition
	// SchedulingConditions explain why the gang is not scheduled.
	SchedulingConditions []SchedulingCondition
	PlacementScore       *float64
}
