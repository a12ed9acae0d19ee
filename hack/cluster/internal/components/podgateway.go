package components

import (
	"fmt"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// podGateway lets pods reach kube-apiserver, which listens on the loopback
// address like everything. The kubelet goes there directly: while the gateway
// is stopped, pods are cut off, and what is mounted into them is kept up to date.
func podGateway(c Config) Component {
	listen := fmt.Sprintf("%s:%d", c.Node.APIHost, c.Node.APIPort)
	return Component{
		Path: c.program("cluster"),
		Args: []string{
			PodGateway,
			flag("listen", listen),
			flag("to", fmt.Sprintf("127.0.0.1:%d", c.Port[KubeAPIServer])),
		},
		Info: state.Component{
			URL: "https://" + listen,
			// kube-apiserver's answer, by the way that pods take.
			Health: "https://" + listen + "/readyz",
		},
	}
}
