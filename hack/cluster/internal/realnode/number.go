package realnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/copse-dev/copse/hack/cluster/internal/claim"
	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

const (
	// nodeName is the Node object's. There is one real node in a cluster.
	nodeName = "kubelet-0"
	// apiPort is fixed: kube-apiserver gives it to the Service "kubernetes".
	apiPort = 443
	// testImage is in no registry, so that nobody can pull something else.
	testImage = "copse.dev/testpod:local"
	// numbers is how many real nodes the address ranges are enough for.
	numbers = 256
)

// ErrTaken says that a number has an owner.
var ErrTaken = errors.New("in use by another cluster")

// describe returns the node of that number. The addresses are of the range for
// tests of networks (RFC 2544), which no network that a machine is connected
// to should use. The two halves: what pods and what Services get.
func describe(number int) state.RealNode {
	return state.RealNode{
		Name:         nodeName,
		Number:       number,
		Bridge:       fmt.Sprintf("copse%d", number),
		Cgroup:       fmt.Sprintf("copse%d", number),
		PodRange:     fmt.Sprintf("198.19.%d.0/24", number),
		Address:      fmt.Sprintf("198.19.%d.1", number),
		ServiceRange: fmt.Sprintf("198.18.%d.0/24", number),
		APIHost:      fmt.Sprintf("198.18.%d.1", number),
		APIPort:      apiPort,
		Image:        testImage,
	}
}

// Claim takes the number of the previous time, or any that is free if there was
// no such time. It belongs to this process for as long as that lives. What an
// earlier owner has left behind is cleaned up.
func Claim(ctx context.Context, dir state.Dir, previous state.RealNode) (state.RealNode, error) {
	if previous.Exists() {
		// The number is in the addresses that the cluster has given away.
		node := describe(previous.Number)
		return node, take(ctx, dir, node)
	}
	var failure error
	for number := range numbers {
		node := describe(number)
		if failure = take(ctx, dir, node); failure == nil {
			return node, nil
		}
	}
	return state.RealNode{}, fmt.Errorf("no number from 0 to %d is free for a real node: %w", numbers-1, failure)
}

// take marks the number as ours among all clusters of this machine.
func take(ctx context.Context, dir state.Dir, node state.RealNode) error {
	mark, err := claim.Take(fmt.Sprintf("node-%d", node.Number))
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("number %d: %w", node.Number, ErrTaken)
	}
	if err != nil {
		return err
	}
	if err := takeOver(ctx, dir, node); err != nil {
		return errors.Join(err, mark.Release())
	}
	return nil
}

// takeOver cleans up after the owner before, if that was a cluster, and makes
// sure that the addresses are nobody else's.
func takeOver(ctx context.Context, dir state.Dir, node state.RealNode) error {
	owner, found, err := bridgeOwner(node.Bridge)
	if err != nil {
		return err
	}
	if found {
		if owner == "" {
			return fmt.Errorf("the network interface %s is not a cluster's", node.Bridge)
		}
		// It would hold the number's mark, but nothing of a cluster that runs is
		// ever to be cleaned up.
		if pid, err := owner.Supervisor(); owner != dir && (pid != 0 || err != nil) {
			return errors.Join(fmt.Errorf("number %d: %w, in %s", node.Number, ErrTaken, owner), err)
		}
		if err := Clean(ctx, owner, node); err != nil {
			return err
		}
	}
	if owner != dir {
		if err := Clean(ctx, dir, node); err != nil {
			return err
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, address := range addresses {
		if taken, err := netip.ParsePrefix(address.String()); err == nil && overlaps(node, taken) {
			return fmt.Errorf("number %d: this machine has the address %s", node.Number, taken)
		}
	}
	return nil
}

func overlaps(node state.RealNode, taken netip.Prefix) bool {
	for _, mine := range []string{node.PodRange, node.ServiceRange} {
		if netip.MustParsePrefix(mine).Overlaps(taken) {
			return true
		}
	}
	return false
}
