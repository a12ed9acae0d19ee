package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestTheWatchTellsEveryChange(t *testing.T) {
	f := newFixture(t)
	f.follow()
	f.next("an answer", func(r reading) bool { return r == reading{} })
	f.set(shut)
	f.nextEntry(entry{})
	f.set(grovev1alpha1.StartGateClique{Name: "job-0-other", Open: true})
	f.next("no entry", func(r reading) bool { return r.hasGate && r.gate == nil })
	f.set(grovev1alpha1.StartGateClique{Name: "job-0-worker", Attempt: 1, Expired: true})
	f.nextEntry(entry{attempt: 1, expired: true})
	f.set(opened)
	f.nextEntry(entry{open: true})

	requests, _ := f.received()
	if len(requests) != 1 {
		t.Fatalf("%d requests for one watch", len(requests))
	}
	r := requests[0]
	if want := "/apis/grove.io/v1alpha1/namespaces/team/startgates"; r.Method != http.MethodGet || r.URL.Path != want {
		t.Errorf("it asks %s %s, want %s", r.Method, r.URL.Path, want)
	}
	query := r.URL.Query()
	lasting, err := time.ParseDuration(query.Get("timeoutSeconds") + "s")
	if err != nil || lasting < lifetime || lasting > 2*lifetime {
		t.Errorf("the watch is to last for %s, error %v", lasting, err)
	}
	query.Del("timeoutSeconds")
	if got, want := query.Encode(), "fieldSelector=metadata.name%3Djob-0&resourceVersion=0&watch=true"; got != want {
		t.Errorf("it asks with %s, want %s", got, want)
	}
	for header, want := range map[string]string{"Authorization": "Bearer first", "Accept": "application/json", "User-Agent": "start-gate/test", "Accept-Encoding": ""} {
		if got := r.Header.Get(header); got != want {
			t.Errorf("header %s: %q, want %q", header, got, want)
		}
	}
	if r.ProtoMajor != 2 {
		t.Errorf("it speaks %s", r.Proto)
	}
}

