package faults

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// gateway passes requests on to kube-apiserver with the identity of the controller
// manager, and lets a test look at them and decide about them.
type gateway struct {
	proxy *httputil.ReverseProxy
	// kubeconfig is the file that leads to the gateway.
	kubeconfig string

	mu   sync.Mutex
	rule rule
}

// rule does with a request what it likes: it passes it on, or not. A request that is not
// passed on ends with a broken connection, as with a server that dies.
type rule func(r *http.Request, passOn func())

// newGateway listens until the test ends.
func newGateway(t *testing.T) *gateway {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Components["copse-controller-manager"].Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{proxy: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		// Connections that break are what the tests are about.
		ErrorLog:     log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	g.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"gateway": {Server: server.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"gateway": {Cluster: "gateway"}},
		CurrentContext: "gateway",
	}, g.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// obey makes a rule the one for all requests from now on; nil passes everything on.
func (g *gateway) obey(r rule) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rule = r
}

var _ http.Handler = &gateway{}

// ServeHTTP applies the rule to a request.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	rule := g.rule
	g.mu.Unlock()
	if rule == nil {
		g.proxy.ServeHTTP(w, r)
		return
	}
	passed := false
	rule(r, func() {
		passed = true
		g.proxy.ServeHTTP(w, r)
	})
	if !passed {
		panic(http.ErrAbortHandler)
	}
}

// isWrite says that a request changes an object that gangs are made of. Events, Leases and
// questions of authorization are none of them.
func isWrite(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	for _, other := range []string{"/apis/events.k8s.io/", "/apis/coordination.k8s.io/", "/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"} {
		if strings.HasPrefix(r.URL.Path, other) {
			return false
		}
	}
	return !strings.HasSuffix(r.URL.Path, "/events")
}

// unanswered is a ResponseWriter for a request whose client never hears of its success.
func (g *gateway) unanswered(r *http.Request) {
	g.proxy.ServeHTTP(httptest.NewRecorder(), r)
}
