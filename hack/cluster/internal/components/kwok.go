package components

import (
	"fmt"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// NodeLabel marks the nodes that KWOK plays, as key and value.
const (
	NodeLabelKey   = "type"
	NodeLabelValue = "kwok"
)

func kwok(c Config) Component {
	url := c.http(KWOK)
	return Component{
		Path: c.program(KWOK),
		Args: []string{
			flag("kubeconfig", c.Dir.KubeconfigOf(KWOK)),
			flag("config", c.Dir.KWOKConfig()),
			flag("manage-all-nodes", false),
			flag("manage-nodes-with-label-selector", NodeLabelKey+"="+NodeLabelValue),
			flag("cidr", podRange),
			// No node leases: a KWOK that takes over from a killed one would
			// leave every pod alone until the dead one's leases run out. Nodes
			// stay healthy by their status, see the stage node-heartbeat.
			flag("node-lease-duration-seconds", 0),
			flag("server-address", fmt.Sprintf("127.0.0.1:%d", c.Port[KWOK])),
			flag("v", kwokLogLevel(c.Verbosity)),
		},
		Info: state.Component{
			URL:        url,
			Health:     url + "/healthz",
			Metrics:    url + "/metrics",
			Kubeconfig: c.Dir.KubeconfigOf(KWOK),
		},
	}
}

// kwokLogLevel is quiet at first: KWOK writes a line per change of a pod at info.
func kwokLogLevel(verbosity int) string {
	switch {
	case verbosity < 3:
		return "WARN"
	case verbosity < 6:
		return "INFO"
	default:
		return "DEBUG"
	}
}
