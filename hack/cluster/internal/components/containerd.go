package components

import (
	"fmt"

	"github.com/copse-dev/copse/hack/cluster/internal/image"
	"github.com/copse-dev/copse/hack/cluster/internal/realnode"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

func containerd(c Config) Component {
	return Component{
		// That of the machine, by its PATH.
		Path: Containerd,
		Args: []string{
			flag("config", c.Dir.Node("containerd.toml")),
			flag("log-level", containerdLogLevel(c.Verbosity)),
		},
		Info: state.Component{
			URL:     "unix://" + c.Dir.Containerd(),
			Health:  "unix://" + c.Dir.Containerd(),
			Metrics: c.http(Containerd) + "/v1/metrics",
		},
	}
}

// containerdLogLevel is quiet at first: containerd tells of each container at info.
func containerdLogLevel(verbosity int) string {
	switch {
	case verbosity < 3:
		return "warn"
	case verbosity < 6:
		return "info"
	default:
		return "debug"
	}
}

// ContainerdConfig is the configuration file of containerd.
func ContainerdConfig(c Config) string {
	const cri = `plugins."io.containerd.grpc.v1.cri"`
	return fmt.Sprintf(`version = 2
root = %[1]q
state = %[2]q
# What only other kinds of clusters use. The first would make a folder in /opt.
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]

[grpc]
address = %[3]q

[metrics]
address = "127.0.0.1:%[4]d"

[%[5]s]
sandbox_image = %[6]q
# Without it a container does not start where the privilege CAP_SYS_RESOURCE is missing.
restrict_oom_score_adj = true
# A profile would be loaded for the whole machine.
disable_apparmor = true
# Below the state folder, not in /run/netns.
netns_mounts_under_state_dir = true

[%[5]s.containerd]
snapshotter = %[7]q

[%[5]s.cni]
bin_dir = %[8]q
conf_dir = %[9]q
`, c.Dir.Node("containerd"), realnode.RunPath, c.Dir.Containerd(), c.Port[Containerd],
		cri, c.Node.Image, image.Snapshotter, c.PluginDir, c.Dir.Node("net.d"))
}

// NetworkConfig is the configuration file of the pods' network. The bridge has
// its addresses already, and pods reach nothing but what is on it.
func NetworkConfig(c Config) string {
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": %[1]q,
  "plugins": [{
    "type": "bridge",
    "bridge": %[1]q,
    "ipam": {
      "type": "host-local",
      "ranges": [[{"subnet": %[2]q, "gateway": %[3]q}]],
      "routes": [{"dst": "0.0.0.0/0"}],
      "dataDir": "%[4]s/ipam"
    }
  }]
}
`, c.Node.Bridge, c.Node.PodRange, c.Node.Address, realnode.RunPath)
}
