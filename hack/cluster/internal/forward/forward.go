package forward

import (
	"context"
	"errors"
	"io"
	"net"

	"golang.org/x/sync/errgroup"
)

// Serve accepts connections until the listener is closed and passes each on. It
// ends them with the context, as they would with the process: whoever is
// connected sees that at once.
func Serve(ctx context.Context, listener net.Listener, to string) error {
	var connections errgroup.Group
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return connections.Wait()
		}
		if err != nil {
			return err
		}
		connections.Go(func() error {
			// A connection that fails is between the two that it connects.
			_ = pass(ctx, client, to)
			return nil
		})
	}
}

// pass copies both ways until both have nothing more to say.
func pass(ctx context.Context, client net.Conn, to string) error {
	defer client.Close()
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", to)
	if err != nil {
		return err
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })()

	var ways errgroup.Group
	for _, way := range []struct{ from, to net.Conn }{{client, server}, {server, client}} {
		ways.Go(func() error {
			_, err := io.Copy(way.to, way.from)
			// What is left to say in the other direction can still be said.
			if half, ok := way.to.(interface{ CloseWrite() error }); ok {
				err = errors.Join(err, half.CloseWrite())
			}
			return err
		})
	}
	return ways.Wait()
}
