package app

import "time"

// fileDelay is how long the file may be behind the gate: a kubelet looks at a pod, and so at
// what it mounts, every minute to minute and a half.
const fileDelay = 2 * time.Minute

// pass is what the pod waits for: its own attempt of its own PodClique.
type pass struct {
	podClique string
	attempt   int32
	// timeout is the barrier's; 0 for none.
	timeout time.Duration
}

// entry is what a StartGate says of the PodClique.
type entry struct {
	attempt int32
	open    bool
	expired bool
}

// observation is what the waiter knows at one moment.
type observation struct {
	started time.Time
	// reading says that the gate is being watched, and lastRead until when it was if not;
	// zero for never.
	reading  bool
	lastRead time.Time
	// entry is what was last read, nil for no gate or no entry. It may be old, and that is
	// safe: within an attempt neither open nor expired is ever taken back.
	entry *entry
	// listed says that the file has the line of the pass.
	listed bool
}

// verdict is what follows from an observation.
type verdict int

const (
	// keepWaiting: nothing has been decided, or only of another attempt.
	keepWaiting verdict = iota
	// openByGate: the gate is open for this attempt.
	openByGate
	// openByFile: the file says so.
	openByFile
	// expired: the deadline of the gang has passed.
	expired
	// cutOff: the gate could not be read for so long that nobody can tell whether it expired.
	cutOff
)

// decide says whether the pod passes, fails or waits, and until when it waits if nothing
// changes: zero for as long as it takes.
//
// Only an entry or line of the own attempt counts. A lower one has yet to be followed by
// the own; a higher one means that this pod is of the past and about to be deleted: it never
// passes, and does not fail either, which would look like a failure of the work.
func decide(p pass, o observation, now time.Time) (verdict, time.Time) {
	own := o.entry != nil && o.entry.attempt == p.attempt
	switch {
	case own && o.entry.open:
		return openByGate, time.Time{}
	// Lines are written after the gate was opened, and an open gate does not expire.
	case o.listed:
		return openByFile, time.Time{}
	case own && o.entry.expired:
		return expired, time.Time{}
	}
	// Who reads the gate will read its end: whoever opens or expires gates may be down for
	// as long as it takes (D21).
	if p.timeout == 0 || o.reading {
		return keepWaiting, time.Time{}
	}
	// The gate expires within the timeout of its first pod, perhaps unseen. The second
	// timeout is for the file, for the controllers and for the API to come back; whoever
	// loses the gate later has a full timeout as well. A short one would end before the file
	// can say that the gate has opened.
	more := max(p.timeout, fileDelay)
	deadline := o.started.Add(p.timeout + more)
	if later := o.lastRead.Add(more); !o.lastRead.IsZero() && later.After(deadline) {
		deadline = later
	}
	if !now.Before(deadline) {
		return cutOff, deadline
	}
	return keepWaiting, deadline
}
