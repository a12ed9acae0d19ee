package podcliqueset

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// GetAttrs returns what a set can be selected by.
func GetAttrs(obj runtime.Object) (apilabels.Set, fields.Set, error) {
	pcs, ok := obj.(*grove.PodCliqueSet)
	if !ok {
		return nil, nil, fmt.Errorf("expected a PodCliqueSet, got %T", obj)
	}
	own := fields.Set{
		"status.phase":      string(pcs.Status.Phase),
		"spec.workloadType": string(pcs.Spec.WorkloadType),
	}
	return pcs.Labels, generic.AddObjectMetaFieldsSet(own, &pcs.ObjectMeta, true), nil
}

// AddFieldLabelConversions lets clients name the fields that GetAttrs offers.
func AddFieldLabelConversions(scheme *runtime.Scheme) error {
	return internalrest.AddFieldLabelConversion(scheme, grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet"), "status.phase", "spec.workloadType")
}
