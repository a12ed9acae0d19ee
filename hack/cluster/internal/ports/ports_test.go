package ports

import (
	"fmt"
	"net"
	"testing"
)

func TestReserveKeepsThePreferredPort(t *testing.T) {
	a := reserve(t, 0)
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	if b := reserve(t, a.Number); b.Number != a.Number {
		t.Errorf("got port %d, want %d", b.Number, a.Number)
	}
}

func TestReserveAvoidsWhatIsTaken(t *testing.T) {
	reserved := reserve(t, 0)
	if p := reserve(t, reserved.Number); p.Number == reserved.Number {
		t.Errorf("port %d is handed out twice", p.Number)
	}

	other := reserve(t, 0)
	if err := other.Release(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", other.Number))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if p := reserve(t, other.Number); p.Number == other.Number {
		t.Errorf("port %d is handed out while somebody listens on it", p.Number)
	}
}

func reserve(t *testing.T, preferred int) Port {
	t.Helper()
	p, err := Reserve(preferred)
	if err != nil {
		t.Fatal(err)
	}
	// A test may have released it.
	t.Cleanup(func() { _ = p.Release() })
	return p
}
