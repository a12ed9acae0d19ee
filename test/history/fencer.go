package history

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fenceEvery bounds how often a fence is set.
const fenceEvery = 20 * time.Millisecond

// fencer sets the fences on one server.
type fencer struct {
	recorder *Recorder
	source   source
	wake     chan struct{}
}

func newFencer(r *Recorder, s source) *fencer {
	return &fencer{recorder: r, source: s, wake: make(chan struct{}, 1)}
}

func (f *fencer) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
		// It will look at all that has arrived when it begins.
	}
}

// run sets a fence whenever something has arrived from the other server.
func (f *fencer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		for f.set(ctx) != nil && ctx.Err() == nil {
			pause(ctx, retryAfter)
		}
		pause(ctx, fenceEvery)
	}
}

// set reads how far the server has come. The read asks for the latest state, so that it
// reflects everything that was written before it began.
func (f *fencer) set(ctx context.Context) error {
	seq := f.recorder.length()
	list, err := f.source.list(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	r := f.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	if rv := parseRV(listMeta.GetResourceVersion()); rv > 0 {
		r.log.Fences = append(r.log.Fences, Fence{Server: f.source.kind.server(), Seq: seq, RV: rv})
	}
	return nil
}
