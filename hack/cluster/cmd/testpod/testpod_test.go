package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSteps(t *testing.T) {
	dir := t.TempDir()
	there, gone, once := filepath.Join(dir, "there"), filepath.Join(dir, "gone"), filepath.Join(dir, "once")
	if err := os.WriteFile(there, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args string
		env  string
		code int
		out  string
	}{
		{args: "", code: 0},
		{args: "exit=3", code: 3},
		{args: "sleep=1ms exit=0 exit=1", code: 0},
		{args: "when=ATTEMPT:0 exit=3 exit=4", env: "ATTEMPT=0", code: 3},
		{args: "when=ATTEMPT:0 exit=3 exit=4", env: "ATTEMPT=1", code: 4},
		{args: "when=ATTEMPT:0 when=INDEX:1 exit=3 exit=4", env: "ATTEMPT=0 INDEX=1", code: 3},
		{args: "when=ATTEMPT:0 when=INDEX:1 exit=3 exit=4", env: "ATTEMPT=0 INDEX=0", code: 4},
		{args: "when=ATTEMPT:0 when=INDEX:1 exit=3 exit=4", env: "ATTEMPT=1 INDEX=1", code: 4},
		{args: "when=ATTEMPT:0 exit=3", env: "OTHER=0", code: 1, out: "when=ATTEMPT:0: ATTEMPT is not in the environment\n"},
		{args: "exit-once=" + there + ":5 exit=4", code: 4},
		{args: "exit-once=" + once + ":5 exit=4", code: 5},
		{args: "exit-once=" + once + ":5 exit=4", code: 4},
		{args: "env", env: "A=1", code: 0, out: "A=1\n"},
		{args: "await=" + there + " exit=4", code: 4},
		{args: "fail-if=" + there, code: 1},
		{args: "fail-if=" + gone + " exit=4", code: 4},
		{args: "fail-unless=" + gone, code: 1},
		{args: "fail-unless=" + there + " exit=4", code: 4},
		{args: "print=" + there, code: 0, out: "text"},
		{args: "remove=" + gone, code: 0},
		{args: "touch=" + gone + " fail-unless=" + gone + " remove=" + gone + " fail-if=" + gone + " exit=4", code: 4},
		{args: "touch=" + dir, code: 1, out: "touch=" + dir + ": open " + dir + ": is a directory\n"},
		{args: "allocate=1 exit=4", code: 4},
	} {
		var out bytes.Buffer
		m := newMachine(&out, strings.Fields(tc.env), "")
		if code := run(t.Context(), steps(t, tc.args), m); code != tc.code || out.String() != tc.out {
			t.Errorf("%q ends with %d, want %d, and says %q, want %q", tc.args, code, tc.code, out.String(), tc.out)
		}
	}
}

func TestMistakesAreFoundBeforeTheFirstStep(t *testing.T) {
	for _, arg := range []string{
		"", "nothing", "nothing=1", "exit", "exit=", "exit=-1", "exit=256", "exit=x", "sleep=5", "env=1", "wait-term=0",
		"when=A", "when=:1", "exit-once=/a", "exit-once=:1", "exit-once=/a:x", "on-term=x", "allocate=x", "listen=70000",
	} {
		if _, err := parse([]string{"touch=/never", arg}); err == nil {
			t.Errorf("%q is a step", arg)
		}
	}
}

func TestTerm(t *testing.T) {
	for _, tc := range []struct {
		args string
		code int
	}{
		{"sleep=1h", 143},
		{"await=/does/not/exist", 143},
		{"on-term=0 sleep=1h", 0},
		{"wait-term", 0},
		{"wait-term exit=7", 7},
		// What comes after it is not disturbed.
		{"wait-term sleep=1ms exit=7", 7},
	} {
		ctx, term := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		all := steps(t, tc.args)
		go func() { ended <- run(ctx, all, newMachine(&bytes.Buffer{}, nil, "")) }()
		select {
		case code := <-ended:
			t.Errorf("%q ends with %d by itself", tc.args, code)
		case <-time.After(20 * time.Millisecond):
		}
		term()
		if code := <-ended; code != tc.code {
			t.Errorf("%q ends with %d, want %d", tc.args, code, tc.code)
		}
	}
}

func TestGet(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != "/readyz" {
			http.Error(w, "no", http.StatusForbidden)
		}
	}))
	defer server.Close()
	account := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, text := range map[string][]byte{"token": []byte("secret\n"), "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(account, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	m := newMachine(&out, []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}, account)
	if code := run(t.Context(), steps(t, "get=/readyz exit=4"), m); code != 4 {
		t.Errorf("get ends with %d: %s", code, &out)
	}
	if code := run(t.Context(), steps(t, "get=/other exit=4"), m); code != 1 || !strings.Contains(out.String(), "403") {
		t.Errorf("a refused get ends with %d: %s", code, &out)
	}
	m.account = t.TempDir()
	if code := run(t.Context(), steps(t, "get=/readyz exit=4"), m); code != 1 {
		t.Errorf("get without credentials ends with %d", code)
	}
}

func TestListen(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(probe.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), steps(t, "listen="+port), newMachine(&bytes.Buffer{}, nil, "")); code != 0 {
		t.Fatalf("listen ends with %d", code)
	}
	resp, err := http.Get("http://127.0.0.1:" + port + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the answer is %s", resp.Status)
	}
}

func steps(t *testing.T, args string) []step {
	t.Helper()
	all, err := parse(strings.Fields(args))
	if err != nil {
		t.Fatal(err)
	}
	return all
}
