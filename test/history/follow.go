package history

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// retryAfter is how long a watch, or a fence, waits for a server that is not there.
const retryAfter = 50 * time.Millisecond

// follow watches a kind from a resourceVersion on until the recording ends.
func (r *Recorder) follow(ctx context.Context, s source, rv string) {
	for ctx.Err() == nil {
		w, err := s.watch(ctx, metav1.ListOptions{ResourceVersion: rv, AllowWatchBookmarks: true})
		if err == nil {
			// It ends with the recording, whatever else may hold it up.
			release := context.AfterFunc(ctx, w.Stop)
			rv, err = r.consume(s.kind, w, rv)
			release()
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			rv = r.bridge(ctx, s, rv)
		}
		pause(ctx, retryAfter)
	}
}

// consume records the events of a watch until it ends, and returns how far it came.
func (r *Recorder) consume(kind Kind, w watch.Interface, rv string) (string, error) {
	defer w.Stop()
	for event := range w.ResultChan() {
		switch event.Type {
		case watch.Error:
			return rv, apierrors.FromObject(event.Object)
		case watch.Bookmark:
			if obj, err := meta.Accessor(event.Object); err == nil {
				rv = obj.GetResourceVersion()
			}
		default:
			obj, ok := event.Object.(client.Object)
			if !ok {
				continue
			}
			rv = obj.GetResourceVersion()
			r.record(Revision{Kind: kind, Deleted: event.Type == watch.Deleted, Object: obj})
		}
	}
	return rv, nil
}

// bridge lists a kind whose revisions the server does not have any more, and notes the
// gap. The gap is there before what the list finds.
func (r *Recorder) bridge(ctx context.Context, s source, rv string) string {
	gap := Gap{Kind: s.kind, After: parseRV(rv), To: ^uint64(0)}
	r.mu.Lock()
	at := len(r.log.Gaps)
	r.log.Gaps = append(r.log.Gaps, gap)
	r.mu.Unlock()
	for ctx.Err() == nil {
		to, err := r.list(ctx, s)
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.log.Gaps[at].To = parseRV(to)
			return to
		}
		pause(ctx, retryAfter)
	}
	return rv
}

// pause waits, but not beyond the end of the recording.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
