package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/copse-dev/copse/test/framework"
)

// groveManifest is a manifest that was written for Grove, in a namespace of the test.
func groveManifest(t *testing.T, ns *framework.Namespace) string {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(cluster.Root(), "pkg", "registry", "testdata", "grove.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(manifest), "namespace: serving", "namespace: "+ns.Name, 1)
}

// A manifest of Grove's applies as it is, reads back with Grove's defaults (D1 aside), and
// writes nothing when it is applied again.
func TestAManifestOfGroveAppliesUnchanged(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("its pods find no place, and that is not what is tested"))
	manifest := groveManifest(t, ns)
	ns.Apply(manifest)
	for path, want := range map[string]string{
		"{.spec.updateStrategy.type}":                                          "RollingRecreate",
		"{.spec.template.headlessServiceConfig.publishNotReadyAddresses}":      "true",
		"{.spec.template.cliques[*].spec.replicas}":                            "1 4 1 3",
		"{.spec.template.cliques[*].spec.minAvailable}":                        "1 4 1 2",
		"{.spec.template.cliques[0].spec.autoScalingConfig.minReplicas}":       "1",
		"{.spec.template.cliques[*].spec.podSpec.restartPolicy}":               "Always Always OnFailure Always",
		"{.spec.template.podCliqueScalingGroups[0].minAvailable}":              "1",
		"{.spec.template.podCliqueScalingGroups[0].scaleConfig.minReplicas}":   "2",
		"{.spec.template.terminationDelay}":                                    "",
		"{.spec.template.cliques[1].topologyConstraint.pack.preferred}":        "host",
		"{.spec.template.resourceSharing[0].filter.childScalingGroupNames[0]}": "decode",
	} {
		if got := ns.Kubectl("get", "pcs", "chat", "-o", "jsonpath="+path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	// kubectl sends the 0 replicas of a clique again, which mean 1.
	ns.Apply(manifest)
	if got := ns.Kubectl("get", "pcs", "chat", "-o", "jsonpath={.metadata.generation}"); got != "1" {
		t.Errorf("applied again, it is generation %s", got)
	}
}

// What the migration guide exports from Grove can be imported: a set as a server had
// stored it, without what that server had added.
func TestASetThatWasExportedFromGroveIsImported(t *testing.T) {
	ns := cluster.Namespace(t, framework.Unrecorded("its pods find no place, and that is not what is tested"))
	ns.Apply(groveManifest(t, ns))
	exported := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(ns.Kubectl("get", "pcs", "chat", "-o", "json")), &exported.Object); err != nil {
		t.Fatal(err)
	}
	ns.Kubectl("delete", "pcs", "chat")
	// These are the fields that docs/migrating-from-grove.md leaves out.
	delete(exported.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "finalizers", "selfLink"} {
		unstructured.RemoveNestedField(exported.Object, "metadata", field)
	}
	imported, err := exported.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if out := ns.Apply(string(imported)); !strings.Contains(out, "created") {
		t.Errorf("imported: %s", out)
	}
	if out := ns.Apply(string(imported)); !strings.Contains(out, "unchanged") {
		t.Errorf("imported again: %s", out)
	}
}
