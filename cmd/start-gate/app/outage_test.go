package app

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A watch that lasts for its time is followed by the next one, without a gap and without a
// word; one that its server forgets to end is ended here.
func TestWatchesFollowOneAnother(t *testing.T) {
	for name, fault := range map[string]http.HandlerFunc{
		"ended by the server": nil,
		"ended by the waiter": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_, _ = io.WriteString(w, `{"type":"ADDED",`) // and the rest never comes
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.fail(fault)
				w := b.start(0, time.Minute)
				b.pass(time.Hour)
				b.isWaiting(w)
				_, times := b.received()
				if len(times) < 14 || len(times) > 31 {
					t.Errorf("%d watches in an hour", len(times))
				}
				spans := map[time.Duration]bool{}
				for i := 1; i < len(times); i++ {
					span := times[i].Sub(times[i-1])
					if span < lifetime || span > 2*lifetime+overtime {
						t.Errorf("a watch lasted for %s", span)
					}
					spans[span.Round(time.Second)] = true
				}
				if len(spans) < 5 {
					t.Errorf("watches last for as long as each other: %v", spans)
				}
				if got := lines(w.logged(), "cannot be read"); got != 0 {
					t.Error(w.logged())
				}
				b.fail(nil)
				b.set(opened)
				b.ends(w, exitOpen, 2*lifetime+overtime, "")
			})
		})
	}
}

// All lose their server at the same moment. They come back spread out, and the longer it is
// away the more; and none stays away for long.
func TestWaitersDoNotStormTheServer(t *testing.T) {
	for _, outage := range []time.Duration{0, time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				const waiters = 200
				b.set(shut)
				passed := make(chan struct{}, waiters)
				for range waiters {
					gate := b.follower()
					go gate.follow(t.Context(), func(r reading) {
						if r.gate != nil && r.gate.open {
							passed <- struct{}{}
						}
					})
				}
				synctest.Wait()
				_, before := b.received()
				if len(before) != waiters {
					t.Fatalf("%d requests of %d waiters", len(before), waiters)
				}
				b.cut()
				b.pass(outage)
				b.mend()
				back := time.Now()
				b.pass(16 * time.Second)
				_, times := b.received()
				times = times[len(before):]
				if len(times) != waiters {
					t.Fatalf("%d of %d waiters are back", len(times), waiters)
				}
				most := 0
				for i := range times {
					within := 0
					for j := i; j < len(times) && times[j].Sub(times[i]) < 100*time.Millisecond; j++ {
						within++
					}
					most = max(most, within)
				}
				// Evenly spread it would be 20 over one second, and 2 over ten.
				limit := 45
				if outage >= time.Minute {
					limit = 12
				}
				if most > limit {
					t.Errorf("%d come back within a tenth of a second", most)
				}
				t.Logf("after %s: at most %d in a tenth of a second, the last after %s", outage, most, times[len(times)-1].Sub(back))
				b.set(opened)
				synctest.Wait()
				if len(passed) != waiters {
					t.Errorf("%d of %d pass", len(passed), waiters)
				}
			})
		})
	}
}

// A server that accepts each watch and breaks it is an outage too.
func TestBrokenWatchesBackOff(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.fail(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		w := b.start(0, 0)
		b.pass(10 * time.Minute)
		if _, times := b.received(); len(times) > 130 {
			t.Errorf("%d tries in ten minutes", len(times))
		}
		b.fail(nil)
		b.pass(time.Minute) // long enough to count as well
		_, before := b.received()
		b.cut()
		b.mend()
		b.pass(1500 * time.Millisecond)
		synctest.Wait()
		if _, after := b.received(); len(after) != len(before)+1 {
			t.Errorf("%d tries in a second and a half after a watch that lasted", len(after)-len(before))
		}
		w.cancel()
		<-w.ended
	})
}

// A server that takes requests and does not answer them holds up one request, not the waiter.
func TestAnAnswerIsNotWaitedForForever(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.fail(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		w := b.start(0, 0)
		b.pass(time.Second)
		b.fail(nil)
		b.set(opened)
		b.ends(w, exitOpen, answerTimeout+2*time.Second, "")
	})
}

// The other end of a connection may go without a word, with its machine. HTTP/2 asks.
func TestASilentConnectionIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.set(shut)
		w := b.start(0, 0)
		b.pass(time.Second)
		b.silence()
		b.set(opened)
		b.ends(w, exitOpen, pingAfter+pingTimeout+2*time.Second, "")
		if got := lines(w.logged(), "the gate cannot be read"); got != 1 {
			t.Error(w.logged())
		}
	})
}

func TestBackoff(t *testing.T) {
	for range 100 {
		backoff := newBackoff()
		least := 500 * time.Millisecond
		for step := range 20 {
			got := backoff.Step()
			if most := 3 * least; got < least || got > most {
				t.Fatalf("pause %d is %s, not from %s to %s", step, got, least, most)
			}
			least = min(2*least, 5*time.Second)
		}
	}
}
