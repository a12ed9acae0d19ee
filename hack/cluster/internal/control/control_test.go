package control

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/copse-dev/copse/hack/cluster/internal/state"
	"github.com/copse-dev/copse/hack/cluster/internal/supervisor"
)

func TestCommands(t *testing.T) {
	ctx := t.Context()
	// Too long for the address of a socket.
	dir := state.Dir(filepath.Join(t.TempDir(), strings.Repeat("x", 150)))
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	s := supervisor.New(t.Logf)
	defer s.Close(time.Second)
	if err := s.Run(supervisor.Spec{
		Name: "sleeper", Path: "sleep", Args: []string{"1000"}, Log: dir.Log("sleeper"),
		Healthy: func(context.Context) error { return nil },
	}); err != nil {
		t.Fatal(err)
	}
	shutdown := make(chan struct{})
	server, err := Serve(dir, s, func() { close(shutdown) })
	if err != nil {
		t.Fatal(err)
	}
	client := NewClient(dir)

	if err := client.Start(ctx, "sleeper", true); err != nil {
		t.Fatal(err)
	}
	status, err := client.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if status.Ready || len(status.Components) != 1 || status.Components[0].PID == 0 || status.Components[0].Health != "ok" {
		t.Errorf("status is %+v", status)
	}
	if err := client.Stop(ctx, "sleeper", time.Second); err != nil {
		t.Fatal(err)
	}
	if err := client.Kill(ctx, "sleeper"); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("killing a stopped component: %v", err)
	}
	if err := client.Kill(ctx, "nobody"); err == nil || !strings.Contains(err.Error(), "sleeper") {
		t.Errorf("killing an unknown component: %v", err)
	}

	if err := client.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	<-shutdown
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Status(ctx); err == nil {
		t.Error("a closed server answers")
	}
}

func TestServeTakesOverADeadSocket(t *testing.T) {
	dir := state.Dir(t.TempDir())
	for range 2 {
		// Not closed: this is what a supervisor that was killed leaves.
		if _, err := listen(dir.ControlSocket()); err != nil {
			t.Fatal(err)
		}
	}
}
