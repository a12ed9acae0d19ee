package realnode

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// testNumber is high: clusters take the lowest number that is free.
const testNumber = numbers - 1

func TestNumbersShareNoAddress(t *testing.T) {
	a, b := describe(0), describe(1)
	for _, mine := range []string{a.PodRange, a.ServiceRange} {
		if overlaps(b, netip.MustParsePrefix(mine)) {
			t.Errorf("%s is also of %+v", mine, b)
		}
		if !overlaps(a, netip.MustParsePrefix(mine)) {
			t.Errorf("%s is not of %+v", mine, a)
		}
	}
	if overlaps(a, netip.MustParsePrefix("10.0.0.1/8")) {
		t.Error("a network of others counts as taken")
	}
	for _, pair := range [][2]string{{a.PodRange, a.Address}, {a.ServiceRange, a.APIHost}} {
		if !netip.MustParsePrefix(pair[0]).Contains(netip.MustParseAddr(pair[1])) {
			t.Errorf("%s is not in %s", pair[1], pair[0])
		}
	}
}

func TestCheckDir(t *testing.T) {
	if err := CheckDir("/tmp/cluster"); err != nil {
		t.Error(err)
	}
	if err := CheckDir(state.Dir("/tmp/" + strings.Repeat("x", 100))); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("the error for a long path is %v", err)
	}
}

func TestHasCapability(t *testing.T) {
	const status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t0000000000001000\nCapBnd:\tffffffffffffffff\n"
	if !hasCapability(status, 12) {
		t.Error("a capability is not found")
	}
	if hasCapability(status, 21) || hasCapability("Name:\tx\n", 12) {
		t.Error("a capability is found that is not there")
	}
}

func TestPreflightNamesWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := checkPrograms()
	if err == nil {
		t.Fatal("nothing is missing")
	}
	for _, want := range []string{"the Debian package containerd (", "the Debian package runc (runc)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

func TestMissingPlugin(t *testing.T) {
	dir := t.TempDir()
	for _, plugin := range []string{"bridge", "host-local"} {
		if err := os.WriteFile(filepath.Join(dir, plugin), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := missingPlugin(dir); got != "loopback" || err != nil {
		t.Errorf("missing is %q, %v", got, err)
	}
}

// What a supervisor leaves that was killed is gone after Clean, and what is
// another cluster's is not.
func TestClean(t *testing.T) {
	if missing := errors.Join(checkRoot(), checkNetwork(), checkCgroups()); missing != nil {
		t.Skip("SKIPPED: this machine lacks", missing)
	}
	dir, node := state.Dir(t.TempDir()), describe(testNumber)
	t.Cleanup(func() { _ = Clean(context.Background(), dir, node) })
	if err := errors.Join(makeBridge(dir, node), makeCgroup(node.Cgroup)); err != nil {
		t.Fatal(err)
	}
	shim := start(t, "containerd-shim-runc-v2", "-address", dir.Containerd())
	other := start(t, "containerd-shim-runc-v2", "-address", dir.Containerd()+".other")
	container := start(t, "container")
	putIntoCgroup(t, node.Cgroup, "pod", container)

	// Not its owner any more: the number may be somebody else's by now.
	if err := Clean(t.Context(), state.Dir(t.TempDir()), node); err != nil {
		t.Fatal(err)
	}
	for name, cmd := range map[string]*exec.Cmd{"shim": shim, "container": container} {
		if ended(cmd) {
			t.Errorf("the %s of another cluster was killed", name)
		}
	}
	if owner, _, err := bridgeOwner(node.Bridge); owner != dir || err != nil {
		t.Errorf("the bridge's owner is %q, %v", owner, err)
	}

	if err := Clean(t.Context(), dir, node); err != nil {
		t.Fatal(err)
	}
	// Wait returns when the process is gone, and here it has been killed.
	for name, cmd := range map[string]*exec.Cmd{"shim": shim, "container": container} {
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("the %s ended with %v", name, err)
		}
	}
	if ended(other) {
		t.Error("the shim of another containerd was killed")
	}
	if _, found, err := bridgeOwner(node.Bridge); found || err != nil {
		t.Errorf("the bridge is still there: %v, %v", found, err)
	}
	if left, err := filepath.Glob(filepath.Join(hierarchies, "*", node.Cgroup)); len(left) > 0 || err != nil {
		t.Errorf("control groups are left: %v, %v", left, err)
	}
	if err := Clean(t.Context(), dir, node); err != nil {
		t.Errorf("there is nothing to do, and it says %v", err)
	}
}

// A bridge that is not a cluster's is left alone, and its number is not used.
func TestForeignBridge(t *testing.T) {
	if missing := errors.Join(checkRoot(), checkNetwork()); missing != nil {
		t.Skip("SKIPPED: this machine lacks", missing)
	}
	node := describe(testNumber)
	attributes := netlink.NewLinkAttrs()
	attributes.Name = node.Bridge
	foreign := &netlink.Bridge{LinkAttrs: attributes}
	if err := netlink.LinkAdd(foreign); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = netlink.LinkDel(foreign) })
	dir := state.Dir(t.TempDir())
	if err := Clean(t.Context(), dir, node); err != nil {
		t.Fatal(err)
	}
	if _, found, err := bridgeOwner(node.Bridge); !found || err != nil {
		t.Errorf("it was removed: %v", err)
	}
	if _, err := Claim(t.Context(), dir, node); err == nil || !strings.Contains(err.Error(), node.Bridge) {
		t.Errorf("claiming the number gives %v", err)
	}
}

