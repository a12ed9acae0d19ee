// Package embeddedetcd runs a single-member etcd inside the API server, so that one
// binary is enough to start with. It is for trying Copse out and for single-node
// clusters; a cluster that others rely on has an etcd of its own.
package embeddedetcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// startTimeout bounds how long the member may take to elect itself.
const startTimeout = 60 * time.Second

// Etcd is a running member.
type Etcd struct {
	server   *embed.Etcd
	lock     *os.File
	endpoint string
}

// Start runs a member with its data in dir, which is created with access for the
// owner alone. Clients reach it by a unix socket in dir, so nothing of it can be
// reached over the network.
func Start(ctx context.Context, dir string) (*Etcd, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "client.sock")
	// The kernel keeps the path of a socket in an array; all that it says of a longer
	// path is "invalid argument".
	if limit := len(syscall.RawSockaddrUnix{}.Path) - 1; len(socket) > limit {
		return nil, fmt.Errorf("the path of the data directory is too long: the socket %s has %d characters of at most %d", socket, len(socket), limit)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data directory: %w", err)
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	client := url.URL{Scheme: "unix", Path: socket}
	// A single member has no peers; it only has to have an address for them.
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}

	config := embed.NewConfig()
	config.Name = "copse"
	config.Dir = filepath.Join(dir, "etcd")
	config.LogLevel = "warn"
	config.ListenClientUrls = []url.URL{client}
	config.AdvertiseClientUrls = []url.URL{client}
	config.ListenPeerUrls = []url.URL{peer}
	config.AdvertisePeerUrls = []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start etcd: %w", err), lock.Close())
	}
	etcd := &Etcd{server: server, lock: lock, endpoint: client.String()}
	select {
	case <-server.Server.ReadyNotify():
		return etcd, nil
	case err := <-server.Err():
		etcd.Stop()
		return nil, fmt.Errorf("start etcd: %w", err)
	case <-time.After(startTimeout):
		etcd.Stop()
		return nil, fmt.Errorf("etcd is not ready after %s", startTimeout)
	case <-ctx.Done():
		etcd.Stop()
		return nil, ctx.Err()
	}
}

// lockDirectory keeps a second server off the directory: etcd would take the first one's
// socket away, as one that a killed server left behind, and then wait, deaf to every
// signal, for the database to become free. The kernel lets go of the lock when the
// process ends, however it ends.
func lockDirectory(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("the data directory %s is in use by another server: %w", dir, err), lock.Close())
	}
	return lock, nil
}

// Endpoint is the address for clients.
func (e *Etcd) Endpoint() string {
	return e.endpoint
}

// Stop ends the member and waits until it has closed its files.
func (e *Etcd) Stop() {
	e.server.Close()
	// Nothing was written to the file: closing it cannot lose anything.
	_ = e.lock.Close()
}
