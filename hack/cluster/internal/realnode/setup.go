package realnode

import (
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// SetUp makes what the programs of a claimed node expect: mounts, a control
// group and a network. The process is isolated.
func SetUp(dir state.Dir, node state.RealNode) error {
	if err := makeBridge(dir, node); err != nil {
		return err
	}
	if err := makeCgroup(node.Cgroup); err != nil {
		return err
	}
	return mountPrivately(dir)
}
