package app

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

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

// Where a pod does not reach the API, the file says within the barrier's time that the gate is open,
// and the kubelet takes a while to bring it: a short timeout does not end that.
func TestAShortTimeoutLeavesTheFileItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cut()
		w := b.start(0, 30*time.Second)
		b.pass(30*time.Second + 90*time.Second)
		b.isWaiting(w)
		if err := os.WriteFile(b.file, []byte("job-0-worker 0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		b.ends(w, exitOpen, fileInterval, "")
	})
	inBubble(t, func(t *testing.T, b *bubble) {
		b.set(shut)
		w := b.start(0, 30*time.Second)
		b.pass(time.Hour)
		b.cut()
		b.pass(90 * time.Second)
		b.isWaiting(w)
		b.ends(w, exitFailed, 31*time.Second, "gave up waiting")
	})
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
