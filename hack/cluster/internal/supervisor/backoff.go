package supervisor

import "time"

const (
	firstPause = 500 * time.Millisecond
	lastPause  = 5 * time.Second
	// settled is how long a process has to live for its end to count as the
	// first one.
	settled = 10 * time.Second
)

// backoff says how long to wait before a process is started again.
type backoff struct {
	next time.Duration
}

func newBackoff() *backoff {
	return &backoff{next: firstPause}
}

// after returns the pause after a process that lived that long.
func (b *backoff) after(life time.Duration) time.Duration {
	if life >= settled {
		b.reset()
	}
	wait := b.next
	b.next = min(2*b.next, lastPause)
	return wait
}

func (b *backoff) reset() {
	b.next = firstPause
}