func TestFaultsAreWaitedOut(t *testing.T) {
	event := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, test := range map[string]struct {
		fault http.HandlerFunc
		want  string
	}{
		"unauthorized":       {status(401, "Unauthorized"), "the API server answers 401 Unauthorized: Unauthorized"},
		"forbidden":          {status(403, "startgates is forbidden"), "403 Forbidden: startgates is forbidden"},
		"resource not there": {status(404, "the server could not find the requested resource"), "404 Not Found: the server could not find"},
		"too many requests":  {status(429, "storage is initializing"), "429 Too Many Requests: storage is"},
		"internal":           {status(500, "boom"), "500 Internal Server Error: boom"},
		"shut":               {status(503, "service unavailable"), "503 Service Unavailable: service"},
		"no Status": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<html>")
		}, "502 Bad Gateway"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "302 Found"},
		"long answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write(make([]byte, 1<<20))
		}, "503 Service Unavailable"},
		"too old":              {event(`{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"message":"too old resource version"}}` + "\n"), "410 Gone: too old resource version"},
		"ends at once":         {event(""), "has ended the watch"},
		"half a line":          {event(`{"type":"ADDED","object":` + gateJSON[:60]), "the watch is broken: unexpected EOF"},
		"half a line of open":  {event(strings.TrimSuffix(`{"type":"ADDED","object":{"metadata":{"name":"job-0","namespace":"team"},"status":{"cliques":[{"name":"job-0-worker","open":true}]}}}`, "}")), "unexpected EOF"},
		"garbage":              {event("\x00\x01no JSON\n"), "the watch is broken: invalid character"},
		"a list":               {event("[1,2]\n"), "the watch is broken: json: cannot unmarshal array"},
		"a gate and no event":  {event(gateJSON + "\n"), `unknown type ""`},
		"status of wrong kind": {event(`{"type":"ADDED","object":{"metadata":{"name":"job-0","namespace":"team"},"status":[1]}}` + "\n"), "the status of the gate cannot be read"},
		"aborted":              {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ""},
		"aborted in the middle": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"type":`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "the watch is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.fail(test.fault)
			f.follow()
			f.nextFailure(test.want)
			f.set(opened)
			f.fail(nil)
			f.nextEntry(entry{open: true})
		})
	}
}

// An event may come in as many pieces as the network likes.
func TestASlowBodyIsRead(t *testing.T) {
	f := newFixture(t)
	f.fail(func(w http.ResponseWriter, r *http.Request) {
		flush := http.NewResponseController(w)
		for _, b := range []byte(`{"type":"ADDED","object":{"metadata":{"name":"job-0","namespace":"team"},"status":{"cliques":[{"name":"job-0-worker","open":true}]}}}`) {
			_, _ = w.Write([]byte{b})
			_ = flush.Flush()
		}
		<-r.Context().Done()
	})
	f.follow()
	f.nextEntry(entry{open: true})
}

// A gate with more than an etcd can hold is no gate. The waiter does not take in what would
// cost it its memory limit, and stays alive for the file.
func TestAHugeEventIsNotTakenIn(t *testing.T) {
	const start = `{"type":"ADDED","object":{"metadata":{"name":"`
	for name, test := range map[string]struct{ filling, want string }{
		"valid so far": {"x", fmt.Sprintf("an event of the watch is larger than %d bytes", maxEvent)},
		"not valid":    {"\x00", "the watch is broken: invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			filling := []byte(strings.Repeat(test.filling, 64<<10))
			sent := make(chan int, 1)
			f.fail(func(w http.ResponseWriter, _ *http.Request) {
				total, err := io.WriteString(w, start)
				for err == nil && total < 100*maxEvent {
					var n int
					n, err = w.Write(filling)
					total += n
				}
				select {
				case sent <- total:
				default: // one try tells enough
				}
			})
			f.follow()
			f.nextFailure(test.want)
			// What is in flight is bounded by the windows of HTTP/2.
			if total := <-sent; total > 8*maxEvent {
				t.Errorf("the server could send %d bytes", total)
			}
			f.fail(nil)
			f.set(opened)
			f.nextEntry(entry{open: true})
		})
	}
}

func TestManyEventsInOneWatch(t *testing.T) {
	f := newFixture(t)
	many := []byte(strings.Repeat(`{"type":"MODIFIED","object":`+gateJSON+"}\n", 2*maxEvent/len(gateJSON)))
	f.send(append(many, `{"type":"MODIFIED","object":{"metadata":{"name":"job-0","namespace":"team"},"status":{"cliques":[{"name":"job-0-worker","attempt":1,"open":true}]}}}`...))
	// The limit is for each event, not for all of them.
	f.follow()
	for open := false; !open; {
		r := f.next("an entry", func(r reading) bool { return r.hasGate || r.failure != nil })
		if r.failure != nil {
			t.Fatal(r.failure)
		}
		open = r.gate.open
	}
}

func TestAnotherGateLetsNobodyPass(t *testing.T) {
	f := newFixture(t)
	// A server, or something in between, that ignores the selector.
	f.send([]byte(strings.Replace(`{"type":"ADDED","object":{"metadata":{"name":"job-0","namespace":"team"},"status":{"cliques":[{"name":"job-0-worker","open":true}]}}}`, "job-0", "job-1", 1)))
	f.follow()
	f.next("an answer", func(r reading) bool { return r == reading{} })
	f.set(shut)
	if r := f.next("a gate", func(r reading) bool { return r.hasGate }); r.gate == nil || r.gate.open {
		t.Errorf("read %+v", r.gate)
	}
}

func TestTheTokenIsReadAnew(t *testing.T) {
	f := newFixture(t)
	f.fail(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer second" {
			status(401, "Unauthorized")(w, r)
			return
		}
		f.fail(nil)
		f.ServeHTTP(w, r)
	})
	f.set(opened)
	f.follow()
	f.nextFailure("401")
	f.write("token", "second\n")
	f.nextEntry(entry{open: true})
}

