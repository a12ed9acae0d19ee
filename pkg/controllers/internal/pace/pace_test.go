package pace

import (
	"testing"
	"time"
)

func TestCountsWaitForASecondAfterTheLastWrite(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	p := New()
	if wait := p.Wait("a", 0, now); wait != 0 {
		t.Errorf("the first write waits %v", wait)
	}
	p.Wrote("a", now)
	for after, want := range map[time.Duration]time.Duration{
		0: time.Second, 300 * time.Millisecond: 700 * time.Millisecond, time.Second: 0, time.Hour: 0,
	} {
		if wait := p.Wait("a", 0, now.Add(after)); wait != want {
			t.Errorf("%v after a write the next one waits %v, want %v", after, wait, want)
		}
	}
	if wait := p.Wait("b", 0, now); wait != 0 {
		t.Errorf("the write of another object waits %v", wait)
	}
	p.Wrote("a", now.Add(time.Minute))
	if wait := p.Wait("a", 0, now.Add(time.Minute)); wait != time.Second {
		t.Errorf("after a second write the next one waits %v", wait)
	}
	p.Forget("a")
	if wait := p.Wait("a", 0, now.Add(time.Minute)); wait != 0 || len(p.last) != 0 {
		t.Errorf("what is gone is remembered: waits %v, %d objects", wait, len(p.last))
	}
}

// A thousand pods that each take long would else cost a write a second.
func TestCountsOfManyPodsWaitLonger(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	p := New()
	p.Wrote("a", now)
	if wait := p.Wait("a", 1000, now); wait != 2*time.Second {
		t.Errorf("the counts of 1000 pods wait %v", wait)
	}
}

func TestUntil(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for moment, want := range map[time.Time]time.Duration{
		{}: 0, now.Add(time.Minute): time.Minute, now: time.Millisecond, now.Add(-time.Hour): time.Millisecond,
	} {
		if got := Until(moment, now); got != want {
			t.Errorf("until %v: %v, want %v", moment, got, want)
		}
	}
}
