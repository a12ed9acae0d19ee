package fields

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

const sample = `
apiVersion: example.com/v1
kind: CustomJob
metadata:
  name: train
  annotations: {team: a}
spec:
  replicas: 4
  suspend: true
  queue: research
  groups:
  - {name: a, size: 2}
  - {name: b}
`

func TestReadsWhatIsThere(t *testing.T) {
	f := Of(object(t, sample))
	if got := ptr.Deref(f.Count("spec", "replicas"), -1); got != 4 {
		t.Errorf("replicas %d", got)
	}
	if !f.True("spec", "suspend") || f.String("spec", "queue") != "research" {
		t.Error("suspend or queue is not read")
	}
	groups := f.List("spec", "groups")
	if len(groups) != 2 || groups[0].String("name") != "a" || ptr.Deref(groups[0].Count("size"), 0) != 2 || groups[1].Count("size") != nil {
		t.Errorf("groups are not read: %v", groups)
	}
	if diff := cmp.Diff(map[string]string{"team": "a"}, f.Strings("metadata", "annotations")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"groups", "queue", "replicas", "suspend"}, f.At("spec").Keys()); diff != "" {
		t.Error(diff)
	}
	if err := f.Err(); err != nil {
		t.Errorf("nothing is wrong, but: %v", err)
	}
}

func TestWhatIsNotThereIsNoMistake(t *testing.T) {
	for name, f := range map[string]Fields{"no object": Of(nil), "an object": Of(object(t, sample)), "null": Of(object(t, "kind: A\nabsent: null"))} {
		if f.At("absent").Exists() || f.Count("absent", "b") != nil || f.String("absent") != "" || f.True("absent") || f.List("absent", "c") != nil || len(f.Strings("absent")) != 0 {
			t.Errorf("%s: something is read out of nothing", name)
		}
		if err := f.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMistakesNameTheField(t *testing.T) {
	tests := map[string]struct {
		object string
		read   func(Fields)
		want   string
	}{
		"a text for a number": {"{kind: CustomJob, spec: {replicas: four}}", func(f Fields) { f.Count("spec", "replicas") }, `spec.replicas: Invalid value: "four": must be a whole number`},
		"half a pod":          {"{kind: CustomJob, spec: {replicas: 1.5}}", func(f Fields) { f.Count("spec", "replicas") }, "spec.replicas: Invalid value: 1.5: must be a whole number from 0"},
		"less than no pods":   {"{kind: CustomJob, spec: {replicas: -1}}", func(f Fields) { f.Count("spec", "replicas") }, "spec.replicas: Invalid value: -1: must be a whole number from 0"},
		"too many pods":       {"{kind: CustomJob, spec: {replicas: 2147483648}}", func(f Fields) { f.Count("spec", "replicas") }, "spec.replicas: Invalid value: 2147483648: must be a whole number from 0"},
		"a number for a text": {"{kind: CustomJob, spec: {queue: 7}}", func(f Fields) { _ = f.String("spec", "queue") }, "spec.queue: Invalid value: 7: must be a string"},
		"a text for a switch": {"{kind: CustomJob, spec: {suspend: 'yes'}}", func(f Fields) { f.True("spec", "suspend") }, `spec.suspend: Invalid value: "yes": must be true or false`},
		"a text for a part":   {"{kind: CustomJob, spec: {groups: all}}", func(f Fields) { f.Count("spec", "groups", "a") }, `spec.groups: Invalid value: "all": must be an object`},
		"a part for a list":   {"{kind: CustomJob, spec: {groups: {a: 1}}}", func(f Fields) { f.List("spec", "groups") }, "spec.groups: Invalid value: {\"a\":1}: must be a list"},
		"texts in a list":     {"{kind: CustomJob, spec: {groups: [{}, a]}}", func(f Fields) { f.List("spec", "groups") }, `spec.groups[1]: Invalid value: "a": must be an object`},
		"below a list":        {"{kind: CustomJob, spec: {groups: [{}, {size: a}]}}", func(f Fields) { f.List("spec", "groups")[1].Count("size") }, `spec.groups[1].size: Invalid value: "a": must be a whole number`},
		"an annotation":       {"{kind: CustomJob, metadata: {annotations: {a: 1}}}", func(f Fields) { f.Strings("metadata", "annotations") }, "metadata.annotations[a]: Invalid value: 1: must be a string"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := Of(object(t, tc.object))
			tc.read(f)
			if err := f.Err(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestMistakesAreCollected(t *testing.T) {
	f := Of(object(t, "kind: A\napiVersion: b/v1\nspec: {replicas: a, min: b}"))
	f.Count("spec", "replicas")
	f.At("spec").Count("min")
	if err := f.Err(); err == nil || !strings.Contains(err.Error(), "spec.replicas") || !strings.Contains(err.Error(), "spec.min") {
		t.Errorf("got %v, want both fields", err)
	}
}
