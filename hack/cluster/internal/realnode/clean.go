package realnode

import (
	"context"
	"time"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// cleanTimeout is ample: killed processes go at once.
const cleanTimeout = 15 * time.Second

// Clean ends all containers of the node of a cluster whose containerd and
// kubelet are gone, and takes back what the node had of the machine. It can be
// called at any time, also when there is nothing to do, or when the node's number
// is another cluster's by now.
func Clean(ctx context.Context, dir state.Dir, node state.RealNode) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	// The shims first: they would report and act upon the deaths of the others.
	if err := killShims(ctx, dir); err != nil {
		return err
	}
	// The bridge is made first and removed last, so that it tells whose the
	// rest is.
	if owner, found, err := bridgeOwner(node.Bridge); err != nil || !found || owner != dir {
		return err
	}
	if err := removeCgroup(ctx, node.Cgroup); err != nil {
		return err
	}
	return removeBridge(node)
}
