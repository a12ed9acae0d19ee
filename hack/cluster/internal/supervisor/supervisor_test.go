package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	b := newBackoff()
	var got []time.Duration
	for _, life := range []time.Duration{0, time.Second, 0, 0, 0, 0, settled, 0} {
		got = append(got, b.after(life))
	}
	ms := time.Millisecond
	want := []time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 5000 * ms, 5000 * ms, 500 * ms, 1000 * ms}
	if !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v", got, want)
	}
}

func TestKilledProcessRunsAgain(t *testing.T) {
	s := newTestSupervisor(t)
	var started, restarted atomic.Int32
	run(t, s, Spec{
		Name: "sleeper", Path: "/bin/sleep", Args: []string{"1000"},
		Started: func(_ context.Context, again bool) {
			started.Add(1)
			if again {
				restarted.Add(1)
			}
		},
	})
	first := waitFor(t, s, func(st Status) bool { return st.PID != 0 })
	if err := s.Kill("sleeper"); err != nil {
		t.Fatal(err)
	}
	second := waitFor(t, s, func(st Status) bool { return st.PID != 0 && st.PID != first.PID })
	if second.Restarts != 1 || !strings.Contains(second.LastExit, "killed") {
		t.Errorf("status after a kill is %+v", second)
	}
	waitFor(t, s, func(Status) bool { return started.Load() == 2 && restarted.Load() == 1 })
}

// KWOK ends by itself when kube-apiserver goes, at the moment in which a test replaces it.
func TestKillingAProcessThatHasJustEndedSucceeds(t *testing.T) {
	s := newTestSupervisor(t)
	run(t, s, Spec{Name: "brief", Path: "/bin/true"})
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		if err := s.Kill("brief"); err != nil {
			t.Fatal(err)
		}
		if err := s.Replace("brief"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStoppedProcessStaysDown(t *testing.T) {
	s := newTestSupervisor(t)
	// It ignores the request to stop.
	run(t, s, Spec{Name: "deaf", Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; while :; do sleep 0.05; done"}})
	waitFor(t, s, func(st Status) bool { return st.PID != 0 })
	if err := s.Stop(t.Context(), "deaf", 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		<-time.After(firstPause / 10)
		if st := s.Status(t.Context())[0]; st.PID != 0 || !st.Stopped {
			t.Fatalf("a stopped process runs: %+v", st)
		}
	}
	if err := s.Start("deaf"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s, func(st Status) bool { return st.PID != 0 && !st.Stopped })
}

func TestReplaceDoesNotWait(t *testing.T) {
	s := newTestSupervisor(t)
	run(t, s, Spec{Name: "sleeper", Path: "/bin/sleep", Args: []string{"1000"}})
	first := waitFor(t, s, func(st Status) bool { return st.PID != 0 })
	began := time.Now()
	if err := s.Replace("sleeper"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s, func(st Status) bool { return st.PID != 0 && st.PID != first.PID })
	if d := time.Since(began); d > firstPause {
		t.Errorf("replacing took %s", d)
	}
}

func TestMissingProgramIsReported(t *testing.T) {
	s := newTestSupervisor(t)
	run(t, s, Spec{Name: "ghost", Path: "/does/not/exist"})
	st := waitFor(t, s, func(st Status) bool { return st.LastExit != "" })
	if !strings.Contains(st.LastExit, "no such file") || st.Health == "ok" {
		t.Errorf("status %+v", st)
	}
}

func TestWaitHealthyGivesUp(t *testing.T) {
	s := newTestSupervisor(t)
	run(t, s, Spec{Name: "brief", Path: "/bin/false"})
	if err := s.WaitHealthy(t.Context(), "brief", 1); err == nil || !strings.Contains(err.Error(), "does not stay up") {
		t.Errorf("a process that ends at once: %v", err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	s := newTestSupervisor(t)
	for i := range 3 {
		run(t, s, Spec{Name: "p" + strconv.Itoa(i), Path: "/bin/sleep", Args: []string{"1000"}, StopLast: i == 0})
	}
	waitFor(t, s, func(Status) bool {
		return !slices.ContainsFunc(s.Status(t.Context()), func(st Status) bool { return st.PID == 0 })
	})
	s.Close(time.Second)
	for _, st := range s.Status(t.Context()) {
		if st.PID != 0 {
			t.Errorf("%s still runs", st.Name)
		}
	}
	if err := s.Run(Spec{Name: "late"}); err == nil {
		t.Error("a closed supervisor starts a process")
	}
}

func newTestSupervisor(t *testing.T) *Supervisor {
	s := New(t.Logf)
	t.Cleanup(func() { s.Close(100 * time.Millisecond) })
	return s
}

func run(t *testing.T, s *Supervisor, spec Spec) {
	t.Helper()
	spec.Log = filepath.Join(t.TempDir(), "log")
	spec.Healthy = func(context.Context) error {
		if spec.Name == "brief" {
			return errors.New("never")
		}
		return nil
	}
	if _, err := os.Stat(spec.Path); err != nil && spec.Name != "ghost" {
		t.Skipf("this machine lacks the program that the test supervises: %v", err)
	}
	if err := s.Run(spec); err != nil {
		t.Fatal(err)
	}
}

// waitFor returns the status of the first process once it is as wanted.
func waitFor(t *testing.T, s *Supervisor, wanted func(Status) bool) Status {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		st := s.Status(t.Context())[0]
		if wanted(st) {
			return st
		}
		select {
		case <-deadline:
			t.Fatalf("status stays %+v", st)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
