package app

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// soon bounds what a test waits for; it is reached only when the test fails.
const soon = 20 * time.Second

// fixture is a follower of team/job-0 for job-0-worker, and the server that it asks, over
// TLS and with the files that a pod has.
type fixture struct {
	*gateServer
	t        *testing.T
	http     *httptest.Server
	folder   string
	env      map[string]string
	readings chan reading
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{gateServer: newGateServer(t), t: t, folder: t.TempDir(), readings: make(chan reading, 1000)}
	f.serve()
	f.write("token", "first\n")
	return f
}

// follow lets the follower begin, once the server is as a test wants it.
func (f *fixture) follow() {
	ctx, cancel := context.WithCancel(f.t.Context())
	account := &serviceAccount{folder: f.folder, getenv: func(name string) string { return f.env[name] }}
	gate := &follower{
		namespace: "team", gate: "job-0", podClique: "job-0-worker", userAgent: "start-gate/test",
		connect: account.connect,
		backoff: func() wait.Backoff { return wait.Backoff{Duration: time.Millisecond} },
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		gate.follow(ctx, func(r reading) { f.readings <- r })
	}()
	f.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// serve starts the server and leaves where it is.
func (f *fixture) serve() {
	f.t.Helper()
	f.http = httptest.NewUnstartedServer(f.gateServer)
	f.http.EnableHTTP2 = true
	f.http.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.http.StartTLS()
	server := f.http
	f.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	host, port, err := net.SplitHostPort(f.http.Listener.Addr().String())
	if err != nil {
		f.t.Fatal(err)
	}
	f.env = map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
	f.write("ca.crt", authority(f.http.Certificate()))
}

func authority(certificate *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
}

// write replaces a file of the service account in one step.
func (f *fixture) write(name, content string) {
	f.t.Helper()
	path := filepath.Join(f.folder, name)
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		f.t.Fatal(err)
	}
}

// next waits for a reading that matches and returns it.
func (f *fixture) next(what string, matches func(reading) bool) reading {
	f.t.Helper()
	deadline := time.After(soon)
	var seen []string
	for {
		select {
		case r := <-f.readings:
			if matches(r) {
				return r
			}
			seen = append(seen, fmt.Sprintf("%+v", r))
		case <-deadline:
			if len(seen) > 5 {
				seen = seen[len(seen)-5:]
			}
			f.t.Fatalf("no reading with %s; the last were %s", what, strings.Join(seen, "; "))
		}
	}
}

func (f *fixture) nextEntry(want entry) {
	f.t.Helper()
	f.next(fmt.Sprintf("%+v", want), func(r reading) bool { return r.hasGate && r.gate != nil && *r.gate == want })
}

func (f *fixture) nextFailure(text string) {
	f.t.Helper()
	f.next("failure "+text, func(r reading) bool { return r.failure != nil && strings.Contains(r.failure.Error(), text) })
}

var (
	shut   = grovev1alpha1.StartGateClique{Name: "job-0-worker"}
	opened = grovev1alpha1.StartGateClique{Name: "job-0-worker", Open: true}
)
