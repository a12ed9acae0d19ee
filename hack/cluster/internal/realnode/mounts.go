package realnode

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
	"k8s.io/component-helpers/node/util/sysctl"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// RunPath is where containerd keeps what does not outlive the machine.
const RunPath = "/run/containerd"

// folders are those that kubelet, containerd and the CNI library use under
// these names, and below which part of the state folder they are instead.
func folders() map[string]string {
	return map[string]string{
		// Root of the kubelet; its socket for device plugins is there whatever
		// the flags say, and it removes those of others.
		"/var/lib/kubelet": "kubelet",
		// Links to the logs of containers, by names that kubelets could share.
		"/var/log/containers": "container-logs",
		// The CNI library notes there what it has connected.
		"/var/lib/cni": "cni",
		// Sockets of shims.
		RunPath: "run",
	}
}

// tunables are the settings of the kernel that a kubelet makes for the whole
// machine. It sees them made.
func tunables() map[string]int {
	return map[string]int{
		sysctl.VMOvercommitMemory: sysctl.VMOvercommitMemoryAlways,
		sysctl.VMPanicOnOOM:       sysctl.VMPanicOnOOMInvokeOOMKiller,
		sysctl.KernelPanic:        sysctl.KernelPanicRebootTimeout,
		sysctl.KernelPanicOnOops:  sysctl.KernelPanicOnOopsAlways,
		sysctl.RootMaxKeys:        sysctl.RootMaxKeysSetting,
		sysctl.RootMaxBytes:       sysctl.RootMaxBytesSetting,
	}
}

// Isolate runs the program of this process again, as the same process, with the
// arguments and in a mount namespace of its own. It returns only when it fails.
// Mounts in that namespace are seen by the process and its children, and go
// with the last of them.
func Isolate(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// The namespace is this thread's, and the thread becomes the new process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unshareMounts(); err != nil {
		return err
	}
	return unix.Exec(self, append([]string{self}, args...), os.Environ())
}

// unshareMounts gives this thread a mount namespace of its own, from which
// nothing spreads.
func unshareMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts to oneself: %w", err)
	}
	return nil
}

// mountPrivately puts parts of the state folder where the programs expect them.
// The process has called Isolate before.
func mountPrivately(dir state.Dir) error {
	// Like that of a machine that was off, it begins empty. It could not be
	// removed at the end, for things are mounted in it.
	if err := os.RemoveAll(dir.Node(folders()[RunPath])); err != nil {
		return err
	}
	for target, part := range folders() {
		source := dir.Node(part)
		for _, folder := range []string{source, target} {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
		if err := bind(source, target); err != nil {
			return err
		}
		// What the kubelet mounts below its root, containers get to see.
		if err := unix.Mount("", target, "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
			return fmt.Errorf("share mounts below %s: %w", target, err)
		}
	}
	for name, value := range tunables() {
		source := dir.Node("tunables", name)
		if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(source, []byte(strconv.Itoa(value)+"\n"), 0o600); err != nil {
			return err
		}
		if err := bind(source, filepath.Join("/proc/sys", name)); err != nil {
			return err
		}
	}
	return nil
}

func bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	return nil
}
