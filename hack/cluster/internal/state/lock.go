package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrRunning says that the cluster has a supervisor.
var ErrRunning = errors.New("the cluster runs already")

// Lock makes this process the supervisor of the cluster, for as long as it
// lives: the kernel drops the lock with the process.
func (d Dir) Lock() error {
	// A bare descriptor: an os.File that nobody holds is closed by the
	// garbage collector, and the lock goes with it.
	fd, err := unix.Open(d.PIDFile(), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("open %s: %w", d.PIDFile(), err)
	}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, wholeFile()); err != nil {
		pid, _ := readPID(d.PIDFile())
		return errors.Join(fmt.Errorf("%w, with supervisor %d", ErrRunning, pid), unix.Close(fd))
	}
	// In place: a file that takes its name would not be locked.
	if err := unix.Ftruncate(fd, 0); err != nil {
		return err
	}
	_, err = unix.Pwrite(fd, pidLine(), 0)
	return err
}

// Supervisor returns the process id of the running supervisor, 0 if there is
// none. It only asks for the lock's holder: taking the lock to find out could
// keep a supervisor from starting.
func (d Dir) Supervisor() (int, error) {
	f, err := os.Open(d.PIDFile())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lock := wholeFile()
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, lock); err != nil {
		return 0, fmt.Errorf("lock of %s: %w", d.PIDFile(), err)
	}
	if lock.Type == unix.F_UNLCK {
		return 0, nil
	}
	// A supervisor writes its process id a moment after it has the lock.
	var pid int
	err = patiently(func() (err error) {
		pid, err = readPID(d.PIDFile())
		return err
	})
	return pid, err
}

// patiently repeats a function for up to two seconds until it succeeds, and
// returns its last failure.
func patiently(do func() error) error {
	deadline := time.After(2 * time.Second)
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-deadline:
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// wholeFile describes a lock of a file that belongs to one opening of it.
func wholeFile() *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK}
}

// SetReady says that the cluster of this process can be used, or not (yet).
func (d Dir) SetReady(ready bool) error {
	if ready {
		return writeWhole(d.ReadyFile(), pidLine())
	}
	err := os.Remove(d.ReadyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Ready returns whether the supervisor with this process id made the cluster ready.
func (d Dir) Ready(supervisor int) bool {
	pid, err := readPID(d.ReadyFile())
	return err == nil && pid == supervisor
}

func pidLine() []byte {
	return []byte(strconv.Itoa(os.Getpid()) + "\n")
}

func readPID(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}
