package app

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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

// waiting is a waiter that runs.
type waiting struct {
	cancel context.CancelFunc
	ended  chan struct{}
	code   int
	reason string
	after  time.Duration

	mu  sync.Mutex
	log bytes.Buffer
}

func (w *waiting) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(text)
}

func (w *waiting) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// start starts a waiter of team/job-0 for job-0-worker.
func (b *bubble) start(attempt int32, timeout time.Duration) *waiting {
	ctx, cancel := context.WithCancel(b.t.Context())
	started := &waiting{cancel: cancel, ended: make(chan struct{})}
	options := &Options{Namespace: "team", Gate: "job-0", PodClique: "job-0-worker", Attempt: attempt, Timeout: timeout, File: b.file}
	w := newWaiter(options, slog.New(slog.NewTextHandler(started, nil)))
	w.follow = b.follower().follow
	began := time.Now()
	go func() {
		defer close(started.ended)
		started.code, started.reason = w.wait(ctx)
		started.after = time.Since(began)
		cancel()
	}()
	return started
}

// isWaiting fails the test if the waiter has ended.
func (b *bubble) isWaiting(w *waiting) {
	b.t.Helper()
	synctest.Wait()
	select {
	case <-w.ended:
		b.t.Fatalf("it has ended with %d after %s: %s\n%s", w.code, w.after, w.reason, w.logged())
	default:
	}
}

// ends waits for the end.
func (b *bubble) ends(w *waiting, code int, within time.Duration, reason string) {
	b.t.Helper()
	began := time.Now()
	<-w.ended
	if took := time.Since(began); took > within {
		b.t.Errorf("it ended after %s, not within %s", took, within)
	}
	if w.code != code || !strings.Contains(w.reason, reason) || (code == 0) != (w.reason == "") {
		b.t.Errorf("it ended with %d: %q\n%s", w.code, w.reason, w.logged())
	}
}

// pass lets time pass.
func (b *bubble) pass(d time.Duration) { <-time.After(d) }

// lines counts log lines with a text.
func lines(log, text string) int {
	count := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			count++
		}
	}
	return count
}
