package podgrouper

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// Rule says how the pods of some kinds of workload are grouped. It says what the workload
// is by nature: labels and annotations that override it are not its business.
type Rule interface {
	// Name of the rule, for people.
	Name() string
	// Kinds whose pods it groups, in any version.
	Kinds() []schema.GroupKind
	// Identify says which group of the owner a pod is in. It is asked while the pod is
	// being created, when that may have no UID and no name, and gives the same answer
	// later.
	Identify(in Input) (Membership, error)
	// Describe says what the group of a pod needs. The owner's fields are as of now;
	// what is wrong with them need not be returned, it is known to the fields. The reader
	// is for further objects, such as pods that are waited for.
	Describe(ctx context.Context, in Input, owner fields.Fields, reader client.Reader) (Shape, error)
}

// Input is a pod and its place below its owners.
type Input struct {
	// Pod that is grouped.
	Pod *corev1.Pod
	// Owner by which it is grouped; nil when it is grouped by itself.
	Owner *metav1.PartialObjectMetadata
	// Below are the owners between the pod and Owner, nearest to the pod first.
	Below []*metav1.PartialObjectMetadata
	// Above are the owners that are passed over, nearest to Owner first. What they ask for
	// counts where Owner asks for nothing.
	Above []*metav1.PartialObjectMetadata
	// MinMember is the minimum that was asked for in place of the rule's, if it was.
	MinMember *int32
}

// Annotation is the value of an annotation of the owner, of an owner that is passed over,
// or of the pod: the first that has it.
func (in Input) Annotation(key string) string {
	for _, level := range in.levels() {
		if value := level.annotations[key]; value != "" {
			return value
		}
	}
	return ""
}

// Membership is in which of its owner's groups a pod is.
type Membership struct {
	// PerPod says that each pod is a group of its own.
	PerPod bool
	// SubKey tells the groups of one owner apart; empty when there is but one.
	SubKey string
	// Base and UID stand for the owner's name and UID in the name of the group, where pods
	// come before their owner.
	Base, UID string
	// SubGroup of the pod in the group.
	SubGroup string
	// PriorityClassName of such workloads when nothing else is asked for.
	PriorityClassName string
	// OwnerPriorityClassName is what the owner's metadata asks for in the owner's own way.
	OwnerPriorityClassName string
	// PriorityInOwner says that Describe may find a class in the owner's fields.
	PriorityInOwner bool
	// Notes for people.
	Notes []Note
}

// Shape is what a group needs.
type Shape struct {
	// MinMember is how many pods have to be scheduled together. Without it and MinSubGroup
	// one is enough.
	MinMember *int64
	// MinSubGroup is how many of the top subgroups have to be, in place of MinMember.
	MinSubGroup *int64
	// FirstPods is how many pods those subgroups have that MinSubGroup counts, where it is
	// known which come first: the others come later, and are not to be counted in their place.
	FirstPods *int64
	// FirstPast says that those have had their turn: the pod that is asked for, the oldest
	// that lives, is of others.
	FirstPast bool
	// SubGroups of the group.
	SubGroups []SubGroup
	// AtOnce is how many pods come without waiting for one of them to run, if that is
	// known. A minimum above it would never be reached.
	AtOnce *int64
	// Topology where no annotation names one.
	Topology *Topology
	// OwnerPriorityClassName is the class that the owner's fields name.
	OwnerPriorityClassName string
	// Owner of the group, where it is not the one that the pods are grouped by.
	Owner *metav1.OwnerReference
	// Notes for people.
	Notes []Note
}

// Note is something that people should know about how a pod is grouped.
type Note struct {
	// Reason in one word.
	Reason string
	// Message says it for people.
	Message string
}

// Reasons of notes, beside those of package owners.
const (
	// ReasonInvalidOverride: a label or annotation has a value that it cannot have, and is
	// passed over.
	ReasonInvalidOverride = "InvalidOverride"
	// ReasonUnknownPriorityClass: a PriorityClass that was asked for does not exist, and is
	// passed over.
	ReasonUnknownPriorityClass = "UnknownPriorityClass"
	// ReasonMinMemberTooHigh: a minimum that was asked for would never be reached.
	ReasonMinMemberTooHigh = "MinMemberTooHigh"
	// ReasonMissingLabel: a pod lacks the label that says where in its group it is.
	ReasonMissingLabel = "MissingLabel"
	// ReasonIncompleteTopology: a placement is asked for without the name of a topology.
	ReasonIncompleteTopology = "IncompleteTopology"
)
