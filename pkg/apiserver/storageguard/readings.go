package storageguard

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// compare reads etcd and what is recorded of it. Between the two another server may have
// given etcd its identity, or seen a later revision, and recorded that: then etcd is read
// again. One that is truly behind its record still is.
func (g *Guard) compare(ctx context.Context, lifetime time.Duration) (Reading, error) {
	reading, err := g.readEtcd(ctx)
	if err != nil {
		return Reading{}, err
	}
	if err := g.readRecord(ctx, lifetime); err != nil {
		return Reading{}, err
	}
	if (reading.ID == "" && g.record.ID != "") || reading.Revision < g.record.Revision {
		return g.readEtcd(ctx)
	}
	return reading, nil
}

func (g *Guard) readEtcd(ctx context.Context) (Reading, error) {
	reading, err := g.etcd.read(ctx)
	if err == nil {
		g.follow(reading)
	}
	return reading, err
}

// follow notices when one reading cannot be of the same history as the one before. The
// server's watch caches may then hold what is not in etcd, or lack what is, for ever.
func (g *Guard) follow(reading Reading) {
	if g.last != nil && !reading.follows(*g.last) {
		g.changed = true
	}
	g.last = &reading
	g.unnamed = g.unnamed || reading.ID == ""
}

// readRecord reads the ConfigMap unless that was done just now. A server that was open
// goes on with what it read last (D25).
func (g *Guard) readRecord(ctx context.Context, lifetime time.Duration) error {
	now := g.clock.Now()
	if !g.readAt.IsZero() && now.Sub(g.readAt) < lifetime {
		return nil
	}
	configMap, record, err := g.cluster.readRecord(ctx)
	switch {
	case err == nil:
		g.read, g.record = configMap, record
	case !g.memory.Verified:
		return err
	default:
		klog.V(2).InfoS("The storage guard goes on with what it last read", "err", err)
	}
	g.readAt = now
	return nil
}
