package registry_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
	"github.com/copse-dev/copse/pkg/naming"
)

func FuzzPodCliqueSet(f *testing.F)           { fuzz(f, "PodCliqueSet") }
func FuzzPodClique(f *testing.F)              { fuzz(f, "PodClique") }
func FuzzPodCliqueScalingGroup(f *testing.F)  { fuzz(f, "PodCliqueScalingGroup") }
func FuzzClusterTopologyBinding(f *testing.F) { fuzz(f, "ClusterTopologyBinding") }
func FuzzStartGate(f *testing.F)              { fuzz(f, "StartGate") }
func FuzzPodGang(f *testing.F)                { fuzz(f, "PodGang") }
func FuzzPodGroup(f *testing.F)               { fuzz(f, "PodGroup") }

// fuzz decodes, defaults and validates what becomes of an object of a kind by edits, as a
// request to create it does, and then as an update that changes nothing.
func fuzz(f *testing.F, kind string) {
	k, c := kinds()[kind], newCodec()
	gv, err := schema.ParseGroupVersion(k.apiVersion)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.encode(f, k.object), []byte{})
	if kind == "PodCliqueSet" {
		manifest, err := os.ReadFile("testdata/grove.yaml")
		if err != nil {
			f.Fatal(err)
		}
		text, err := yaml.YAMLToJSON(manifest)
		if err != nil {
			f.Fatal(err)
		}
		for edit := range byte(8) {
			f.Add(text, []byte{edit * 31, edit, 40 + edit, edit})
		}
	}
	f.Add([]byte(`{"metadata":{"name":"a","namespace":"ns"},"spec":{"replicas":2147483647}}`), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, text, edits []byte) {
		obj, err := c.decode(edited(text, edits), gv.WithKind(kind))
		if err != nil {
			t.Skip("is not decoded")
		}
		checkStable(t, k, c, gv.WithKind(kind), obj)
	})
}

// checkStable holds an object to what is promised of any.
func checkStable(t *testing.T, k kind, c codec, gvk schema.GroupVersionKind, obj runtime.Object) {
	ctx := context.Background()
	accessor, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	// The namespace is the request's.
	accessor.SetNamespace("")
	if !k.clusterWide {
		accessor.SetNamespace("ns")
	}
	accessor.SetUID("uid")
	accessor.SetManagedFields(nil)
	accessor.SetDeletionTimestamp(nil)
	k.main.PrepareForCreate(ctx, obj)
	refused := k.main.Validate(ctx, obj)
	k.main.WarningsOnCreate(ctx, obj)
	if len(refused) > 0 {
		return
	}
	accessor.SetResourceVersion("7")

	// What was accepted reads back as it is, and defaults find nothing more to do.
	read, err := c.decode(c.encode(t, obj), gvk)
	if err != nil {
		t.Fatalf("what was stored is not read: %v", err)
	}
	if !apiequality.Semantic.DeepEqual(obj, read) {
		t.Fatalf("what was stored is read as another (-stored +read):\n%s", cmp.Diff(obj, read))
	}
	k.main.PrepareForUpdate(ctx, read, obj)
	if !apiequality.Semantic.DeepEqual(obj, read) {
		t.Fatalf("an update that changes nothing does (-before +after):\n%s", cmp.Diff(obj, read))
	}
	if errs := k.main.ValidateUpdate(ctx, read, obj); len(errs) > 0 {
		t.Fatalf("an update that changes nothing is refused: %v", errs)
	}
	if warnings := k.main.WarningsOnUpdate(ctx, read, obj); len(warnings) > 0 {
		t.Fatalf("an update that changes nothing is warned of: %q", warnings)
	}
	k.status.PrepareForUpdate(ctx, read, obj)
	if errs := k.status.ValidateUpdate(ctx, read, obj); len(errs) > 0 {
		t.Fatalf("a status that changes nothing is refused: %v", errs)
	}
	if set, ok := obj.(*grove.PodCliqueSet); ok {
		checkChildren(t, set)
	}
}

