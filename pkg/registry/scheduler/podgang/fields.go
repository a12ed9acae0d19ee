package podgang

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// GetAttrs returns what a gang can be selected by.
func GetAttrs(obj runtime.Object) (apilabels.Set, fields.Set, error) {
	gang, ok := obj.(*scheduler.PodGang)
	if !ok {
		return nil, nil, fmt.Errorf("expected a PodGang, got %T", obj)
	}
	own := fields.Set{
		"status.phase": string(gang.Status.Phase),
	}
	return gang.Labels, generic.AddObjectMetaFieldsSet(own, &gang.ObjectMeta, true), nil
}

// AddFieldLabelConversions lets clients name the fields that GetAttrs offers.
func AddFieldLabelConversions(scheme *runtime.Scheme) error {
	return internalrest.AddFieldLabelConversion(scheme, schedulerv1alpha1.SchemeGroupVersion.WithKind("PodGang"), "status.phase")
}
