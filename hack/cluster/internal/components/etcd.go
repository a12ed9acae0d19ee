package components

import (
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// etcd describes a single member, for the cluster or for Copse.
func etcd(name string, c Config) Component {
	client, peer := c.http(name), c.extraHTTP(name)
	return Component{
		Path: c.program("etcd"),
		Args: []string{
			flag("name", name),
			flag("data-dir", c.Dir.Data(name)),
			flag("listen-client-urls", client),
			flag("advertise-client-urls", client),
			flag("listen-peer-urls", peer),
			flag("initial-advertise-peer-urls", peer),
			flag("initial-cluster", name+"="+peer),
			// A write that the kernel has taken survives the death of the
			// process, and this cluster is not meant to survive that of the
			// machine. So even kill -9 loses nothing, and no test waits for a disk.
			flag("unsafe-no-fsync", true),
			// kube-apiserver answers consistent reads from its cache when it
			// hears often enough how far the cache is.
			flag("watch-progress-notify-interval", "5s"),
			flag("quota-backend-bytes", 8<<30),
			// A lone member waits this long before it elects itself, in ms.
			flag("heartbeat-interval", 20),
			flag("election-timeout", 200),
			flag("log-level", etcdLogLevel(c.Verbosity)),
		},
		Info: state.Component{
			URL:     client,
			Health:  client + "/readyz",
			Metrics: client + "/metrics",
		},
	}
}

// etcdLogLevel is quiet at first: etcd logs at info what others do at 3.
func etcdLogLevel(verbosity int) string {
	switch {
	case verbosity < 3:
		return "warn"
	case verbosity < 6:
		return "info"
	default:
		return "debug"
	}
}