// checkChildren sees that the server accepts what the controllers make of an accepted
// set: they could only try again for ever.
func checkChildren(t *testing.T, set *grove.PodCliqueSet) {
	groupOf := map[string]*grove.PodCliqueScalingGroupConfig{}
	for i := range set.Spec.Template.PodCliqueScalingGroups {
		config := &set.Spec.Template.PodCliqueScalingGroups[i]
		group := &grove.PodCliqueScalingGroup{Spec: grove.PodCliqueScalingGroupSpec{
			Replicas: ptr.Deref(config.Replicas, 1), MinAvailable: config.MinAvailable, CliqueNames: config.CliqueNames, WorkloadType: set.Spec.WorkloadType,
		}}
		group.Name, group.Namespace, group.Annotations = naming.ScalingGroup(set.Name, 0, config.Name), set.Namespace, config.Annotations
		if errs := validation.ValidatePodCliqueScalingGroup(group); len(errs) > 0 {
			t.Fatalf("the set is accepted, and its group %s is refused: %v", group.Name, errs)
		}
		for _, name := range config.CliqueNames {
			groupOf[name] = config
		}
	}
	for i := range set.Spec.Template.Cliques {
		template := &set.Spec.Template.Cliques[i]
		clique := &grove.PodClique{Spec: *template.Spec.DeepCopy()}
		clique.Name = naming.StandaloneClique(set.Name, max(set.Spec.Replicas, 1)-1, template.Name)
		if group := groupOf[template.Name]; group != nil {
			clique.Name = naming.MemberClique(set.Name, max(set.Spec.Replicas, 1)-1, group.Name, ptr.Deref(group.Replicas, 1)-1, template.Name)
		}
		clique.Namespace, clique.Labels, clique.Annotations = set.Namespace, template.Labels, template.Annotations
		clique.Spec.WorkloadType = set.Spec.WorkloadType
		if errs := validation.ValidatePodClique(clique); len(errs) > 0 {
			t.Fatalf("the set is accepted, and its clique %s is refused: %v", clique.Name, errs)
		}
	}
}

// edited applies edits to a document: each three bytes name a place and what is put there.
// Bytes that are changed at random seldom make a document that is decoded, and valid.
func edited(text, edits []byte) []byte {
	var doc any
	if json.Unmarshal(text, &doc) != nil {
		return text
	}
	for ; len(edits) >= 3; edits = edits[3:] {
		at := int(edits[0])<<8 | int(edits[1])
		doc = edit(doc, &at, edits[2])
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return text
	}
	return out
}

// edit changes the value that is at steps from here, counted depth first.
func edit(value any, at *int, change byte) any {
	if *at == 0 {
		*at = -1
		return changed(value, change)
	}
	*at--
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if *at >= 0 {
				value[key] = edit(value[key], at, change)
			}
		}
	case []any:
		for i := range value {
			if *at >= 0 {
				value[i] = edit(value[i], at, change)
			}
		}
	}
	return value
}

// changed is what a change makes of a value: one of those that are often wrong, or a list
// with an item twice, or turned round.
func changed(value any, change byte) any {
	if list, ok := value.([]any); ok && len(list) > 0 {
		switch change % 4 {
		case 0:
			return append(list, list[int(change/4)%len(list)])
		case 1:
			return list[:len(list)-1]
		case 2:
			list = slices.Clone(list)
			slices.Reverse(list)
			return list
		}
	}
	values := []any{
		nil, 0, 1, 2, 3, -1, 2147483647, -2147483648, 20001, true, false, "", "a", "worker", "leader", "decode", "0s", "1h", "-1s",
		[]any{}, []any{nil}, []any{"worker"}, []any{"leader", "worker"}, map[string]any{}, map[string]any{"a": "b"},
		"Training", "Inference", "InOrder", "AnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeAnyOrder", "Never", "Always", "OnFailure", "Succeeded", "Ready",
		map[string]any{"startupPolicyOrder": "InOrder"}, map[string]any{"maxReplicas": 7}, map[string]any{"targetCliques": []any{"worker"}},
		map[string]any{"topologyName": "gpu", "pack": map[string]any{"required": "rack"}},
	}
	return values[int(change)%len(values)]
}
