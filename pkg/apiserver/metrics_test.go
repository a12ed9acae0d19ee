package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	basecompatibility "k8s.io/component-base/compatibility"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/version"
)

// oneClique is a storage that holds one object, whatever it is asked for.
type oneClique struct {
	storage.Interface
	object *grove.PodClique
}

func (oneClique) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (oneClique) ReadinessCheck() error { return nil }

func (s oneClique) GuaranteedUpdate(_ context.Context, _ string, out runtime.Object, _ bool, _ *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object) error {
	updated, _, err := update(s.object.DeepCopy(), storage.ResponseMeta{})
	if err != nil {
		return err
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(updated).Elem())
	return nil
}

// GetRESTOptions gives every kind the same storage.
func (s oneClique) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{},
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return s, func() {}, nil
		},
		ResourcePrefix: "prefix",
	}, nil
}

// forOneTest takes what is registered back at the end of a test.
type forOneTest struct {
	prometheus.Registerer
	t *testing.T
}

func (r forOneTest) Register(collector prometheus.Collector) error {
	r.t.Cleanup(func() { r.Unregister(collector) })
	return r.Registerer.Register(collector)
}

// newServer puts a server together that holds one object and asks nobody who is calling.
func newServer(t *testing.T, object *grove.PodClique) *genericapiserver.GenericAPIServer {
	t.Helper()
	scheme := NewScheme()
	config := NewConfig(scheme, serializer.NewCodecFactory(scheme))
	config.Generic.LoopbackClientConfig = &rest.Config{}
	config.Generic.EffectiveVersion = basecompatibility.NewEffectiveVersionFromString(version.APIServer, version.APIServer, version.APIServer)
	config.Generic.ExternalAddress = "localhost:443"
	config.Generic.RESTOptionsGetter = oneClique{object: object}
	config.Metrics = forOneTest{config.Metrics, t}
	server, err := config.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Destroy)
	server.PrepareRun().RunPostStartHooks(t.Context())
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return ask(server.Handler, http.MethodGet, "/apis", "").Code != http.StatusServiceUnavailable, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func ask(server http.Handler, method, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, request)
	return answer
}

// Whoever runs the server sees at /metrics that a controller tries what cannot happen.
func TestRefusedMovesOfAStatusAreAtMetrics(t *testing.T) {
	server := newServer(t, &grove.PodClique{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job-0-worker", UID: "uid", ResourceVersion: "7"},
		Spec:       grove.PodCliqueSpec{Replicas: 3, WorkloadType: grove.WorkloadTypeTraining},
		Status:     grove.PodCliqueStatus{CompletedIndexes: "0-1"},
	}).Handler
	moved := grovev1alpha1.PodClique{
		TypeMeta:   metav1.TypeMeta{APIVersion: "grove.io/v1alpha1", Kind: "PodClique"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job-0-worker", UID: "uid", ResourceVersion: "7"},
		Status:     grovev1alpha1.PodCliqueStatus{CompletedIndexes: "0"},
	}
	for text, want := range map[string]int{"0": http.StatusUnprocessableEntity, "0-2": http.StatusOK} {
		moved.Status.CompletedIndexes = text
		body, err := json.Marshal(moved)
		if err != nil {
			t.Fatal(err)
		}
		answer := ask(server, http.MethodPut, "/apis/grove.io/v1alpha1/namespaces/ns/podcliques/job-0-worker/status", string(body))
		if answer.Code != want {
			t.Errorf("completedIndexes %q: status %d, want %d: %s", text, answer.Code, want, answer.Body)
		}
	}
	want := fmt.Sprintf("copse_status_transitions_refused_total{field=%q,resource=%q} 1\n", "status.completedIndexes", "podcliques")
	if metrics := ask(server, http.MethodGet, "/metrics", "").Body.String(); !strings.Contains(metrics, want) {
		t.Errorf("%q is not among the metrics", want)
	}
}
