package apiserver

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	generatedopenapi "github.com/copse-dev/copse/pkg/generated/openapi"
)

// kindsOf returns the kinds of both API groups, without those that every group has.
func kindsOf(scheme *runtime.Scheme) map[schema.GroupVersionKind]reflect.Type {
	kinds := map[schema.GroupVersionKind]reflect.Type{}
	for _, version := range storageVersions() {
		for kind, goType := range scheme.KnownTypes(version) {
			if strings.HasPrefix(goType.PkgPath(), "github.com/copse-dev/copse/") {
				kinds[version.WithKind(kind)] = goType
			}
		}
	}
	return kinds
}

func TestModelNamesHaveNoSlash(t *testing.T) {
	// kubectl explain and clients in other languages cannot resolve references to them.
	definitions := generatedopenapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) })
	for name := range definitions {
		if strings.Contains(name, "/") {
			t.Errorf("model %q is named after a Go package: its package lacks +k8s:openapi-model-package", name)
		}
	}
	if len(definitions) == 0 {
		t.Error("there are no models")
	}
}

func TestEveryReferenceResolves(t *testing.T) {
	const prefix = "#/definitions/"
	definitions := generatedopenapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef(prefix + common.EscapeJsonPointer(name))
	})
	seen := 0
	for name, definition := range definitions {
		for _, ref := range refs(&definition.Schema) {
			seen++
			target := strings.TrimPrefix(ref, prefix)
			if _, ok := definitions[target]; !ok {
				t.Errorf("%s refers to %s, which is not there", name, target)
			}
			// The builder follows dependencies, not references.
			if !slices.Contains(definition.Dependencies, target) {
				t.Errorf("%s refers to %s without depending on it", name, target)
			}
		}
	}
	if seen == 0 {
		t.Error("there are no references")
	}
}

// refs returns the references in a schema.
func refs(s *spec.Schema) []string {
	if s == nil {
		return nil
	}
	var found []string
	if ref := s.Ref.String(); ref != "" {
		found = append(found, ref)
	}
	for _, property := range s.Properties {
		found = append(found, refs(&property)...)
	}
	for _, list := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			found = append(found, refs(&list[i])...)
		}
	}
	if s.Items != nil {
		found = append(found, refs(s.Items.Schema)...)
		for i := range s.Items.Schemas {
			found = append(found, refs(&s.Items.Schemas[i])...)
		}
	}
	if s.AdditionalProperties != nil {
		found = append(found, refs(s.AdditionalProperties.Schema)...)
	}
	return append(found, refs(s.Not)...)
}

// Without its kind in the schema an object cannot be applied by the server.
func TestEveryKindHasAModelThatServerSideApplyFinds(t *testing.T) {
	scheme := NewScheme()
	config := NewConfig(scheme, serializer.NewCodecFactory(scheme)).Generic.OpenAPIV3Config
	kinds := kindsOf(scheme)
	var names []string
	for _, goType := range kinds {
		names = append(names, util.GetCanonicalTypeName(reflect.New(goType).Interface()))
	}
	models, err := builder3.BuildOpenAPIDefinitionsForResources(config, names...)
	if err != nil {
		t.Fatal(err)
	}
	converter, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		t.Fatal(err)
	}
	for gvk := range kinds {
		t.Run(gvk.GroupKind().String(), func(t *testing.T) {
			obj, err := scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			if _, err := converter.ObjectToTyped(obj); err != nil {
				t.Error(err)
			}
			var of []string
			for name, model := range models {
				for _, own := range extensionKinds(model) {
					if own == gvk {
						of = append(of, name)
					}
				}
			}
			if len(of) != 1 {
				t.Errorf("models of this kind: %q, want one", of)
			}
		})
	}
	want := []string{
		"ClusterTopologyBinding", "ClusterTopologyBindingList", "PodClique", "PodCliqueList", "PodCliqueScalingGroup",
		"PodCliqueScalingGroupList", "PodCliqueSet", "PodCliqueSetList", "PodGang", "PodGangList", "PodGroup", "PodGroupList",
		"StartGate", "StartGateList",
	}
	var got []string
	for gvk := range kinds {
		got = append(got, gvk.Kind)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// extensionKinds are the kinds that a model is marked with.
func extensionKinds(model *spec.Schema) []schema.GroupVersionKind {
	entries, _ := model.Extensions["x-kubernetes-group-version-kind"].([]any)
	var kinds []schema.GroupVersionKind
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		text := func(key string) string { s, _ := fields[key].(string); return s }
		kinds = append(kinds, schema.GroupVersionKind{Group: text("group"), Version: text("version"), Kind: text("kind")})
	}
	return kinds
}

// TestAPIViolationsDoNotGrow: code generation lists fields that break a rule of the
// Kubernetes API conventions, and fails on new ones until somebody adds them to the
// list. Ours are there because Grove's JSON names are what they are.
func TestAPIViolationsDoNotGrow(t *testing.T) {
	known := []string{
		"names_match,github.com/copse-dev/copse/pkg/apis/grove/v1alpha1,PodCliqueSetTemplateSpec,StartupType",
		"names_match,github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1,PodGangSpec,PodGroups",
	}
	list, err := os.ReadFile("../../hack/api-violations.list")
	if err != nil {
		t.Fatal(err)
	}
	var ours []string
	for line := range strings.Lines(string(list)) {
		violation, found := strings.CutPrefix(strings.TrimSpace(line), "API rule violation: ")
		if !found {
			t.Errorf("line %q is no violation", line)
		}
		if strings.Contains(violation, "github.com/copse-dev/copse/") {
			ours = append(ours, violation)
		}
	}
	if diff := cmp.Diff(known, ours); diff != "" {
		t.Errorf("violations in our own packages (-known +listed):\n%s", diff)
	}
}
