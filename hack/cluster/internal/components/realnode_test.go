package components

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

func realNodeConfig() Config {
	c := testConfig()
	c.Node = state.RealNode{
		Name: "kubelet-0", Number: 7, Bridge: "copse7", Cgroup: "copse7", PodRange: "198.19.7.0/24", Address: "198.19.7.1",
		ServiceRange: "198.18.7.0/24", APIHost: "198.18.7.1", APIPort: 443, Image: "copse.dev/testpod:local",
	}
	c.PluginDir = "/usr/lib/cni"
	for i, name := range []string{Containerd, PodGateway, Kubelet} {
		c.Port[name], c.ExtraPort[name] = 3000+i, 4000+i
	}
	return c
}

func TestFlagsOfARealNode(t *testing.T) {
	for _, tc := range []struct {
		component string
		want      []string
	}{
		// What a container finds in its environment is what pods can reach.
		{KubeAPIServer, []string{"--service-cluster-ip-range=198.18.7.0/24"}},
		{PodGateway, []string{"pod-gateway", "--listen=198.18.7.1:443", "--to=127.0.0.1:1001"}},
		{Containerd, []string{"--config=/state/node/containerd.toml"}},
		{Kubelet, []string{"--config=/state/node/kubelet.yaml", "--hostname-override=kubelet-0", "--node-ip=198.19.7.1", "--node-labels=type=kubelet"}},
	} {
		c, err := New(tc.component, realNodeConfig())
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range tc.want {
			if !slices.Contains(c.Args, flag) {
				t.Errorf("%s is called without %s: %q", tc.component, flag, c.Args)
			}
		}
	}
	if got := realNodeConfig().ServiceIP(); got != "198.18.7.1" {
		t.Errorf("the Service kubernetes has the address %s", got)
	}
	if got := testConfig().ServiceIP(); got != "10.0.0.1" {
		t.Errorf("without a real node the Service kubernetes has the address %s", got)
	}
}

// Two clusters share nothing, and neither shares with what the machine has.
func TestARealNodeUsesItsOwnPlaces(t *testing.T) {
	text := ContainerdConfig(realNodeConfig())
	for _, want := range []string{
		`root = "/state/node/containerd"`, `address = "/state/node/containerd.sock"`, `address = "127.0.0.1:3000"`,
		`sandbox_image = "copse.dev/testpod:local"`, `restrict_oom_score_adj = true`, `conf_dir = "/state/node/net.d"`,
		`netns_mounts_under_state_dir = true`, `snapshotter = "native"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("containerd's configuration lacks %s:\n%s", want, text)
		}
	}
	config := KubeletConfig(realNodeConfig())
	if config.CgroupRoot != "/copse7" || config.Address != "198.19.7.1" || config.PodLogsDir != "/state/node/pod-logs" ||
		config.ContainerRuntimeEndpoint != "unix:///state/node/containerd.sock" {
		t.Errorf("the kubelet's configuration is %+v", config)
	}
	if *config.MakeIPTablesUtilChains {
		t.Error("the kubelet makes rules of the machine's firewall")
	}
	if len(config.RegisterWithTaints) != 1 || config.RegisterWithTaints[0].Key != "type" {
		t.Errorf("any pod can go to the real node: %v", config.RegisterWithTaints)
	}
}

func TestNetworkConfig(t *testing.T) {
	var network struct {
		Plugins []struct {
			Bridge string
			IPMasq bool
			IPAM   struct {
				Ranges [][]struct{ Subnet, Gateway string }
			}
		}
	}
	if err := json.Unmarshal([]byte(NetworkConfig(realNodeConfig())), &network); err != nil {
		t.Fatal(err)
	}
	plugin := network.Plugins[0]
	if r := plugin.IPAM.Ranges[0][0]; plugin.Bridge != "copse7" || plugin.IPMasq || r.Subnet != "198.19.7.0/24" || r.Gateway != "198.19.7.1" {
		t.Errorf("the network is %+v", network)
	}
}
