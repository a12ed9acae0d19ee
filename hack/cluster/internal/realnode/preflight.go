package realnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// longestSocket is how long the path of a socket may be for Linux.
const longestSocket = 107

// Preflight returns what this machine lacks for a real node, one error for each
// thing, nil if it lacks nothing.
func Preflight() error {
	if err := checkRoot(); err != nil {
		// The other privileges would be missing for this reason alone.
		return errors.Join(err, checkPrograms())
	}
	return errors.Join(checkMounts(), checkNetwork(), checkCgroups(), checkKernelLog(), checkPrograms())
}

func checkRoot() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("root: this is user %d", uid)
	}
	return nil
}

// CheckDir returns whether sockets in a state folder have short enough paths.
func CheckDir(dir state.Dir) error {
	// containerd adds an ending for its shims' connections.
	if longest := dir.Containerd() + ".ttrpc"; len(longest) > longestSocket {
		return fmt.Errorf("the path of the state folder is too long for a real node: a socket's has %d characters of at most %d: %s",
			len(longest), longestSocket, longest)
	}
	return nil
}

// checkMounts makes a mount that nobody sees.
func checkMounts() error {
	failed := make(chan error)
	go func() {
		// The thread ends with the goroutine, which never unlocks it, and takes
		// its namespace along.
		runtime.LockOSThread()
		failed <- tryMount()
	}()
	if err := <-failed; err != nil {
		return fmt.Errorf("the privilege to mount (CAP_SYS_ADMIN): %w", err)
	}
	return nil
}

func tryMount() error {
	if err := unshareMounts(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "copse-preflight-")
	if err != nil {
		return err
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		return errors.Join(fmt.Errorf("mount a tmpfs: %w", err), os.Remove(dir))
	}
	return errors.Join(unix.Unmount(dir, 0), os.Remove(dir))
}

// checkNetwork looks for the capability: to make a network interface on trial
// would disturb whoever watches for them.
func checkNetwork() error {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	if !hasCapability(string(text), unix.CAP_NET_ADMIN) {
		return errors.New("the privilege to make network interfaces (CAP_NET_ADMIN)")
	}
	return nil
}

// hasCapability reads what /proc/<pid>/status says.
func hasCapability(status string, capability int) bool {
	_, rest, _ := strings.Cut(status, "\nCapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	set, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err == nil && set&(1<<capability) != 0
}

// checkCgroups makes a control group in each hierarchy that containers need.
func checkCgroups() error {
	tops := []string{hierarchies}
	if !unified() {
		tops = nil
		for _, controller := range []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids"} {
			tops = append(tops, filepath.Join(hierarchies, controller))
		}
	}
	var missing error
	for _, top := range tops {
		if err := tryCgroup(top); err != nil {
			missing = errors.Join(missing, fmt.Errorf("control groups that can be written to: %w", err))
		}
	}
	if unified() {
		missing = errors.Join(missing, checkControllers())
	}
	return missing
}

func tryCgroup(top string) error {
	if _, err := os.Stat(filepath.Join(top, "cgroup.procs")); err != nil {
		return err
	}
	group := filepath.Join(top, fmt.Sprintf("copse-preflight-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		return err
	}
	return unix.Rmdir(group)
}

// checkControllers looks for what version 2 has to give to groups.
func checkControllers() error {
	text, err := os.ReadFile(filepath.Join(hierarchies, "cgroup.controllers"))
	if err != nil {
		return err
	}
	var missing error
	for _, controller := range []string{"cpu", "cpuset", "memory", "pids"} {
		if !strings.Contains(" "+strings.TrimSpace(string(text))+" ", " "+controller+" ") {
			missing = errors.Join(missing, fmt.Errorf("the control group controller %s in %s", controller, hierarchies))
		}
	}
	return missing
}

// checkKernelLog: the kubelet reads there that a process was killed for want of
// memory, and does not start without.
func checkKernelLog() error {
	log, err := os.Open("/dev/kmsg")
	if err != nil {
		return fmt.Errorf("the kernel's log: %w", err)
	}
	return log.Close()
}

// checkPrograms names the Debian package of what is missing.
func checkPrograms() error {
	packages := map[string][]string{}
	lacks := func(name, program string) { packages[name] = append(packages[name], program) }
	for program, name := range map[string]string{
		"containerd":              "containerd",
		"containerd-shim-runc-v2": "containerd",
		"ctr":                     "containerd",
		"runc":                    "runc",
	} {
		if _, err := exec.LookPath(program); err != nil {
			lacks(name, program)
		}
	}
	if _, err := PluginDir(); err != nil {
		lacks("containernetworking-plugins", err.Error())
	}
	var missing error
	for _, name := range []string{"containerd", "runc", "containernetworking-plugins"} {
		if programs, found := packages[name]; found {
			missing = errors.Join(missing, fmt.Errorf("the Debian package %s (%s)", name, strings.Join(programs, ", ")))
		}
	}
	return missing
}

// PluginDir returns the folder of the CNI plugins: Debian's, or the one that the
// plugins' own releases are unpacked to.
func PluginDir() (string, error) {
	var failed error
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		missing, err := missingPlugin(dir)
		if err != nil {
			return "", err
		}
		if missing == "" {
			return dir, nil
		}
		if failed == nil {
			failed = fmt.Errorf("the plugin %s in %s", missing, dir)
		}
	}
	return "", failed
}

func missingPlugin(dir string) (string, error) {
	for _, plugin := range []string{"bridge", "host-local", "loopback"} {
		_, err := os.Stat(filepath.Join(dir, plugin))
		if errors.Is(err, fs.ErrNotExist) {
			return plugin, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}
