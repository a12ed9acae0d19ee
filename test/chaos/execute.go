package chaos

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errorWrites is how many writes the fault Errors is about: it ends, so that the run can.
const errorWrites = 150

// execute lets one of the pending writes happen, or go wrong.
func (r *Run) execute(n int) {
	w := r.pending[n]
	r.mu.Lock()
	r.pending = slices.Delete(r.pending, n, n+1)
	r.mu.Unlock()
	r.writes++
	r.quiet = append(r.quiet, r.idle)
	r.idle = true
	if r.fault.Kind == Errors && r.writes <= errorWrites && r.lots.IntN(2) == 0 {
		r.refuse(w)
		return
	}
	if r.writes != r.fault.At {
		r.reply(w, r.apply, "")
		return
	}
	r.lagSince = time.Now()
	switch r.fault.Kind {
	case CrashBefore:
		r.trace("w%03d %s: CRASH before it", r.writes, w)
		r.restart(w)
	case CrashAfter:
		_, _ = r.apply(w, ": CRASH after it")
		r.restart(w)
	case CrashIntoThePast:
		_, _ = r.apply(w, ": CRASH after it, into the past")
		r.restart(w)
	case ReplyLost:
		r.reply(w, r.lose, ": the reply is LOST")
	case Freeze, FreezeAndRelist:
		for _, i := range r.live {
			for _, k := range r.fault.Kinds {
				i.informers[k].frozenUntil = r.step + r.fault.Steps
				i.informers[k].relist = r.fault.Kind == FreezeAndRelist
			}
		}
		r.reply(w, r.apply, ": caches FREEZE")
	case HideRemoval:
		for _, i := range r.live {
			for _, k := range r.fault.Kinds {
				i.informers[k].hideRemoval = true
				i.informers[k].ghostUntil = r.step + r.fault.Steps
			}
		}
		r.reply(w, r.apply, ": the next removal is HIDDEN")
	case Partition:
		r.cutUntil = r.step + r.fault.Steps
		for _, i := range r.live {
			for k, informer := range i.informers {
				if r.partitioned(k) {
					informer.frozenUntil = r.cutUntil
				}
			}
		}
		r.reply(w, r.apply, ": PARTITION")
	case DeleteSet:
		r.trace("     the user DELETES the set")
		r.deleteSet()
		r.reply(w, r.apply, "")
	default:
		r.reply(w, r.apply, "")
	}
}

// reply does a write in some way and answers it.
func (r *Run) reply(w *write, do func(*write, string) (client.Object, error), note string) {
	w.result, w.err = do(w, note)
	close(w.replied)
}

func (r *Run) apply(w *write, note string) (client.Object, error) {
	if r.partitioned(w.kind) {
		r.trace("w%03d %s%s -> no route", r.writes, w, note)
		return nil, apierrors.NewServiceUnavailable("no route to the server")
	}
	r.checker.writing = w
	obj, err := w.do()
	r.checker.writing = nil
	r.trace("w%03d %s%s -> %s", r.writes, w, note, outcome{verb: w.verb, obj: obj, err: err})
	return obj, err
}

func (r *Run) lose(w *write, note string) (client.Object, error) {
	if _, err := r.apply(w, note); err != nil {
		return nil, err
	}
	return nil, apierrors.NewTimeoutError("the reply was lost", 0)
}

// refuse answers with an error. A conflict is only given where the real servers give one.
func (r *Run) refuse(w *write) {
	choices := []string{"unavailable", "internal", "timeout, done", "timeout, not done"}
	if w.verb != "create" && w.verb != "delete" {
		choices = append(choices, "conflict")
	}
	choice := choices[r.lots.IntN(len(choices))]
	r.reply(w, func(w *write, note string) (client.Object, error) {
		if choice == "timeout, done" {
			return r.lose(w, note)
		}
		r.trace("w%03d %s%s", r.writes, w, note)
		switch choice {
		case "unavailable":
			return nil, apierrors.NewServiceUnavailable("injected")
		case "internal":
			return nil, apierrors.NewInternalError(fmt.Errorf("injected"))
		case "conflict":
			return nil, apierrors.NewConflict(groupResource(w.kind), w.key.Name, fmt.Errorf("injected"))
		}
		return nil, apierrors.NewTimeoutError("injected", 0)
	}, ": REFUSED, "+choice)
}

// restart ends the instance of a write and starts another. The write's own caller never
// learns what became of it. Into the past, the caches of the fault's kinds are filled as
// they were as many changes ago as the fault has steps, and stay so for as many steps.
func (r *Run) restart(w *write) {
	r.mu.Lock()
	r.pending = append(r.pending, w)
	r.mu.Unlock()
	w.instance.kill()
	r.live = slices.DeleteFunc(r.live, func(i *instance) bool { return i == w.instance })
	var past []Kind
	if r.fault.Kind == CrashIntoThePast {
		past = r.fault.Kinds
	}
	next, err := r.startInstance(past)
	if err != nil {
		r.fail("start the controllers again: %v", err)
		return
	}
	for _, k := range past {
		next.informers[k].frozenUntil = r.step + r.fault.Steps
	}
}
