package app

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// These tests run in a bubble of time: minutes pass as soon as everybody waits. Sockets
// would let time stand still, so HTTP goes through pipes.

// network is a listener and the connections to it.
type network struct {
	connections chan net.Conn
	closed      sync.Once

	mu   sync.Mutex
	down bool
	open []*serverEnd
}

var errRefused = errors.New("connection refused")

func newNetwork() *network {
	return &network{connections: make(chan net.Conn)}
}

func (n *network) Accept() (net.Conn, error) {
	conn, ok := <-n.connections
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (n *network) Close() error {
	n.closed.Do(func() { close(n.connections) })
	return nil
}

func (n *network) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, errRefused
	}
	client, server := net.Pipe()
	end := &serverEnd{Conn: server}
	n.open = append(n.open, end)
	n.connections <- end
	return client, nil
}

// serverEnd is a connection as the server has it. Once silent, nothing that the server
// writes arrives, though nobody has closed anything.
type serverEnd struct {
	net.Conn
	silent atomic.Bool
}

func (e *serverEnd) Write(p []byte) (int, error) {
	if e.silent.Load() {
		return len(p), nil
	}
	return e.Conn.Write(p)
}

// silence makes all connections silent; new ones are not.
func (n *network) silence() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, end := range n.open {
		end.silent.Store(true)
	}
}

// cut breaks all connections and refuses new ones, until mend.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	for _, end := range n.open {
		_ = end.Close()
	}
	n.open = nil
}

func (n *network) mend() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
}

// bubble is a gate server in a bubble.
type bubble struct {
	*gateServer
	*network
	t      *testing.T
	server *httptest.Server
	file   string
}

func inBubble(t *testing.T, test func(*testing.T, *bubble)) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{gateServer: newGateServer(t), network: newNetwork(), t: t, file: filepath.Join(folder, "started")}
		b.server = httptest.NewUnstartedServer(b.gateServer)
		_ = b.server.Listener.Close()
		b.server.Listener = b.network
		b.server.EnableHTTP2 = true
		b.server.Config.ErrorLog = log.New(io.Discard, "", 0)
		b.server.StartTLS()
		t.Cleanup(func() {
			b.cut()
			b.server.Close()
		})
		test(t, b)
	})
}

// follower returns a follower of team/job-0 for job-0-worker, whose client differs from
// that of a pod by what it dials alone.
func (b *bubble) follower() *follower {
	pool := x509.NewCertPool()
	pool.AddCert(b.server.Certificate())
	client := newClient(pool)
	client.Transport.(*http.Transport).DialContext = b.dial
	return &follower{
		namespace: "team", gate: "job-0", podClique: "job-0-worker", backoff: newBackoff,
		connect: func() (session, error) {
			return session{client: client, server: url.URL{Scheme: "https", Host: "example.com"}}, nil
		},
	}
}
