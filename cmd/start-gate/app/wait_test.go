package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// waiting is a waiter that runs.
type waiting struct {
	cancel context.CancelFunc
	ended  chan struct{}
	code   int
	reason string
	after  time.Duration

	mu  sync.Mutex
	log bytes.Buffer
}

func (w *waiting) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(text)
}

func (w *waiting) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// start starts a waiter of team/job-0 for job-0-worker.
func (b *bubble) start(attempt int32, timeout time.Duration) *waiting {
	ctx, cancel := context.WithCancel(b.t.Context())
	started := &waiting{cancel: cancel, ended: make(chan struct{})}
	options := &Options{Namespace: "team", Gate: "job-0", PodClique: "job-0-worker", Attempt: attempt, Timeout: timeout, File: b.file}
	w := newWaiter(options, slog.New(slog.NewTextHandler(started, nil)))
	w.follow = b.follower().follow
	began := time.Now()
	go func() {
		defer close(started.ended)
		started.code, started.reason = w.wait(ctx)
		started.after = time.Since(began)
		cancel()
	}()
	return started
}

// isWaiting fails the test if the waiter has ended.
func (b *bubble) isWaiting(w *waiting) {
	b.t.Helper()
	synctest.Wait()
	select {
	case <-w.ended:
		b.t.Fatalf("it has ended with %d after %s: %s\n%s", w.code, w.after, w.reason, w.logged())
	default:
	}
}

// ends waits for the end.
func (b *bubble) ends(w *waiting, code int, within time.Duration, reason string) {
	b.t.Helper()
	began := time.Now()
	<-w.ended
	if took := time.Since(began); took > within {
		b.t.Errorf("it ended after %s, not within %s", took, within)
	}
	if w.code != code || !strings.Contains(w.reason, reason) || (code == 0) != (w.reason == "") {
		b.t.Errorf("it ended with %d: %q\n%s", w.code, w.reason, w.logged())
	}
}

// pass lets time pass.
func (b *bubble) pass(d time.Duration) { <-time.After(d) }

// lines counts log lines with a text.
func lines(log, text string) int {
	count := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			count++
		}
	}
	return count
}

func TestItPassesWhenItsGateOpens(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.start(2, time.Minute)
		b.pass(time.Hour)
		b.isWaiting(w) // there is no gate
		for _, clique := range []grovev1alpha1.StartGateClique{
			{Name: "job-0-worker", Attempt: 1, Open: true},
			{Name: "job-0-worker", Attempt: 1, Expired: true},
			{Name: "job-0-worker", Attempt: 2},
			{Name: "job-0-worker", Attempt: 3, Open: true},
			{Name: "job-0-worker", Attempt: 3, Expired: true},
			{Name: "job-0-work", Attempt: 2, Open: true},
		} {
			b.set(clique)
			b.pass(10 * time.Minute)
			b.isWaiting(w)
		}
		b.set(grovev1alpha1.StartGateClique{Name: "job-0-worker", Attempt: 2, Open: true})
		b.ends(w, exitOpen, 0, "")
		if !strings.Contains(w.logged(), "the gate is open after 2h0m0s") {
			t.Error(w.logged())
		}
	})
}

func TestItFailsWhenItsGateExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.start(0, 5*time.Minute)
		b.pass(6 * time.Minute)
		b.set(grovev1alpha1.StartGateClique{Name: "job-0-worker", Expired: true})
		b.ends(w, exitFailed, 0, "gate team/job-0 expired for PodClique job-0-worker, attempt 0, after 6m0s: not all pods of its gang started in time (timeout 5m0s)")
	})
}

func TestAGateThatIsOpenAlreadyLetsPassAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.set(opened)
		b.ends(b.start(0, 0), exitOpen, 0, "")
	})
}

func TestTheFileLetsPassWhenTheAPIDoesNot(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cut()
		w := b.start(1, 0)
		b.pass(time.Hour)
		b.isWaiting(w)
		write := func(content string) {
			if err := os.WriteFile(b.file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("job-0-worker 0\njob-0-ps 1\n")
		b.pass(time.Hour)
		b.isWaiting(w)
		write("job-0-worker 0\njob-0-ps 1\njob-0-worker 1\n")
		b.ends(w, exitOpen, fileInterval, "")
		if !strings.Contains(w.logged(), "says "+b.file) {
			t.Error(w.logged())
		}
	})
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cut()
		if err := os.WriteFile(b.file, []byte("job-0-worker 0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		b.ends(b.start(0, 0), exitOpen, 0, "") // it is looked at before the first second
	})
}

