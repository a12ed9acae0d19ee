package rest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// told keeps what a Refusals is told.
type told []string

func (r *told) StatusRefused(resource, field string) { *r = append(*r, resource+" "+field) }

type refusingStrategy struct {
	rest.RESTUpdateStrategy
	errs field.ErrorList
}

func (refusingStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set { return nil }

func (s refusingStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return s.errs
}

func TestRefusalsAreTold(t *testing.T) {
	status := field.NewPath("status")
	tests := map[string]struct {
		errs field.ErrorList
		want told
	}{
		"nothing is refused":         {},
		"a field":                    {field.ErrorList{field.Required(status.Child("phase"), "")}, told{"podcliquesets status.phase"}},
		"once, by the first field":   {field.ErrorList{field.Required(status.Child("a"), ""), field.Required(status.Child("b"), "")}, told{"podcliquesets status.a"}},
		"without indexes":            {field.ErrorList{field.Required(status.Child("a").Index(12).Child("b").Index(3), "")}, told{"podcliquesets status.a.b"}},
		"without keys":               {field.ErrorList{field.Required(status.Child("a").Key("x[3]y").Child("b"), "")}, told{"podcliquesets status.a.b"}},
		"with what somebody made up": {field.ErrorList{field.Required(status.Child("a").Key("x[[").Child("b"), "")}, told{"podcliquesets status.a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got told
			strategy := observedStrategy{StatusStrategy: refusingStrategy{errs: tc.errs}, resource: "podcliquesets", refusals: &got}
			if diff := cmp.Diff(tc.errs, strategy.ValidateUpdate(t.Context(), nil, nil)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
