package claim

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Claim is what one process has and no other.
type Claim struct {
	fd int
}

// Take makes the name belong to this process, until it ends or releases it. It fails
// when the name is taken.
//
// The mark is a socket in Linux' abstract namespace: it needs no file, and the kernel
// drops it with the process. It is a bare descriptor, for a net.Listener that nobody
// holds is closed by the garbage collector.
func Take(name string) (Claim, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Claim{}, fmt.Errorf("claim %s: %w", name, err)
	}
	claim := Claim{fd: fd}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@copse-cluster-" + name}); err != nil {
		_ = claim.Release()
		return Claim{}, fmt.Errorf("claim %s: %w", name, err)
	}
	return claim, nil
}

// Release gives the name back.
func (c Claim) Release() error {
	return unix.Close(c.fd)
}
