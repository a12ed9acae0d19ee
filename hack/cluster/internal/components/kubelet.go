package components

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/hack/cluster/internal/certs"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// RealNodeValue is the value of the label NodeLabelKey of a real node, and of
// its taint with the same key: what is not made for it goes elsewhere.
const RealNodeValue = "kubelet"

func kubelet(c Config) Component {
	config := c.Dir.KubeconfigOf(Kubelet)
	url := fmt.Sprintf("https://%s:%d", c.Node.Address, c.Port[Kubelet])
	return Component{
		Path: c.program(Kubelet),
		Args: []string{
			flag("config", c.Dir.Node("kubelet.yaml")),
			flag("kubeconfig", config),
			flag("hostname-override", c.Node.Name),
			flag("node-ip", c.Node.Address),
			flag("node-labels", NodeLabelKey+"="+RealNodeValue),
			flag("v", c.Verbosity),
		},
		Info: state.Component{
			URL:        url,
			Health:     c.extraHTTP(Kubelet) + "/healthz",
			Metrics:    url + "/metrics",
			Kubeconfig: config,
		},
	}
}

// KubeletConfig is the configuration file of the kubelet.
func KubeletConfig(c Config) *kubeletv1beta1.KubeletConfiguration {
	keys := c.Dir.Certs()
	return &kubeletv1beta1.KubeletConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: kubeletv1beta1.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},

		Address:            c.Node.Address,
		Port:               int32(c.Port[Kubelet]),
		HealthzBindAddress: "127.0.0.1",
		HealthzPort:        ptr.To(int32(c.ExtraPort[Kubelet])),
		TLSCertFile:        keys.Cert(certs.KubeletServer),
		TLSPrivateKeyFile:  keys.Key(certs.KubeletServer),
		Authentication: kubeletv1beta1.KubeletAuthentication{
			X509:      kubeletv1beta1.KubeletX509Authentication{ClientCAFile: keys.Cert(certs.ClusterCA)},
			Anonymous: kubeletv1beta1.KubeletAnonymousAuthentication{Enabled: ptr.To(false)},
		},

		ContainerRuntimeEndpoint: "unix://" + c.Dir.Containerd(),
		PodLogsDir:               c.Dir.Node("pod-logs"),
		RegisterWithTaints:       []corev1.Taint{{Key: NodeLabelKey, Value: RealNodeValue, Effect: corev1.TaintEffectNoSchedule}},

		// A quick machine for tests: mounted ConfigMaps follow within a second
		// or two, not a minute or two.
		SyncFrequency: metav1.Duration{Duration: time.Second},

		CgroupRoot:   "/" + c.Node.Cgroup,
		CgroupDriver: "cgroupfs",
		FailCgroupV1: ptr.To(false),
		FailSwapOn:   ptr.To(false),
		// Nothing of the machine is set aside: it is not the node's.
		EnforceNodeAllocatable: []string{"pods"},
		// Images come from no registry, so none may be removed, and a full
		// disk is the machine's owner's affair.
		ImageGCHighThresholdPercent: ptr.To(int32(100)),
		EvictionHard: map[string]string{
			"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%",
		},
		LocalStorageCapacityIsolation: ptr.To(false),

		// The rest of the machine is left as it is.
		MakeIPTablesUtilChains: ptr.To(false),
		OOMScoreAdj:            ptr.To(int32(0)),
		// There is no name server. With this address, at which nobody is, pods
		// do not ask the machine's.
		ClusterDNS:     []string{c.Node.Address},
		ResolverConfig: ptr.To(""),
	}
}
