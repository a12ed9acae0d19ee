package rest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddFieldLabelConversion lets clients name the fields that objects of a kind can be
// selected by: name and namespace, which every kind has, and the kind's own. Whoever names
// another one is told which there are, with status 400.
func AddFieldLabelConversion(scheme *runtime.Scheme, kind schema.GroupVersionKind, own ...string) error {
	selectable := append([]string{"metadata.name", "metadata.namespace"}, own...)
	return scheme.AddFieldLabelConversionFunc(kind, func(label, value string) (string, string, error) {
		if !slices.Contains(selectable, label) {
			return "", "", fmt.Errorf("%q is not a field that a %s can be selected by: use %s", label, kind.Kind, strings.Join(selectable, ", "))
		}
		return label, value, nil
	})
}
