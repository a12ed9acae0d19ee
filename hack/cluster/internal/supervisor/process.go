package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// LogMark begins the line that each new process has in its log.
const LogMark = "--- "

const (
	healthInterval = 50 * time.Millisecond
	healthTimeout  = 2 * time.Second
)

// process is one supervised process and its successors.
type process struct {
	spec   Spec
	report func(format string, args ...any)

	mu      sync.Mutex
	changed chan struct{} // closed at the next change of what follows
	wanted  bool
	closing bool
	hurry   bool // the next start waits for no back-off
	current *os.Process
	since   time.Time
	starts  int
	last    string // how the last process ended
}

func newProcess(spec Spec, report func(format string, args ...any)) *process {
	return &process{spec: spec, report: report, changed: make(chan struct{}), wanted: true}
}

// loop starts one process after the other until the supervisor closes.
func (p *process) loop() {
	// A child dies with the thread that started it (see run). This one lives
	// as long as the loop does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	pause := newBackoff()
	for {
		p.awaitWanted()
		if p.isClosing() {
			return
		}
		began := time.Now()
		ended := p.run()
		if p.isClosing() {
			return
		}
		if ended != "" {
			p.update(func() { p.last = ended })
		}
		if !p.isWanted() || p.isHurried() {
			pause.reset()
			continue
		}
		wait := pause.after(time.Since(began))
		p.report("%s ended (%s), see %s", p.spec.Name, ended, p.spec.Log)
		p.pause(wait)
	}
}

// run runs one process until it ends and says how it did; nothing if it was
// not started because nobody wants it any more.
func (p *process) run() string {
	log, err := os.OpenFile(p.spec.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err.Error()
	}
	defer log.Close()

	cmd := exec.Command(p.spec.Path, p.spec.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// The kernel kills the child when the supervisor is gone, however it went.
		Pdeathsig: syscall.SIGKILL,
		// Ctrl-C reaches the supervisor alone, which stops things in order.
		Setpgid: true,
	}
	fmt.Fprintf(log, "%s%s %s %s\n", LogMark, time.Now().Format(time.RFC3339), p.spec.Path, strings.Join(p.spec.Args, " "))
	if started, err := p.launch(cmd); err != nil {
		fmt.Fprintln(log, err)
		return err.Error()
	} else if !started {
		return ""
	}

	alive, died := context.WithCancel(context.Background())
	go p.greet(alive)
	err = cmd.Wait()
	died()
	p.update(func() { p.current = nil })
	if err != nil {
		return err.Error()
	}
	return "exit status 0"
}

// launch starts the process unless it is no longer wanted.
func (p *process) launch(cmd *exec.Cmd) (started bool, err error) {
	p.update(func() {
		if p.closing || !p.wanted {
			return
		}
		if err = cmd.Start(); err != nil {
			return
		}
		started = true
		p.current = cmd.Process
		p.since = time.Now()
		p.starts++
		p.hurry = false
	})
	return started, err
}

// greet calls the Started function of a new process once that is healthy.
func (p *process) greet(alive context.Context) {
	if p.spec.Started == nil {
		return
	}
	restarted := p.started() > 1
	if p.waitHealthy(alive, 0) == nil {
		p.spec.Started(alive, restarted)
	}
}

// waitHealthy gives up when the process has been started again that many
// times, if that is not 0.
func (p *process) waitHealthy(ctx context.Context, restarts int) error {
	before := p.started()
	for {
		err := p.health(ctx)
		if err == nil {
			return nil
		}
		if restarts > 0 && p.started() > before+restarts {
			return fmt.Errorf("%s does not stay up", p.spec.Name)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not healthy: %w", p.spec.Name, err)
		case <-time.After(healthInterval):
		}
	}
}

// health asks the process, if there is one: another program may have come to
// listen on its port.
func (p *process) health(ctx context.Context) error {
	p.mu.Lock()
	running := p.current != nil
	p.mu.Unlock()
	if !running {
		return fmt.Errorf("not running")
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return p.spec.Healthy(ctx)
}

func (p *process) start() {
	p.update(func() { p.wanted, p.hurry = true, true })
}

func (p *process) stop(ctx context.Context, grace time.Duration) error {
	p.update(func() { p.wanted = false })
	return p.end(ctx, grace)
}

func (p *process) close(grace time.Duration) {
	p.update(func() { p.closing = true })
	// It fails when the context ends, which this one does not.
	_ = p.end(context.Background(), grace)
}

// end asks the process to end, forces it after the grace time and returns
// when it is gone.
func (p *process) end(ctx context.Context, grace time.Duration) error {
	gone := func() bool { return p.current == nil }
	p.signal(syscall.SIGTERM)
	patience, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if p.await(patience, gone) == nil {
		return nil
	}
	p.report("%s did not stop within %s and is killed", p.spec.Name, grace)
	p.signal(syscall.SIGKILL)
	return p.await(ctx, gone)
}

func (p *process) replace() error {
	p.update(func() { p.hurry = true })
	return p.kill()
}

// kill ends the process at once. One that has ended by itself, and is started again, is
// as good as killed.
func (p *process) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.wanted:
		return fmt.Errorf("%s does not run", p.spec.Name)
	case p.current == nil:
		return nil
	}
	if err := p.current.Signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// signal does nothing to a process that is gone.
func (p *process) signal(sig os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		_ = p.current.Signal(sig)
	}
}

func (p *process) status(ctx context.Context) Status {
	health := "ok"
	if err := p.health(ctx); err != nil {
		health = err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		Name:     p.spec.Name,
		Stopped:  !p.wanted,
		Restarts: max(p.starts-1, 0),
		LastExit: p.last,
		Health:   health,
	}
	if p.current != nil {
		s.PID = p.current.Pid
		s.Since = p.since
	}
	return s
}

// awaitWanted waits until there is something to do.
func (p *process) awaitWanted() {
	_ = p.await(context.Background(), func() bool { return p.wanted || p.closing })
}

// pause waits before the next start, unless somebody is in a hurry.
func (p *process) pause(wait time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	_ = p.await(ctx, func() bool { return p.hurry || p.closing || !p.wanted })
}

func (p *process) started() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

func (p *process) isHurried() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hurry
}

func (p *process) isWanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

func (p *process) isClosing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing
}

// update changes the state under the lock and wakes whoever awaits a change.
func (p *process) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// await returns when the condition, which is evaluated under the lock, holds.
func (p *process) await(ctx context.Context, condition func() bool) error {
	for {
		p.mu.Lock()
		holds, changed := condition(), p.changed
		p.mu.Unlock()
		if holds {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
