package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// The cluster's controllers ask for protobuf and take JSON as well. Once, an answer
// that was promised as protobuf and could not be encoded kept every namespace from going.
func TestClientsThatPreferProtobufAreServed(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(inference)
	config := rest.CopyConfig(cluster.Config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	sets := client.Resource(grovev1alpha1.SchemeGroupVersion.WithResource("podcliquesets")).Namespace(ns.Name)
	list, err := sets.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "llm" {
		t.Errorf("list: %v, error %v", list, err)
	}
	if err := sets.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Errorf("deletecollection: %v", err)
	}
}

// get sends a bare request, with a media type, for a path of the API.
func get(t *testing.T, path, accept string) (int, string, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	client.Timeout = 30 * time.Second
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cluster.Config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Content-Type"), string(body)
}

func TestAClientThatTakesProtobufAloneIsToldWhatThereIs(t *testing.T) {
	code, _, body := get(t, "/apis/grove.io/v1alpha1/podcliquesets", "application/vnd.kubernetes.protobuf")
	if code != http.StatusNotAcceptable || !strings.Contains(body, "application/json") {
		t.Errorf("answer %d: %s", code, body)
	}
}

func TestTablesCarryObjectsAsAsked(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(inference)
	const accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
	path := "/apis/grove.io/v1alpha1/namespaces/" + ns.Name + "/podcliquesets"
	for include, wantKind := range map[string]string{"None": "", "Metadata": "PartialObjectMetadata", "Object": "PodCliqueSet"} {
		code, _, body := get(t, path+"?includeObject="+include, accept)
		var table struct {
			Kind              string
			ColumnDefinitions []metav1.TableColumnDefinition
			Metadata          metav1.ListMeta
			Rows              []struct {
				Cells  []any
				Object *struct{ Kind string }
			}
		}
		if err := json.Unmarshal([]byte(body), &table); err != nil || code != http.StatusOK {
			t.Fatalf("answer %d, error %v: %s", code, err, body)
		}
		if table.Kind != "Table" || len(table.Rows) != 1 || len(table.Rows[0].Cells) != len(table.ColumnDefinitions) || table.Metadata.ResourceVersion == "" {
			t.Errorf("table with includeObject=%s: %s", include, body)
			continue
		}
		kind := ""
		if table.Rows[0].Object != nil {
			kind = table.Rows[0].Object.Kind
		}
		if kind != wantKind {
			t.Errorf("with includeObject=%s a row holds a %q, want %q", include, kind, wantKind)
		}
	}
}
