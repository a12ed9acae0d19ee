package components

import (
	"fmt"

	"github.com/copse-dev/copse/hack/cluster/internal/certs"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// copseAPIServer acts under the role that the manifests give it, never as an
// administrator.
func copseAPIServer(c Config) Component {
	keys := c.Dir.Certs()
	config := c.Dir.KubeconfigOf(CopseAPIServer)
	url := c.https(CopseAPIServer)
	return Component{
		Path: c.program(CopseAPIServer),
		Args: []string{
			flag("secure-port", c.Port[CopseAPIServer]),
			flag("bind-address", "127.0.0.1"),
			flag("tls-cert-file", keys.Cert(certs.Copse)),
			flag("tls-private-key-file", keys.Key(certs.Copse)),
			flag("kubeconfig", config),
			flag("authentication-kubeconfig", config),
			flag("authorization-kubeconfig", config),
			flag("etcd-servers", c.http(CopseEtcd)),
		},
		Info: state.Component{
			URL:        url,
			Health:     url + "/readyz",
			Metrics:    url + "/metrics",
			Kubeconfig: config,
		},
	}
}

func copseControllerManager(c Config) Component {
	config := c.Dir.KubeconfigOf(CopseControllerManager)
	metrics, health := c.https(CopseControllerManager), c.extraHTTP(CopseControllerManager)
	return Component{
		Path: c.program(CopseControllerManager),
		Args: []string{
			flag("kubeconfig", config),
			flag("metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", c.Port[CopseControllerManager])),
			flag("health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", c.ExtraPort[CopseControllerManager])),
			flag("webhook-bind-address", fmt.Sprintf("127.0.0.1:%d", c.WebhookPort)),
		},
		Info: state.Component{
			URL:        metrics,
			Health:     health + "/readyz",
			Metrics:    metrics + "/metrics",
			Kubeconfig: config,
		},
	}
}
