package storageguard

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// serve runs a server whose requests go through the guard's handler.
func serve(t *testing.T, g *Guard, next http.HandlerFunc) *httptest.Server {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis"), GrouplessAPIPrefixes: sets.NewString()}
	server := httptest.NewServer(filters.WithRequestInfo(g.Handler(next, serializer.NewCodecFactory(scheme)), resolver))
	t.Cleanup(server.Close)
	return server
}

// answer is what a client sees.
type answer struct {
	code   int
	header http.Header
	body   string
}

func get(t *testing.T, server *httptest.Server, path string) answer {
	t.Helper()
	response, err := server.Client().Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{code: response.StatusCode, header: response.Header, body: string(body)}
}

const (
	onePath   = "/apis/grove.io/v1alpha1/namespaces/team/podcliques/a"
	listPath  = "/apis/grove.io/v1alpha1/podcliques"
	watchPath = "/apis/grove.io/v1alpha1/podcliques?watch=true"
)

// isRefused expects the answer of a shut server, whole and well formed.
func isRefused(t *testing.T, what string, got answer, reason Reason) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal([]byte(got.body), &status); err != nil {
		t.Fatalf("%s: %v in %q", what, err, got.body)
	}
	if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" || got.header.Get("Content-Encoding") != "" {
		t.Errorf("%s: answered with %d, headers %v", what, got.code, got.header)
	}
	if !apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: status}, metav1.CauseType(reason)) || status.Reason != metav1.StatusReasonServiceUnavailable || status.Message == "" {
		t.Errorf("%s: status %+v", what, status)
	}
}

func TestAShutServerRefusesEveryRequestForAResource(t *testing.T) {
	w := newWorld(t)
	g := w.server(startEtcd(t)).Guard
	server := serve(t, g, func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, "answered") })
	for _, path := range []string{onePath, onePath + "/status", listPath, watchPath} {
		isRefused(t, path, get(t, server, path), ReasonUnverified)
	}
	// Discovery, by which kubectl gets to the answer above.
	for _, path := range []string{"/apis/grove.io/v1alpha1", "/apis", "/readyz", "/openapi/v3"} {
		if got := get(t, server, path); got.code != http.StatusOK || got.body != "answered" {
			t.Errorf("%s is answered with %d: %s", path, got.code, got.body)
		}
	}
	g.look(t.Context())
	if got := get(t, server, onePath); got.code != http.StatusOK || got.body != "answered" {
		t.Errorf("an open server answers %d: %s", got.code, got.body)
	}
}

// The server is open, and etcd is replaced before the next answer.
func TestNoAnswerOfAWrongEtcdLeavesTheServer(t *testing.T) {
	for name, tc := range map[string]struct {
		path    string
		answer  func(w http.ResponseWriter, req *http.Request) error
		refused bool
	}{
		"not found": {onePath, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", "7")
			w.WriteHeader(http.StatusNotFound)
			_, err := w.Write([]byte("no such"))
			return err
		}, true},
		"a list": {listPath, func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write([]byte("items"))
			return err
		}, true},
		"a watch": {watchPath, func(w http.ResponseWriter, req *http.Request) error {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-req.Context().Done()
			_, err := w.Write([]byte("event"))
			return err
		}, true},
		"an object": {onePath, func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write([]byte("object"))
			return err
		}, false},
		"a refusal": {listPath, func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusForbidden)
			return nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			right, wrong, world := startEtcd(t), startEtcd(t), newWorld(t)
			g := world.server(right)
			g.look(t.Context())
			ended := make(chan error, 1)
			server := serve(t, g.Guard, func(w http.ResponseWriter, req *http.Request) {
				g.mu.Lock()
				g.etcd = wrong
				g.mu.Unlock()
				ended <- tc.answer(w, req)
			})
			got := get(t, server, tc.path)
			err := <-ended
			if err != nil {
				t.Error(err)
			}
			if tc.refused {
				isRefused(t, name, got, ReasonNoIdentity)
			} else if got.code == http.StatusServiceUnavailable {
				t.Errorf("answered with %d %q", got.code, got.body)
			}
		})
	}
}

func TestAWatchOfTheRightEtcdStreams(t *testing.T) {
	g := newWorld(t).server(startEtcd(t))
	g.look(t.Context())
	sent := make(chan struct{})
	server := serve(t, g.Guard, func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-sent
		fmt.Fprintln(w, "event")
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	})
	client := server.Client()
	client.Timeout = 30 * time.Second
	response, err := client.Get(server.URL + watchPath)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	close(sent)
	text, err := bufio.NewReader(response.Body).ReadString('\n')
	if err != nil || text != "event\n" {
		t.Errorf("received %q, error %v", text, err)
	}
}

// A client that knew a newer etcd asks for a revision that the accepted one has not
// reached: without an answer it would hear nothing for as long.
func TestAWatchFromARevisionThatIsNotThereYetIsExpired(t *testing.T) {
	g := newWorld(t).server(startEtcd(t))
	g.look(t.Context())
	server := serve(t, g.Guard, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "event") })
	current := g.revision.Load()
	if current == 0 {
		t.Fatal("the revision is not known")
	}
	for from, want := range map[string]int{
		"":                                 http.StatusOK,
		"0":                                http.StatusOK,
		strconv.FormatInt(current, 10):     http.StatusOK,
		strconv.FormatInt(current+1e6, 10): http.StatusGone,
	} {
		got := get(t, server, watchPath+"&resourceVersion="+from)
		if got.code != want {
			t.Errorf("a watch from %q at revision %d is answered with %d: %s", from, current, got.code, got.body)
		}
	}
	// What was written a moment ago is there: the look is made after the question.
	written, err := g.etcd.client.Put(t.Context(), "/elsewhere", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, server, watchPath+"&resourceVersion="+strconv.FormatInt(written.Header.Revision, 10)); got.code != http.StatusOK {
		t.Errorf("a watch from the newest revision is answered with %d: %s", got.code, got.body)
	}
	// A list from there is the storage's to refuse.
	if got := get(t, server, listPath+"?resourceVersion="+strconv.FormatInt(current+1e6, 10)); got.code != http.StatusOK {
		t.Errorf("a list is answered with %d: %s", got.code, got.body)
	}
}
