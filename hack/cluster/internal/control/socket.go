package control

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// short returns another path of the file that is short enough for a socket,
// whose path may have 107 bytes: it goes through a descriptor of the folder.
// The path works until it is released.
func short(path string) (string, func() error, error) {
	folder, err := os.OpenFile(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path)), folder.Close, nil
}

// listen takes the socket over from a supervisor that was killed.
func listen(path string) (net.Listener, error) {
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	name, release, err := short(path)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := net.Listen("unix", name)
	if err != nil {
		return nil, err
	}
	// Closing would remove whatever has the short path by then.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	return l, nil
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	name, release, err := short(path)
	if err != nil {
		return nil, err
	}
	defer release()
	var d net.Dialer
	return d.DialContext(ctx, "unix", name)
}
