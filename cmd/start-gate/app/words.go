package app

import (
	"errors"
	"fmt"
	"time"
)

// goal is what a waiter waits for.
func (o *Options) goal() string {
	return fmt.Sprintf("gate %s/%s to open for PodClique %s, attempt %d", o.Namespace, o.Gate, o.PodClique, o.Attempt)
}

// describe says what an entry means for a pod of an attempt.
func describe(e *entry, attempt int32) string {
	if e == nil {
		return "no entry of this PodClique"
	}
	text := fmt.Sprintf("entry of attempt %d, ", e.attempt)
	switch {
	case e.open:
		text += "open"
	case e.expired:
		text += "expired"
	default:
		text += "not open"
	}
	if e.attempt > attempt {
		text += "; this pod is of an earlier attempt, and will be deleted"
	}
	return text
}

// cause tells one kind of failure from another. The whole text is no use for that: it may
// hold the port or the time of one try.
func cause(err error) string {
	if status := (*statusError)(nil); errors.As(err, &status) {
		return fmt.Sprintf("status %d", status.code)
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// since is a time passed, in as many digits as a person wants.
func since(began, now time.Time) time.Duration {
	passed := now.Sub(began)
	if passed < 10*time.Second {
		return passed.Round(10 * time.Millisecond)
	}
	return passed.Round(time.Second)
}
