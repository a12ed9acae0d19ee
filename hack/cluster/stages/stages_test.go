package stages

import (
	"bytes"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestConfig(t *testing.T) {
	config, err := Config()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for part := range bytes.SplitSeq(config, []byte("---\n")) {
		var object struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
		if err := yaml.Unmarshal(part, &object); err != nil {
			t.Fatalf("%v in\n%s", err, part)
		}
		if object.APIVersion == "" || object.Kind == "" || object.Metadata.Name == "" {
			t.Errorf("no type or name: %+v in\n%s", object, part)
		}
		if seen[object.Metadata.Name] {
			t.Errorf("%s is there twice", object.Metadata.Name)
		}
		seen[object.Metadata.Name] = true
	}
	for _, name := range []string{"options", "node-ready", "node-heartbeat", "pod-run", "pod-exit", "pod-delete"} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}
