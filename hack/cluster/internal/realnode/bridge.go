package realnode

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// ownerPrefix begins the alias of a bridge, which names the state folder of its
// cluster. So a cluster that finds the bridge of a dead one knows whose it was.
const ownerPrefix = "copse cluster "

// makeBridge makes the network interface that pods are connected to. It has the
// node's address among the pods and that of the Service "kubernetes", and
// nothing is forwarded from it to other networks.
func makeBridge(dir state.Dir, node state.RealNode) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = node.Bridge
	bridge := &netlink.Bridge{LinkAttrs: attributes}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make the bridge %s: %w", node.Bridge, err)
	}
	if err := netlink.LinkSetAlias(bridge, ownerPrefix+string(dir)); err != nil {
		return errors.Join(fmt.Errorf("name the owner of the bridge %s: %w", node.Bridge, err), netlink.LinkDel(bridge))
	}
	for _, text := range []string{node.Address + "/24", node.APIHost + "/32"} {
		address, err := netlink.ParseAddr(text)
		if err != nil {
			return err
		}
		// Without the check for others: nobody else is on this network, and
		// the address is to be of use at once.
		address.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(bridge, address); err != nil {
			return fmt.Errorf("give %s to the bridge %s: %w", text, node.Bridge, err)
		}
	}
	return netlink.LinkSetUp(bridge)
}

// bridgeOwner returns the state folder of the cluster that made the interface.
// It is empty if that was no cluster.
func bridgeOwner(name string) (dir state.Dir, found bool, err error) {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("the network interface %s: %w", name, err)
	}
	owner, _ := strings.CutPrefix(link.Attrs().Alias, ownerPrefix)
	if owner == link.Attrs().Alias {
		return "", true, nil
	}
	return state.Dir(owner), true, nil
}

func removeBridge(node state.RealNode) error {
	link, err := netlink.LinkByName(node.Bridge)
	if err != nil {
		return err
	}
	return netlink.LinkDel(link)
}
