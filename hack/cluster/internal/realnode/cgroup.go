package realnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
)

// hierarchies is where control groups are: one tree in version 2, a tree for
// each controller in version 1.
const hierarchies = "/sys/fs/cgroup"

// unified returns whether the machine has control groups of version 2 alone.
func unified() bool {
	_, err := os.Stat(filepath.Join(hierarchies, "cgroup.controllers"))
	return err == nil
}

// trees lists the tops of all hierarchies.
func trees() ([]string, error) {
	if unified() {
		return []string{hierarchies}, nil
	}
	tops, err := filepath.Glob(filepath.Join(hierarchies, "*", "cgroup.procs"))
	for i := range tops {
		tops[i] = filepath.Dir(tops[i])
	}
	return tops, err
}

// makeCgroup makes a control group in all hierarchies: the kubelet refuses one
// that does not exist.
func makeCgroup(name string) error {
	tops, err := trees()
	if err != nil {
		return err
	}
	for _, top := range tops {
		if err := os.MkdirAll(filepath.Join(top, name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroup kills what is in a control group and removes it.
func removeCgroup(ctx context.Context, name string) error {
	tops, err := trees()
	if err != nil {
		return err
	}
	for _, top := range tops {
		if err := removeTree(ctx, filepath.Join(top, name)); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes the deepest groups first. A group can be removed a moment
// after its last process is gone.
func removeTree(ctx context.Context, top string) error {
	for {
		groups, err := below(top)
		if err != nil || len(groups) == 0 {
			return err
		}
		var failed error
		for _, group := range slices.Backward(groups) {
			failed = errors.Join(failed, killGroup(group), removeGroup(group))
		}
		if failed == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the control group %s: %w", top, failed)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// below lists a group and all groups in it, parents first.
func below(top string) ([]string, error) {
	var groups []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return err
	})
	return groups, err
}

func killGroup(group string) error {
	text, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(line)
		// 0 is a process that cannot be seen from here.
		if err != nil || pid == 0 {
			return fmt.Errorf("process %q", line)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return nil
}

func removeGroup(group string) error {
	err := unix.Rmdir(group)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("remove %s: %w", group, err)
}

// killShims kills the processes that hold containers for a containerd. They
// outlive it, and it finds them again by its own address, which is among their
// arguments.
func killShims(ctx context.Context, dir state.Dir) error {
	for {
		shims, err := findShims(dir)
		if err != nil || len(shims) == 0 {
			return err
		}
		for _, pid := range shims {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill the shim %d: %w", pid, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the shims %v do not go", shims)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func findShims(dir state.Dir) ([]int, error) {
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var shims []int
	for _, path := range processes {
		// It may be gone by now; a dead one that nobody has waited for has no
		// command line.
		text, _ := os.ReadFile(path)
		args := strings.Split(string(text), "\x00")
		if !strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") || !slices.Contains(args, dir.Containerd()) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		shims = append(shims, pid)
	}
	return shims, nil
}
