package conformance

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
)

// Each kind is found by aggregated discovery with its verbs, and described in both
// versions of OpenAPI.
func TestDiscovery(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	verbs := map[string][]string{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			verbs[list.GroupVersion+"/"+resource.Name] = resource.Verbs
		}
	}
	v2, err := client.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for _, path := range v2.GetPaths().GetPath() {
		paths[path.GetName()] = true
	}
	v3, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			group := k.resource.GroupVersion().String()
			want := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
			if got := slices.Sorted(slices.Values(verbs[group+"/"+k.resource.Resource])); !slices.Equal(got, want) {
				t.Errorf("verbs %v", got)
			}
			if got := slices.Sorted(slices.Values(verbs[group+"/"+k.resource.Resource+"/status"])); !slices.Equal(got, []string{"get", "patch", "update"}) {
				t.Errorf("verbs of the status %v", got)
			}
			path := "/apis/" + group + "/namespaces/{namespace}/" + k.resource.Resource
			if k.clustered {
				path = "/apis/" + group + "/" + k.resource.Resource
			}
			if !paths[path] {
				t.Errorf("%s is not in OpenAPI v2", path)
			}
			described, ok := v3["apis/"+group]
			if !ok {
				t.Fatalf("%s has no OpenAPI v3", group)
			}
			data, err := described.Schema("application/json")
			if err != nil {
				t.Fatal(err)
			}
			var schema struct {
				Paths map[string]json.RawMessage `json:"paths"`
			}
			if err := json.Unmarshal(data, &schema); err != nil {
				t.Fatal(err)
			}
			if _, ok := schema.Paths[path]; !ok {
				t.Errorf("%s is not in OpenAPI v3", path)
			}
			if !strings.Contains(string(data), k.name) {
				t.Errorf("no schema of %s", k.name)
			}
		})
	}
}
