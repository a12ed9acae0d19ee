package podgrouper

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// KindDefaults are the defaults that are configured for a kind; what is empty is the
// rule's.
type KindDefaults struct {
	PriorityClassName string
	Preemptibility    string
	Queue             string
	NodePool          string
	MinMember         int32
	MarkUnschedulable *bool
	SchedulingBackoff *int32
}

// PriorityClasses knows the PriorityClasses of the cluster.
type PriorityClasses interface {
	// Exists says whether there is a class.
	Exists(name string) bool
	// GlobalDefault is the class of pods that ask for none; empty when there is none.
	GlobalDefault() string
}

// Options of a Grouper.
type Options struct {
	// Schedulers are the names of the schedulers whose pods are grouped.
	Schedulers map[string]BackEnd
	// ExemptNamespaces are left alone, as kube-system always is.
	ExemptNamespaces sets.Set[string]
	// Kinds have configured defaults.
	Kinds map[schema.GroupKind]KindDefaults
	// PassedOver are kinds that only order the work of those below them.
	PassedOver []schema.GroupKind
	// PriorityClasses of the cluster; nil when there are none.
	PriorityClasses PriorityClasses
}

// noPriorityClasses is a cluster without any.
type noPriorityClasses struct{}

func (noPriorityClasses) Exists(string) bool    { return false }
func (noPriorityClasses) GlobalDefault() string { return "" }
