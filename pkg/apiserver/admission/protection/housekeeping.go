package protection

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// housekeepers are the garbage collector and the namespace controller: under their own
// accounts, and under the one that all controllers of a cluster share when it gives them
// none of their own.
func housekeepers() sets.Set[string] {
	return sets.New(
		"system:serviceaccount:kube-system:generic-garbage-collector",
		"system:serviceaccount:kube-system:namespace-controller",
		user.KubeControllerManager,
	)
}

// isHousekeeping says whether the garbage collector or the namespace controller does its
// part: to delete, to let go of owners, and to take off the finalizers that make it wait.
// Without it a namespace would never go.
func isHousekeeping(a admission.Attributes) bool {
	if a.GetUserInfo() == nil || !housekeepers().Has(a.GetUserInfo().GetName()) || a.GetSubresource() != "" {
		return false
	}
	switch a.GetOperation() {
	case admission.Delete:
		return true
	case admission.Update:
		return keepsAllButOwnership(a.GetObject(), a.GetOldObject())
	default:
		return false
	}
}

// keepsAllButOwnership says whether an update changes nothing but owner references and
// finalizers.
func keepsAllButOwnership(obj, old runtime.Object) bool {
	changed := old.DeepCopyObject()
	into, err := meta.Accessor(changed)
	if err != nil {
		return false
	}
	from, err := meta.Accessor(obj)
	if err != nil {
		return false
	}
	into.SetOwnerReferences(from.GetOwnerReferences())
	into.SetFinalizers(from.GetFinalizers())
	into.SetManagedFields(from.GetManagedFields())
	into.SetResourceVersion(from.GetResourceVersion())
	return apiequality.Semantic.DeepEqual(changed, obj)
}
