package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// withShort calls a function with another path of the file that is short enough
// for a socket, whose path may have 107 bytes: it goes through a descriptor of
// the folder, and works during the call alone.
func withShort(path string, do func(short string) error) error {
	folder, err := os.OpenFile(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path))), folder.Close())
}

// listen takes the socket over from a supervisor that was killed.
func listen(path string) (net.Listener, error) {
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	var l *net.UnixListener
	err := withShort(path, func(short string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	// Closing would remove whatever has the short path by then.
	l.SetUnlinkOnClose(false)
	return l, nil
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	var conn net.Conn
	err := withShort(path, func(short string) (err error) {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}
