package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const (
	// fileInterval is how often the file is looked at. The kubelet takes up to a minute to
	// write it, and a look costs a system call or two: a watch of the folder, which it
	// replaces as a whole, would gain nothing.
	fileInterval = time.Second
	// reportInterval is how often the log says that nothing has changed.
	reportInterval = time.Minute
)

// What the waiter ends with.
const (
	exitOpen   = 0
	exitFailed = 1
	exitUsage  = 2
	// exitTerminated is what a shell makes of SIGTERM: a failure, so that no container
	// starts because its waiter was told to go.
	exitTerminated = 128 + 15
)

// waiter waits for one gate.
type waiter struct {
	options *Options
	pass    pass
	// follow tells what the gate says until its context ends.
	follow func(ctx context.Context, tell func(reading))
	log    *slog.Logger

	observation
	// seen is what the log says was last seen of the gate.
	seen string
	// failed is when reading the gate began to fail, and why; a nil failure while it does not.
	failed  time.Time
	failure error
	// unreadable is why the file cannot be read, empty while it can.
	unreadable string
}

// wait waits until the pod passes, fails or is told to go, and returns the exit code and,
// for all but 0, the reason.
func (w *waiter) wait(ctx context.Context) (int, string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.started, w.seen = time.Now(), "nothing"
	w.log.Info("waiting for " + w.options.goal())

	readings := make(chan reading)
	go w.follow(ctx, func(r reading) {
		select {
		case readings <- r:
		case <-ctx.Done():
		}
	})
	file := time.NewTicker(fileInterval)
	defer file.Stop()
	report := time.NewTicker(reportInterval)
	defer report.Stop()
	w.lookAtFile()
	for {
		now := time.Now()
		verdict, deadline := decide(w.pass, w.observation, now)
		if verdict != keepWaiting {
			return w.end(verdict, now)
		}
		// Nil, and so never ready, without a deadline.
		var over <-chan time.Time
		if !deadline.IsZero() {
			over = time.After(deadline.Sub(now))
		}
		select {
		case r := <-readings:
			w.take(r, time.Now())
		case <-file.C:
			w.lookAtFile()
		case <-report.C:
			w.log.Info(w.stillWaiting(time.Now()))
		case <-over:
		case <-ctx.Done():
			return exitTerminated, "told to end while " + w.stillWaiting(time.Now())
		}
	}
}

// end says how the wait has ended.
func (w *waiter) end(v verdict, now time.Time) (int, string) {
	passed := since(w.started, now)
	switch v {
	case openByGate:
		w.log.Info(fmt.Sprintf("the gate is open after %s", passed))
		return exitOpen, ""
	case openByFile:
		w.log.Info(fmt.Sprintf("the gate is open after %s, says %s", passed, w.options.File))
		return exitOpen, ""
	case expired:
		reason := fmt.Sprintf("gate %s/%s expired for PodClique %s, attempt %d, after %s: not all pods of its gang started in time",
			w.options.Namespace, w.options.Gate, w.options.PodClique, w.options.Attempt, passed)
		if w.pass.timeout > 0 {
			reason += fmt.Sprintf(" (timeout %s)", w.pass.timeout)
		}
		return exitFailed, reason
	default:
		return exitFailed, fmt.Sprintf("gave up %s: with a timeout of %s the gate may have expired unseen", w.stillWaiting(now), w.pass.timeout)
	}
}

// stillWaiting says what the waiter waits for, for how long, and what it knows.
func (w *waiter) stillWaiting(now time.Time) string {
	text := fmt.Sprintf("waiting for %s; %s so far; last seen: %s", w.options.goal(), since(w.started, now), w.seen)
	if w.failure != nil {
		text += fmt.Sprintf("; the gate cannot be read for %s: %v", since(w.failed, now), w.failure)
	}
	return text
}

// take takes in what the watch tells, and logs what is new.
func (w *waiter) take(r reading, now time.Time) {
	if r.failure != nil {
		if w.reading {
			w.reading, w.lastRead = false, now
		}
		if w.failure == nil {
			w.failed = now
		}
		if w.failure == nil || cause(w.failure) != cause(r.failure) {
			w.log.Warn(fmt.Sprintf("the gate cannot be read, and is tried again until it can: %v", r.failure))
		}
		w.failure = r.failure
		return
	}
	w.reading = true
	if w.failure != nil {
		w.log.Info(fmt.Sprintf("the gate can be read again after %s", since(w.failed, now)))
		w.failure = nil
	}
	if !r.hasGate {
		return
	}
	w.entry = r.gate
	if seen := describe(r.gate, w.pass.attempt); seen != w.seen {
		w.seen = seen
		w.log.Info("the gate has " + seen)
	}
}

// lookAtFile looks whether the file tells of the pass. A file that cannot be read is waited
// out like a gate that cannot.
func (w *waiter) lookAtFile() {
	var err error
	w.listed, err = readFile(w.options.File, w.pass)
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != w.unreadable && problem != "" {
		w.log.Warn("the file that tells open gates cannot be read: " + problem)
	}
	w.unreadable = problem
}