// What a cluster left behind that was killed is cleaned up by the next one with its number,
// and of one that runs nothing is touched.
func TestTheNextOwnerCleansUp(t *testing.T) {
	if missing := errors.Join(checkRoot(), checkNetwork(), checkCgroups()); missing != nil {
		t.Skip("SKIPPED: this machine lacks", missing)
	}
	node := describe(testNumber)
	dead, running, next := state.Dir(t.TempDir()), state.Dir(t.TempDir()), state.Dir(t.TempDir())
	if err := running.Lock(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		owner state.Dir
		free  bool
	}{{running, false}, {dead, true}} {
		if err := makeBridge(tc.owner, node); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = Clean(context.Background(), tc.owner, node) })
		_, err := Claim(t.Context(), next, node)
		if tc.free != (err == nil) || (!tc.free && !errors.Is(err, ErrTaken)) {
			t.Errorf("claiming a number whose owner runs: %v, gives %v", !tc.free, err)
		}
		if _, found, err := bridgeOwner(node.Bridge); found == tc.free || err != nil {
			t.Errorf("the bridge is there: %v, %v", found, err)
		}
		if err := Clean(t.Context(), tc.owner, node); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Claim(t.Context(), next, node); !errors.Is(err, ErrTaken) {
		t.Errorf("claiming a number twice gives %v", err)
	}
}

// start starts a process under a name of its own.
func start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	// It does nothing until its input ends, and that never does.
	cmd := &exec.Cmd{Path: "/bin/sh", Args: append([]string{args[0], "-c", "read nothing", "sh"}, args[1:]...)}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd
}

// ended returns whether a process is gone or waits for its parent to notice.
func ended(cmd *exec.Cmd) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
	return err != nil || len(text) == 0
}

func putIntoCgroup(t *testing.T, elem string, below string, cmd *exec.Cmd) {
	t.Helper()
	tops, err := trees()
	if err != nil {
		t.Fatal(err)
	}
	// Hierarchies of some controllers take processes only once they are set up.
	for _, top := range tops {
		if unified() || filepath.Base(top) == "memory" || filepath.Base(top) == "pids" {
			group := filepath.Join(top, elem, below)
			if err := os.MkdirAll(group, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
