// Package embeddedetcd runs a single-member etcd inside the API server, so that one
// binary is enough to start with. It is for trying Copse out and for single-node
// clusters; a cluster that others rely on has an etcd of its own.
package embeddedetcd

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// startTimeout bounds how long the member may take to elect itself.
const startTimeout = 60 * time.Second

// Etcd is a running member.
type Etcd struct {
	server   *embed.Etcd
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
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data directory: %w", err)
	}
	socket := filepath.Join(dir, "client.sock")
	// A socket that a killed server left behind cannot be listened on.
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
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
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	etcd := &Etcd{server: server, endpoint: client.String()}
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

// Endpoint is the address for clients.
func (e *Etcd) Endpoint() string {
	return e.endpoint
}

// Stop ends the member and waits until it has closed its files.
func (e *Etcd) Stop() {
	e.server.Close()
}
