package storageguard

import (
	"context"
	"fmt"
	"path"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

const (
	// etcdTimeout bounds one request to etcd: requests to the server wait for it.
	etcdTimeout = 3 * time.Second

	// Like the storage's own client: a server that went away is noticed.
	keepAliveTime    = 30 * time.Second
	keepAliveTimeout = 10 * time.Second
)

// identity is the key of the storage's identity in etcd. It is beside the objects, below
// the prefix: whoever backs them up backs it up.
type identity struct {
	client *clientv3.Client
	key    string
}

// newIdentity connects to the etcd of a storage. It does not wait for it.
func newIdentity(config storagebackend.Config) (*identity, error) {
	t := config.Transport
	clientConfig := clientv3.Config{Endpoints: t.ServerList, DialKeepAliveTime: keepAliveTime, DialKeepAliveTimeout: keepAliveTimeout}
	// The client takes any TLS configuration as a wish for TLS.
	if t.CertFile != "" || t.KeyFile != "" || t.TrustedCAFile != "" {
		info := transport.TLSInfo{CertFile: t.CertFile, KeyFile: t.KeyFile, TrustedCAFile: t.TrustedCAFile}
		var err error
		if clientConfig.TLS, err = info.ClientConfig(); err != nil {
			return nil, fmt.Errorf("certificates for etcd: %w", err)
		}
	}
	client, err := clientv3.New(clientConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return &identity{client: client, key: path.Join("/", config.Prefix, "storage-identity")}, nil
}

// read is one consistent read: it asks a majority.
func (i *identity) read(ctx context.Context) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	response, err := i.client.Get(ctx, i.key)
	if err != nil {
		return Reading{}, fmt.Errorf("read the identity in etcd: %w", err)
	}
	reading := Reading{Revision: response.Header.Revision, Cluster: response.Header.ClusterId, Term: response.Header.RaftTerm}
	if len(response.Kvs) > 0 {
		reading.ID, reading.Created = string(response.Kvs[0].Value), response.Kvs[0].CreateRevision
	}
	return reading, nil
}

// bootstrap gives etcd an identity if it has none, and reads what it has then: of several
// servers that start together one wins, and the others find its identity.
func (i *identity) bootstrap(ctx context.Context, id string) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	_, err := i.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(i.key), "=", 0)).
		Then(clientv3.OpPut(i.key, id)).
		Commit()
	if err != nil {
		return Reading{}, fmt.Errorf("write the identity to etcd: %w", err)
	}
	return i.read(ctx)
}
