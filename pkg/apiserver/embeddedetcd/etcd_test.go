package embeddedetcd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// timeout bounds requests to a member in the same process, on a busy machine.
const timeout = 30 * time.Second

func start(t *testing.T, dir string) *Etcd {
	t.Helper()
	etcd, err := Start(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return etcd
}

func connect(t *testing.T, etcd *Etcd) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.Endpoint()}, DialTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func put(t *testing.T, client *clientv3.Client, key, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if _, err := client.Put(ctx, key, value); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, client *clientv3.Client, key string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	response, err := client.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) != 1 {
		return ""
	}
	return string(response.Kvs[0].Value)
}

// dirFor returns a directory whose socket has a path of the given length.
func dirFor(t *testing.T, length int) string {
	t.Helper()
	// t.TempDir is long already.
	base, err := os.MkdirTemp("", "e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	missing := length - len(filepath.Join(base, "x", "client.sock")) + 1
	if missing < 1 {
		t.Skipf("the temporary directory %s is too long for this test", base)
	}
	return filepath.Join(base, strings.Repeat("x", missing))
}

const longestSocket = len(syscall.RawSockaddrUnix{}.Path) - 1

func TestKeysSurviveARestart(t *testing.T) {
	dir := dirFor(t, longestSocket)
	etcd := start(t, dir)
	put(t, connect(t, etcd), "key", "value")
	etcd.Stop()

	again := start(t, dir)
	defer again.Stop()
	if got := get(t, connect(t, again), "key"); got != "value" {
		t.Errorf("after a restart the key holds %q", got)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		t.Errorf("the data directory has mode %o", mode)
	}
}

func TestPathThatIsTooLongForASocketIsNamed(t *testing.T) {
	dir := dirFor(t, longestSocket+1)
	etcd, err := Start(context.Background(), dir)
	if err == nil {
		etcd.Stop()
		t.Fatal("the member started")
	}
	if !strings.Contains(err.Error(), "too long") || !strings.Contains(err.Error(), dir) {
		t.Errorf("the error does not say what is wrong: %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory was made all the same: %v", err)
	}
}

// A second server once took the socket away from the first, and then hung.
func TestSecondServerLeavesTheFirstAlone(t *testing.T) {
	dir := dirFor(t, longestSocket)
	first := start(t, dir)
	refused := make(chan error, 1)
	go func() {
		_, err := Start(context.Background(), dir)
		refused <- err
	}()
	select {
	case err := <-refused:
		if !errors.Is(err, syscall.EWOULDBLOCK) || !strings.Contains(err.Error(), "in use") {
			t.Errorf("the error does not say what is wrong: %v", err)
		}
	case <-time.After(timeout):
		t.Fatal("the second server hangs")
	}
	put(t, connect(t, first), "key", "value")
	first.Stop()

	third := start(t, dir)
	defer third.Stop()
	if got := get(t, connect(t, third), "key"); got != "value" {
		t.Errorf("the key holds %q", got)
	}
}

func TestSocketOfAKilledServerIsReplaced(t *testing.T) {
	dir := dirFor(t, longestSocket)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, "client.sock")})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	etcd := start(t, dir)
	defer etcd.Stop()
	put(t, connect(t, etcd), "key", "value")
}

func TestStartEndsWithItsContext(t *testing.T) {
	dir := dirFor(t, longestSocket)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	// The member may win the race with the context, but never holds on to the directory.
	if etcd, err := Start(ctx, dir); err == nil {
		etcd.Stop()
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	start(t, dir).Stop()
}
