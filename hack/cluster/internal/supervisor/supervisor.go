package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Spec describes a process.
type Spec struct {
	Name string
	Path string
	Args []string
	// Log is the file that its output is appended to.
	Log string
	// Healthy returns nil when the process can do its work.
	Healthy func(context.Context) error
	// Started, if set, is called each time that a new process has become
	// healthy. The context ends with the process.
	Started func(ctx context.Context, restarted bool)
	// StopLast is for what the others need in order to stop in peace.
	StopLast bool
}

// Status is a process as seen from outside.
type Status struct {
	Name string `json:"name"`
	// Stopped says that it is down by request.
	Stopped bool `json:"stopped"`
	// PID is 0 while there is no process.
	PID int `json:"pid"`
	// Since is when the process started.
	Since time.Time `json:"since"`
	// Restarts counts the processes before this one.
	Restarts int `json:"restarts"`
	// LastExit says how the last process ended.
	LastExit string `json:"lastExit,omitempty"`
	// Health is "ok" or what is wrong.
	Health string `json:"health"`
}

// Supervisor runs processes.
type Supervisor struct {
	report func(format string, args ...any)

	mu        sync.Mutex
	closed    bool
	processes []*process
	loops     sync.WaitGroup
}

// New returns a supervisor without processes. It reports what happens to them.
func New(report func(format string, args ...any)) *Supervisor {
	return &Supervisor{report: report}
}

// Run starts a process and keeps it running.
func (s *Supervisor) Run(spec Spec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("the supervisor is shutting down")
	}
	p := newProcess(spec, s.report)
	s.processes = append(s.processes, p)
	s.loops.Go(p.loop)
	return nil
}

// WaitHealthy returns when the process is healthy, or with an error when it
// had to be started again that many times. 0 means that it may end as often as
// it likes.
func (s *Supervisor) WaitHealthy(ctx context.Context, name string, restarts int) error {
	p, err := s.find(name)
	if err != nil {
		return err
	}
	return p.waitHealthy(ctx, restarts)
}

// Stop ends a process, by force after the grace time, and keeps it down.
func (s *Supervisor) Stop(ctx context.Context, name string, grace time.Duration) error {
	p, err := s.find(name)
	if err != nil {
		return err
	}
	return p.stop(ctx, grace)
}

// Start lets a stopped process run again.
func (s *Supervisor) Start(name string) error {
	p, err := s.find(name)
	if err != nil {
		return err
	}
	p.start()
	return nil
}

// Kill ends a process at once. It is started again after the back-off.
func (s *Supervisor) Kill(name string) error {
	p, err := s.find(name)
	if err != nil {
		return err
	}
	return p.kill()
}

// Replace ends a process at once and starts it again without a back-off. A
// stopped process stays down.
func (s *Supervisor) Replace(name string) error {
	p, err := s.find(name)
	if err != nil {
		return err
	}
	return p.replace()
}

// Status returns the state of all processes, in the order of their start. It
// asks each for its health.
func (s *Supervisor) Status(ctx context.Context) []Status {
	processes := s.all()
	statuses := make([]Status, len(processes))
	var asked sync.WaitGroup
	for i, p := range processes {
		asked.Go(func() { statuses[i] = p.status(ctx) })
	}
	asked.Wait()
	return statuses
}

// Close ends all processes, by force after the grace time, and returns when
// all are gone.
func (s *Supervisor) Close(grace time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()

	processes := s.all()
	for _, last := range []bool{false, true} {
		var ended sync.WaitGroup
		for _, p := range processes {
			if p.spec.StopLast == last {
				ended.Go(func() { p.close(grace) })
			}
		}
		ended.Wait()
	}
	s.loops.Wait()
}

func (s *Supervisor) all() []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.processes)
}

func (s *Supervisor) find(name string) (*process, error) {
	processes := s.all()
	names := make([]string, len(processes))
	for i, p := range processes {
		if p.spec.Name == name {
			return p, nil
		}
		names[i] = p.spec.Name
	}
	return nil, fmt.Errorf("no component %q, there are %q", name, names)
}
