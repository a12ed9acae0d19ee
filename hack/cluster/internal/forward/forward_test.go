package forward

import (
	"context"
	"io"
	"net"
	"testing"
)

func TestBothWaysAndTheirEnds(t *testing.T) {
	server := listen(t)
	gateway := listen(t)
	served := make(chan error, 1)
	go func() { served <- Serve(t.Context(), gateway, server.Addr().String()) }()

	client := dial(t, gateway)
	// The client says all that it has, and only then is answered.
	if _, err := client.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	accepted := accept(t, server)
	if got := readAll(t, accepted); got != "question" {
		t.Errorf("the server reads %q", got)
	}
	if _, err := accepted.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	if err := accepted.Close(); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, client); got != "answer" {
		t.Errorf("the client reads %q", got)
	}
	if err := gateway.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestTheEndOfTheContextCutsConnections(t *testing.T) {
	server := listen(t)
	gateway := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = Serve(ctx, gateway, server.Addr().String()) }()
	client := dial(t, gateway)
	accepted := accept(t, server)
	cancel()
	// Neither has said that it is done, and both see the end.
	readAll(t, client)
	readAll(t, accepted)
}

func TestNobodyThere(t *testing.T) {
	server := listen(t)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	gateway := listen(t)
	go func() { _ = Serve(t.Context(), gateway, server.Addr().String()) }()
	if got := readAll(t, dial(t, gateway)); got != "" {
		t.Errorf("the client reads %q", got)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// readAll reads to the end, which a reset is as well.
func readAll(t *testing.T, conn net.Conn) string {
	t.Helper()
	text, _ := io.ReadAll(conn)
	return string(text)
}
