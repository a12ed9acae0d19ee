package rest

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddFinalizer puts a finalizer on a new object, so that there is no moment at which
// the object could go without its owner's controller knowing.
func AddFinalizer(obj metav1.Object, finalizer string) {
	if finalizers := obj.GetFinalizers(); !slices.Contains(finalizers, finalizer) {
		obj.SetFinalizers(append(finalizers, finalizer))
	}
}
