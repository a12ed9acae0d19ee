package ports

import (
	"fmt"
	"net"
	"testing"
)

func TestReserveKeepsThePreferredPort(t *testing.T) {
	a := mustReserve(t, 0)
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	if b := mustReserve(t, a.Number); b.Number != a.Number {
		t.Errorf("got port %d, want %d", b.Number, a.Number)
	}
}

func TestReserveAvoidsWhatIsTaken(t *testing.T) {
	reserved := mustReserve(t, 0)
	if p := mustReserve(t, reserved.Number); p.Number == reserved.Number {
		t.Errorf("port %d is handed out twice", p.Number)
	}

	other := mustReserve(t, 0)
	if err := other.Release(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", other.Number))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if p := mustReserve(t, other.Number); p.Number == other.Number {
		t.Errorf("port %d is handed out while somebody listens on it", p.Number)
	}
}

func mustReserve(t *testing.T, preferred int) Port {
	t.Helper()
	p, err := Reserve(preferred)
	if err != nil {
		t.Fatal(err)
	}
	// A test may have released it.
	t.Cleanup(func() { _ = p.Release() })
	return p
}
