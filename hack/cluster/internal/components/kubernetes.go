package components

import (
	"github.com/copse-dev/copse/hack/cluster/internal/certs"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// The scheduler's and the controllers' own limits (50 binds, 20 deletes in a
// second) decide how long a test of ours takes; here the machine shall decide.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// workloads is the gate of gang scheduling. kube-apiserver serves PodGroups,
// kube-scheduler schedules them and kube-controller-manager removes their
// finalizer: all three need it.
const workloads = "GenericWorkload=true"

func kubeAPIServer(c Config) Component {
	keys := c.Dir.Certs()
	url := c.Server()
	return Component{
		Path: c.program(KubeAPIServer),
		Args: []string{
			flag("etcd-servers", c.http(Etcd)),
			flag("bind-address", "127.0.0.1"),
			flag("secure-port", c.Port[KubeAPIServer]),
			flag("tls-cert-file", keys.Cert(certs.APIServer)),
			flag("tls-private-key-file", keys.Key(certs.APIServer)),
			flag("client-ca-file", keys.Cert(certs.ClusterCA)),
			flag("authorization-mode", "Node,RBAC"),
			flag("allow-privileged", true),

			flag("service-cluster-ip-range", c.serviceRange()),
			// Without it a loopback address to advertise is refused.
			flag("endpoint-reconciler-type", "none"),

			flag("service-account-issuer", "https://kubernetes.default.svc.cluster.local"),
			flag("service-account-key-file", keys.PublicKey(certs.ServiceAccount)),
			flag("service-account-signing-key-file", keys.Key(certs.ServiceAccount)),

			// Aggregated servers learn the user from headers of requests that
			// come with this certificate. enable-aggregator-routing stays off:
			// it knows no Service of type ExternalName.
			flag("requestheader-client-ca-file", keys.Cert(certs.FrontProxyCA)),
			flag("requestheader-allowed-names", certs.FrontProxyClient),
			flag("requestheader-username-headers", "X-Remote-User"),
			flag("requestheader-group-headers", "X-Remote-Group"),
			flag("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
			flag("proxy-client-cert-file", keys.Cert(certs.FrontProxyClient)),
			flag("proxy-client-key-file", keys.Key(certs.FrontProxyClient)),

			// For logs and commands of real pods.
			flag("kubelet-client-certificate", keys.Cert(certs.KubeletClient)),
			flag("kubelet-client-key", keys.Key(certs.KubeletClient)),
			flag("kubelet-certificate-authority", keys.Cert(certs.ClusterCA)),
			// No name server knows nodes.
			flag("kubelet-preferred-address-types", "InternalIP"),

			flag("feature-gates", workloads),
			flag("runtime-config", "scheduling.k8s.io/v1beta1=true"),

			flag("max-requests-inflight", 2000),
			flag("max-mutating-requests-inflight", 1000),
			flag("v", c.Verbosity),
		},
		Info: state.Component{URL: url, Health: url + "/readyz", Metrics: url + "/metrics"},
	}
}

func kubeControllerManager(c Config) Component {
	keys := c.Dir.Certs()
	return Component{
		Path: c.program(KubeControllerManager),
		Args: append(servingArgs(KubeControllerManager, c),
			flag("root-ca-file", keys.Cert(certs.ClusterCA)),
			flag("service-account-private-key-file", keys.Key(certs.ServiceAccount)),
			// Each controller is a user of its own, as in a real cluster:
			// who may do what depends on it.
			flag("use-service-account-credentials", true),
			flag("concurrent-gc-syncs", 50),
			// Who tries out an autoscaler, or waits for one in a test, sees it act at once.
			flag("horizontal-pod-autoscaler-sync-period", "1s"),
			flag("horizontal-pod-autoscaler-downscale-stabilization", "1s"),
			flag("horizontal-pod-autoscaler-initial-readiness-delay", "1s"),
			flag("horizontal-pod-autoscaler-cpu-initialization-period", "1s"),
		),
		Info: servingInfo(KubeControllerManager, c),
	}
}

func kubeScheduler(c Config) Component {
	return Component{
		Path: c.program(KubeScheduler),
		Args: servingArgs(KubeScheduler, c),
		Info: servingInfo(KubeScheduler, c),
	}
}

// servingArgs are the flags that the scheduler and the controller manager share.
func servingArgs(name string, c Config) []string {
	keys := c.Dir.Certs()
	config := c.Dir.KubeconfigOf(name)
	return []string{
		flag("kubeconfig", config),
		flag("authentication-kubeconfig", config),
		flag("authorization-kubeconfig", config),
		// Metrics can be read without a certificate: this is loopback only.
		flag("authorization-always-allow-paths", "/healthz,/readyz,/livez,/metrics"),
		flag("bind-address", "127.0.0.1"),
		flag("secure-port", c.Port[name]),
		flag("tls-cert-file", keys.Cert(certs.Component)),
		flag("tls-private-key-file", keys.Key(certs.Component)),
		// There is one of each; a killed one must not wait for its own lease.
		flag("leader-elect", false),
		flag("kube-api-qps", clientQPS),
		flag("kube-api-burst", clientBurst),
		flag("feature-gates", workloads),
		flag("v", c.Verbosity),
	}
}

func servingInfo(name string, c Config) state.Component {
	url := c.https(name)
	return state.Component{
		URL:        url,
		Health:     url + "/healthz",
		Metrics:    url + "/metrics",
		Kubeconfig: c.Dir.KubeconfigOf(name),
	}
}
