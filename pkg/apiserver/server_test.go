package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"

	"github.com/copse-dev/copse/pkg/apiserver/embeddedetcd"
	copseclient "github.com/copse-dev/copse/pkg/generated/clientset/versioned"
	"github.com/copse-dev/copse/pkg/version"
)

// served is a server with an etcd of its own that listens, and asks nobody who is calling.
type served struct {
	config *rest.Config
	copse  copseclient.Interface
}

// serve starts a server. It ends with the test.
func serve(t *testing.T, chain admission.Interface) served {
	t.Helper()
	// t.TempDir is too long for the path of a socket.
	dir, err := os.MkdirTemp("", "e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	etcd, err := embeddedetcd.Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Stop)

	scheme := NewScheme()
	codecs := serializer.NewCodecFactory(scheme)
	config := NewConfig(scheme, codecs)
	config.Generic.LoopbackClientConfig = &rest.Config{}
	config.Generic.EffectiveVersion = basecompatibility.NewEffectiveVersionFromString(version.APIServer, version.APIServer, version.APIServer)
	config.Generic.ExternalAddress = "localhost:443"
	config.Generic.AdmissionControl = chain
	config.Metrics = forOneTest{config.Metrics, t}
	storage := storagebackend.NewDefaultConfig("/registry/grove.io", StorageCodec(codecs))
	storage.EncodeVersioner = StorageVersioner()
	storage.Transport.ServerList = []string{etcd.Endpoint()}
	if err := genericoptions.NewEtcdOptions(storage).ApplyTo(&config.Generic.Config); err != nil {
		t.Fatal(err)
	}
	server, err := config.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Destroy)
	server.PrepareRun().RunPostStartHooks(t.Context())
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return ask(server.Handler, http.MethodGet, "/apis/grove.io/v1alpha1/podcliquesets", "").Code == http.StatusOK, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(server.Handler)
	t.Cleanup(listener.Close)
	client := &rest.Config{Host: listener.URL, QPS: -1}
	copse, err := copseclient.NewForConfig(client)
	if err != nil {
		t.Fatal(err)
	}
	return served{config: client, copse: copse}
}

func encode(t *testing.T, obj any) []byte {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