func TestAnotherAuthorityIsTakenUp(t *testing.T) {
	f := newFixture(t)
	f.set(shut)
	f.follow()
	f.nextEntry(entry{})
	// The certificate stays and the trust goes.
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	unrelated, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "unrelated"}, key)
	if err != nil {
		t.Fatal(err)
	}
	other := authority(unrelated)
	f.write("ca.crt", other)
	f.http.CloseClientConnections()
	f.nextFailure("unknown authority")
	f.write("ca.crt", "no certificate")
	f.nextFailure("holds no certificate")
	f.write("ca.crt", other+authority(f.http.Certificate()))
	f.nextEntry(entry{})
}

func TestMissingFilesAndAddressesAreWaitedFor(t *testing.T) {
	f := newFixture(t)
	f.set(shut)
	f.follow()
	f.nextEntry(entry{})
	for _, name := range []string{"token", "ca.crt"} {
		path := filepath.Join(f.folder, name)
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		f.http.CloseClientConnections()
		f.nextFailure("cannot be read: open " + path)
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
		f.nextEntry(entry{})
	}
	account := &serviceAccount{folder: f.folder, getenv: func(string) string { return "" }}
	if _, err := account.connect(); err == nil || !strings.Contains(err.Error(), "KUBERNETES_SERVICE_HOST") {
		t.Errorf("without an address: %v", err)
	}
	account.getenv = func(name string) string {
		return map[string]string{"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}[name]
	}
	if to, err := account.connect(); err != nil || to.server.String() != "https://[fd00::1]:443" {
		t.Errorf("server %s, error %v", to.server.String(), err)
	}
}

func TestAServerThatIsAwayIsWaitedFor(t *testing.T) {
	f := newFixture(t)
	f.set(shut)
	f.follow()
	f.nextEntry(entry{})
	// The listener stays closed until the port is taken again, by a server of the same certificate.
	address := f.http.Listener.Addr().String()
	f.http.CloseClientConnections()
	f.http.Close()
	f.nextFailure("connection refused")
	again := httptest.NewUnstartedServer(f.gateServer)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("the port is taken: %v", err)
	}
	_ = again.Listener.Close()
	again.Listener = listener
	again.EnableHTTP2 = true
	again.TLS = f.http.TLS.Clone()
	again.StartTLS()
	t.Cleanup(func() {
		again.CloseClientConnections()
		again.Close()
	})
	f.set(opened)
	f.nextEntry(entry{open: true})
}

func TestCause(t *testing.T) {
	refused := func(port string) error {
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", errors.New("connection reset by peer")), Addr: &net.UnixAddr{Name: port}}
	}
	for name, test := range map[string]struct {
		a, b error
		same bool
	}{
		"ports do not count":     {refused("1"), refused("2"), true},
		"messages do not count":  {newStatusError(503, "a"), newStatusError(503, "b"), true},
		"codes count":            {newStatusError(503, "a"), newStatusError(401, "a"), false},
		"wrapped":                {fmt.Errorf("x: %w", newStatusError(503, "a")), newStatusError(503, "a"), true},
		"status and network":     {newStatusError(503, "a"), refused("1"), false},
		"end and broken":         {errors.New("ended"), fmt.Errorf("broken: %w", io.ErrUnexpectedEOF), false},
		"broken in the same way": {fmt.Errorf("a: %w", io.ErrUnexpectedEOF), fmt.Errorf("b: %w", io.ErrUnexpectedEOF), true},
	} {
		t.Run(name, func(t *testing.T) {
			if (cause(test.a) == cause(test.b)) != test.same {
				t.Errorf("%q and %q", cause(test.a), cause(test.b))
			}
		})
	}
}