func TestItGivesUpAtTwiceTheTimeoutWithoutAWord(t *testing.T) {
	for name, fault := range map[string]func(*bubble){
		"network down":           func(b *bubble) { b.cut() },
		"forbidden":              func(b *bubble) { b.fail(status(403, "no")) },
		"resource not there":     func(b *bubble) { b.fail(status(404, "no")) },
		"shut":                   func(b *bubble) { b.fail(status(503, "no")) },
		"accepts, never answers": func(b *bubble) { b.fail(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				fault(b)
				// Not a multiple of the time between looks at the file, which must not matter.
				w := b.start(0, 5*time.Minute+300*time.Millisecond)
				b.pass(10*time.Minute + 600*time.Millisecond - 1)
				b.isWaiting(w)
				b.ends(w, exitFailed, 1, "gave up waiting for gate team/job-0 to open for PodClique job-0-worker, attempt 0; 10m1s so far; last seen: nothing; the gate cannot be read for ")
			})
			inBubble(t, func(t *testing.T, b *bubble) {
				fault(b)
				w := b.start(0, 0)
				b.pass(2 * time.Hour)
				b.isWaiting(w) // no deadline was asked for
				w.cancel()
				<-w.ended
			})
		})
	}
}

// An outage is no failure while the gate was read not long ago, however late it is.
func TestItGivesUpATimeoutAfterTheLastWord(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.set(shut)
		w := b.start(0, 5*time.Minute)
		b.pass(time.Hour)
		b.cut()
		b.pass(4 * time.Minute)
		b.isWaiting(w)
		b.mend()
		b.pass(time.Minute) // read again
		b.cut()
		b.pass(5*time.Minute - 1)
		b.isWaiting(w)
		b.ends(w, exitFailed, 1, "last seen: entry of attempt 0, not open; the gate cannot be read for 5m0s: connection refused")
	})
}

func TestItIsToldToEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.start(0, time.Minute)
		b.pass(time.Second)
		w.cancel()
		b.ends(w, exitTerminated, 0, "told to end while waiting for gate team/job-0 to open for PodClique job-0-worker, attempt 0; 1s so far; last seen: nothing")
	})
}

func TestTheLogSaysWhatAPersonWantsToKnow(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.set(grovev1alpha1.StartGateClique{Name: "job-0-worker", Open: true})
		w := b.start(1, time.Hour)
		b.pass(3*time.Minute + time.Second)
		for text, times := range map[string]int{
			`level=INFO msg="waiting for gate team/job-0 to open for PodClique job-0-worker, attempt 1"`:                                                   1,
			`level=INFO msg="the gate has entry of attempt 0, open"`:                                                                                       1,
			`level=INFO msg="waiting for gate team/job-0 to open for PodClique job-0-worker, attempt 1; 3m0s so far; last seen: entry of attempt 0, open"`: 1,
			"so far": 3,
			"":       5, // and nothing else
		} {
			if got := lines(w.logged(), text); got != times {
				t.Errorf("%q is in %d lines, want %d:\n%s", text, got, times, w.logged())
			}
		}
		b.set(grovev1alpha1.StartGateClique{Name: "job-0-worker", Attempt: 2})
		b.pass(time.Second)
		if text := `msg="the gate has entry of attempt 2, not open; this pod is of an earlier attempt, and will be deleted"`; lines(w.logged(), text) != 1 {
			t.Errorf("%s is not in\n%s", text, w.logged())
		}
		w.cancel()
		<-w.ended
	})
}

// Hundreds of tries make one line for each reason, beside the line of each minute.
func TestAnOutageIsLoggedOncePerReason(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.set(shut)
		w := b.start(0, 0)
		b.pass(time.Second)
		b.cut()
		b.pass(10 * time.Minute)
		b.fail(status(503, "service unavailable"))
		b.mend()
		b.pass(10 * time.Minute)
		b.fail(status(401, "Unauthorized"))
		b.pass(10 * time.Minute)
		b.fail(nil)
		b.pass(time.Minute)
		log := w.logged()
		for text, times := range map[string]int{
			"level=WARN": 4, // the broken watch is the first
			`msg="the gate cannot be read, and is tried again until it can: connection refused"`:                                                  1,
			`msg="the gate cannot be read, and is tried again until it can: the API server answers 503 Service Unavailable: service unavailable"`: 1,
			`msg="the gate cannot be read, and is tried again until it can: the API server answers 401 Unauthorized: Unauthorized"`:               1,
			"the gate can be read again after 30m": 1,
			"for 9m":                               1,
			"the gate has":                         1, // the same as before
		} {
			if got := lines(log, text); got != times {
				t.Errorf("%q is in %d lines, want %d:\n%s", text, got, times, log)
			}
		}
		w.cancel()
		<-w.ended
	})
}

func TestAFileThatCannotBeReadIsLoggedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		if err := os.Mkdir(b.file, 0o755); err != nil {
			t.Fatal(err)
		}
		w := b.start(0, 0)
		b.pass(time.Minute / 2)
		if got := lines(w.logged(), "the file that tells open gates cannot be read"); got != 1 {
			t.Errorf("%d lines:\n%s", got, w.logged())
		}
		b.set(opened)
		b.ends(w, exitOpen, 0, "")
	})
}

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

func TestTellKubelet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "termination-log")
	tellKubelet(path, "reason")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it made the file: %v", err)
	}
	if err := os.WriteFile(path, []byte("something longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	tellKubelet(path, "reason")
	if got, err := os.ReadFile(path); err != nil || string(got) != "reason" {
		t.Errorf("%q, error %v", got, err)
	}
	tellKubelet(filepath.Join(path, "below"), "reason") // nobody to tell
}
