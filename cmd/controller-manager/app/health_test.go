package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// A kubelet restarts what does not answer: a program that waits for the cluster would go into
// back-off, and come too late when the cluster is there.
func TestItIsHealthyWhileItWaitsForTheCluster(t *testing.T) {
	options := NewOptions()
	options.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	options.HealthProbeBindAddress, options.MetricsBindAddress = freeAddress(t), noAddress
	nobody := freeAddress(t)
	config := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://%s'}}], contexts: [{name: c, context: {cluster: c}}]}", nobody)
	if err := os.WriteFile(options.Kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, options) }()
	answer := func(path string) (int, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+options.HealthProbeBindAddress+path, nil)
		if err != nil {
			return 0, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		code, err := answer("/healthz")
		return err == nil && code == http.StatusOK, nil
	})
	expect(t, "error of waiting for its health", nil, err)
	for _, path := range []string{"/readyz", "/readyz/webhook"} {
		code, _ := answer(path)
		expect(t, "it is ready at "+path, false, code == http.StatusOK)
	}
	cancel()
	expect(t, "how it ended", nil, <-ended)
}

// The manager takes the address over.
func TestTheAddressOfItsHealthIsFreeOnceTheClusterAnswers(t *testing.T) {
	address := freeAddress(t)
	stop, err := serveHealth(t.Context(), address)
	expect(t, "error", nil, err)
	_, err = serveHealth(t.Context(), address)
	expect(t, "the address is taken", true, err != nil)
	stop()
	stop, err = serveHealth(t.Context(), address)
	expect(t, "error once it is free", nil, err)
	stop()
	for _, none := range []string{"", noAddress} {
		stop, err = serveHealth(t.Context(), none)
		expect(t, "error without an address", nil, err)
		stop()
	}
}

// freeAddress is one at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
