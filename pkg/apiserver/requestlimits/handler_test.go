package requestlimits

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	most = 1 << 20
	path = "/apis/grove.io/v1alpha1/namespaces/team/podcliquesets"
)

// serve runs a server that answers with the body that gets through.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, version := range []schema.GroupVersion{{Version: "v1"}, {Group: "grove.io", Version: "v1alpha1"}} {
		metav1.AddToGroupVersion(scheme, version)
		scheme.AddUnversionedTypes(version, &metav1.Status{})
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// Read first: the server of HTTP/1 reads no more of a body once it is answered.
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		if _, err := w.Write(body); err != nil {
			t.Error(err)
		}
	})
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis"), GrouplessAPIPrefixes: sets.NewString()}
	server := httptest.NewServer(filters.WithRequestInfo(Handler(echo, serializer.NewCodecFactory(scheme), most), resolver))
	t.Cleanup(server.Close)
	return server
}

// send sends a body, of a length that is told or not, and returns the answer.
func send(t *testing.T, server *httptest.Server, method, path, mediaType string, body io.Reader) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	response, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestABodyOfTooManyValuesIsRefused(t *testing.T) {
	server := serve(t)
	tooMany := `{"spec":{"a":` + list(maxEntries+1, "0") + `}}`
	for _, tc := range []struct{ method, path, mediaType string }{
		{http.MethodPost, path, "application/json"},
		{http.MethodPost, path, ""},
		{http.MethodPut, path + "/a", "application/json; charset=utf-8"},
		{http.MethodPut, path + "/a/status", "application/json"},
		{http.MethodPatch, path + "/a", "application/merge-patch+json"},
		{http.MethodPatch, path + "/a", "application/apply-patch+yaml"},
		{http.MethodDelete, path + "/a", "application/json"},
	} {
		// A reader of no known type is sent in chunks, without a length.
		for what, body := range map[string]io.Reader{"with its length": strings.NewReader(tooMany), "in chunks": io.MultiReader(strings.NewReader(tooMany))} {
			code, text := send(t, server, tc.method, tc.path, tc.mediaType, body)
			var status metav1.Status
			if err := json.Unmarshal([]byte(text), &status); err != nil {
				t.Fatalf("%s %s %s: %v in %.200q", tc.method, tc.path, what, err, text)
			}
			if code != http.StatusUnprocessableEntity || status.Details == nil || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != "spec.a" {
				t.Errorf("%s %s %s: answered with %d %.300s", tc.method, tc.path, what, code, text)
			}
		}
	}
	if code, text := send(t, server, http.MethodPost, path, "application/yaml", strings.NewReader("a:\n"+strings.Repeat("- {}\n", maxEntries))); code != http.StatusUnprocessableEntity {
		t.Errorf("YAML is answered with %d %.300s", code, text)
	}
}

func TestEveryOtherBodyArrivesWhole(t *testing.T) {
	server := serve(t)
	for name, body := range map[string]string{
		"nothing":                        "",
		"an object":                      `{"spec":{}}`,
		"a big object":                   `{"spec":{"a":` + list(maxEntries, "0") + `}}`,
		"a text that is not JSON":        strings.Repeat("{", most-1),
		"as much as is read":             `"` + strings.Repeat("a", most-2) + `"`,
		"more, for the next to refuse":   `{"spec":{"a":` + list(most, "0") + `}}`,
		"much more, in any number of it": strings.Repeat("a", 3*most),
	} {
		for _, reader := range []io.Reader{strings.NewReader(body), io.MultiReader(strings.NewReader(body))} {
			if code, text := send(t, server, http.MethodPost, path, "application/json", reader); code != http.StatusOK || text != body {
				t.Errorf("%s: answered with %d and %d bytes of %d", name, code, len(text), len(body))
			}
		}
	}
	// Of no resource.
	tooMany := list(maxEntries+1, "0")
	if code, text := send(t, server, http.MethodPost, "/elsewhere", "application/json", strings.NewReader(tooMany)); code != http.StatusOK || text != tooMany {
		t.Errorf("answered with %d and %d bytes", code, len(text))
	}
}
