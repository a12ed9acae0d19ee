package app

import (
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := started.Add
	const timeout = 5 * time.Minute
	tests := map[string]struct {
		timeout time.Duration
		seen    observation
		now     time.Duration
		want    verdict
		until   time.Duration // 0 for no deadline
	}{
		"own attempt open":                          {seen: observation{reading: true, entry: &entry{attempt: 2, open: true}}, want: openByGate},
		"own attempt open, read before an outage":   {seen: observation{entry: &entry{attempt: 2, open: true}}, now: time.Hour, timeout: timeout, want: openByGate},
		"own attempt expired":                       {seen: observation{reading: true, entry: &entry{attempt: 2, expired: true}}, want: expired},
		"own attempt expired, no deadline given":    {seen: observation{reading: true, entry: &entry{attempt: 2, expired: true}}, timeout: 0, want: expired},
		"own attempt neither":                       {seen: observation{reading: true, entry: &entry{attempt: 2}}, want: keepWaiting},
		"earlier attempt open":                      {seen: observation{reading: true, entry: &entry{attempt: 1, open: true}}, want: keepWaiting},
		"earlier attempt expired":                   {seen: observation{reading: true, entry: &entry{attempt: 1, expired: true}}, want: keepWaiting},
		"later attempt open":                        {seen: observation{reading: true, entry: &entry{attempt: 3, open: true}}, want: keepWaiting},
		"later attempt expired":                     {seen: observation{reading: true, entry: &entry{attempt: 3, expired: true}}, want: keepWaiting},
		"no gate or no entry":                       {seen: observation{reading: true}, want: keepWaiting},
		"nothing read yet, no deadline":             {want: keepWaiting, now: 1000 * time.Hour},
		"line in the file":                          {seen: observation{listed: true}, want: openByFile},
		"line in the file, later attempt in gate":   {seen: observation{listed: true, reading: true, entry: &entry{attempt: 3}}, want: openByFile},
		"line in the file, after the end":           {seen: observation{listed: true}, timeout: timeout, now: time.Hour, want: openByFile},
		"never read: waits for twice the timeout":   {timeout: timeout, now: time.Second, want: keepWaiting, until: 2 * timeout},
		"never read: a moment before":               {timeout: timeout, now: 2*timeout - 1, want: keepWaiting, until: 2 * timeout},
		"never read: at twice the timeout":          {timeout: timeout, now: 2 * timeout, want: cutOff, until: 2 * timeout},
		"read early, then lost":                     {timeout: timeout, seen: observation{lastRead: at(timeout)}, now: 2 * timeout, want: cutOff, until: 2 * timeout},
		"read after the timeout, then lost":         {timeout: timeout, seen: observation{lastRead: at(timeout + time.Second)}, now: 2 * timeout, want: keepWaiting, until: 2*timeout + time.Second},
		"read late, then lost for the timeout":      {timeout: timeout, seen: observation{lastRead: at(10 * timeout)}, now: 11 * timeout, want: cutOff, until: 11 * timeout},
		"read late, lost, own attempt not open yet": {timeout: timeout, seen: observation{lastRead: at(10 * timeout), entry: &entry{attempt: 2}}, now: 11 * timeout, want: cutOff, until: 11 * timeout},
		"reading: waits without end":                {timeout: timeout, seen: observation{reading: true, entry: &entry{attempt: 2}}, now: 1000 * time.Hour, want: keepWaiting},
		"reading, gate not there: without end":      {timeout: timeout, seen: observation{reading: true}, now: 1000 * time.Hour, want: keepWaiting},
		"lost, no deadline given: without end":      {seen: observation{lastRead: at(time.Minute)}, now: 1000 * time.Hour, want: keepWaiting},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.seen.started = started
			got, until := decide(pass{podClique: "w", attempt: 2, timeout: test.timeout}, test.seen, at(test.now))
			if got != test.want {
				t.Errorf("verdict %d, want %d", got, test.want)
			}
			if test.until == 0 && !until.IsZero() || test.until != 0 && !until.Equal(at(test.until)) {
				t.Errorf("until %s, want %s after %s", until, test.until, started)
			}
		})
	}
}

// Whatever is seen, no pod passes without a word for its own attempt, none fails by another's,
// and what is decided stays decided.
func FuzzDecide(f *testing.F) {
	f.Add(int32(0), int32(0), true, false, false, false, false, int64(0), int64(0), int64(0))
	f.Add(int32(1), int32(2), false, true, true, true, true, int64(time.Minute), int64(time.Minute), int64(time.Hour))
	f.Fuzz(func(t *testing.T, mine, theirs int32, hasEntry, open, isExpired, listed, isReading bool, timeout, lastRead, passed int64) {
		started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		limit := int64(maxTimeout)
		p := pass{podClique: "w", attempt: mine, timeout: time.Duration(max(0, timeout) % limit)}
		o := observation{started: started, reading: isReading, listed: listed}
		if hasEntry {
			o.entry = &entry{attempt: theirs, open: open, expired: isExpired}
		}
		if lastRead > 0 {
			o.lastRead = started.Add(time.Duration(lastRead % limit))
		}
		now := started.Add(time.Duration(max(0, passed) % limit))
		own := hasEntry && mine == theirs
		got, until := decide(p, o, now)
		switch got {
		case openByGate:
			if !own || !open {
				t.Fatal("passes a gate that is not open for it")
			}
		case openByFile:
			if !listed {
				t.Fatal("passes by a file that does not list it")
			}
		case expired:
			if !own || !isExpired || open || listed {
				t.Fatal("fails by a gate that has not expired for it, or is open")
			}
		case cutOff:
			if p.timeout == 0 || isReading || now.Before(started.Add(2*p.timeout)) || now.Before(o.lastRead.Add(p.timeout)) {
				t.Fatal("gives up too early")
			}
		case keepWaiting:
			if own && (open || isExpired) || listed {
				t.Fatal("waits though all is said")
			}
			if bounded := p.timeout > 0 && !isReading; bounded == until.IsZero() {
				t.Fatalf("waits until %s", until)
			}
			if !until.IsZero() && !until.After(now) {
				t.Fatal("waits for a moment that has passed")
			}
			if !until.IsZero() {
				if then, _ := decide(p, o, until); then != cutOff {
					t.Fatal("does not give up when it said that it would")
				}
			}
		}
		if got != keepWaiting {
			if later, _ := decide(p, o, now.Add(time.Hour)); later != got {
				t.Fatalf("verdict %d becomes %d an hour later", got, later)
			}
		}
	})
}
