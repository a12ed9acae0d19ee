package owners

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxDepth bounds the owners of a pod. What people nest is half as deep.
const MaxDepth = 16

// Chain is the owners of a pod, as far as they can be read. Chains share their owners, which
// are not to be changed.
type Chain struct {
	// Owners of the pod, nearest first. All are in the pod's namespace.
	Owners []*metav1.PartialObjectMetadata
	// MirrorPod says that the pod belongs to a node: its kubelet runs it whatever a
	// scheduler thinks.
	MirrorPod bool
	// Notes are what was not as usual on the way up, in that order.
	Notes []Note
}

// Reason says in one word what was not as usual about an owner.
type Reason string

const (
	// ReasonSeveralOwners: none of several owners is the controller; the first is taken.
	ReasonSeveralOwners Reason = "SeveralOwners"
	// ReasonForbidden: we may not read the owner, so the search ends below it.
	ReasonForbidden Reason = "OwnerForbidden"
	// ReasonUnknownKind: the cluster does not serve the owner's kind, so the search ends
	// below it.
	ReasonUnknownKind Reason = "OwnerKindUnknown"
	// ReasonClusterScoped: the owner is in no namespace, so the search ends below it: a
	// group is in one.
	ReasonClusterScoped Reason = "OwnerClusterScoped"
	// ReasonGone: the owner does not exist any more, and the pod is about to go as well.
	ReasonGone Reason = "OwnerGone"
	// ReasonCycle: an owner is owned by what it owns; the search ends there.
	ReasonCycle Reason = "OwnerCycle"
	// ReasonTooDeep: there are more owners than MaxDepth; the search ends there.
	ReasonTooDeep Reason = "OwnersTooDeep"
)

// Note is something about an owner that was not as usual. It is nothing to retry for.
type Note struct {
	// Reason in one word.
	Reason Reason
	// Ref is the reference in question.
	Ref metav1.OwnerReference
	// Message says it for people.
	Message string
}

// MissingError says that an owner which a pod names is not there, or not yet for the
// reader. It is worth a retry; a pod is not grouped by a guess in the meantime.
type MissingError struct {
	// Ref is the reference that leads nowhere.
	Ref metav1.OwnerReference
	// Namespace in which it was looked for.
	Namespace string
	// Found is the UID of another object by that name, if there is one.
	Found string
}

// Error says it for people.
func (e *MissingError) Error() string {
	what := fmt.Sprintf("owner %s %s/%s with UID %s", e.Ref.Kind, e.Namespace, e.Ref.Name, e.Ref.UID)
	if e.Found != "" {
		return what + " does not exist: the object by that name has UID " + e.Found
	}
	return what + " does not exist"
}

// IsMissing says whether a search ended at an owner that is not there.
func IsMissing(err error) bool {
	var missing *MissingError
	return errors.As(err, &missing)
}
