package history

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Recorder watches a namespace and keeps a Log.
type Recorder struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	fences map[Server]*fencer

	mu  sync.Mutex
	log Log
	// current is the last state of each object that is there.
	current map[Kind]map[types.UID]client.Object
}

// startRecorder lists all kinds, so that nothing that comes later is missed, and begins
// to watch.
func startRecorder(sources []source) (*Recorder, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{cancel: cancel, fences: map[Server]*fencer{}, current: map[Kind]map[types.UID]client.Object{}}
	type watched struct {
		source
		rv string
	}
	var all []watched
	for _, s := range sources {
		r.current[s.kind] = map[types.UID]client.Object{}
		rv, err := r.list(ctx, s)
		if apierrors.IsNotFound(err) {
			// The cluster does not have the kind.
			continue
		}
		if err != nil {
			cancel()
			return nil, fmt.Errorf("list %s: %w", s.kind, err)
		}
		all = append(all, watched{s, rv})
		if server := s.kind.server(); r.fences[server] == nil {
			r.fences[server] = newFencer(r, s)
		}
	}
	for _, s := range all {
		r.done.Go(func() { r.follow(ctx, s.source, s.rv) })
	}
	for _, f := range r.fences {
		r.done.Go(func() { f.run(ctx) })
	}
	return r, nil
}

// list records what a list finds and what it does not find any more, and returns its
// resourceVersion.
func (r *Recorder) list(ctx context.Context, s source) (string, error) {
	list, err := s.list(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return "", err
	}
	found := map[types.UID]bool{}
	for _, object := range objects {
		obj, ok := object.(client.Object)
		if !ok {
			return "", fmt.Errorf("%T is no object", object)
		}
		found[obj.GetUID()] = true
		if known := r.known(s.kind, obj.GetUID()); known == nil || known.GetResourceVersion() != obj.GetResourceVersion() {
			r.record(Revision{Kind: s.kind, Listed: true, Object: obj})
		}
	}
	for _, obj := range r.allKnown(s.kind) {
		if !found[obj.GetUID()] {
			r.record(Revision{Kind: s.kind, Listed: true, Deleted: true, Object: obj, RV: parseRV(listMeta.GetResourceVersion())})
		}
	}
	return listMeta.GetResourceVersion(), nil
}

// record puts a revision into the log, and wakes the fence of the other server.
func (r *Recorder) record(rev Revision) {
	// Who wrote what is of no use here, and is most of a small object.
	rev.Object.SetManagedFields(nil)
	if rev.RV == 0 {
		rev.RV = parseRV(rev.Object.GetResourceVersion())
	}
	r.mu.Lock()
	rev.Seq = len(r.log.Revisions)
	rev.Arrived = time.Now()
	r.log.Revisions = append(r.log.Revisions, &rev)
	if rev.Deleted {
		delete(r.current[rev.Kind], rev.Object.GetUID())
	} else {
		r.current[rev.Kind][rev.Object.GetUID()] = rev.Object
	}
	r.mu.Unlock()
	if f := r.fences[rev.Kind.server().other()]; f != nil {
		f.wakeUp()
	}
}

func (r *Recorder) known(kind Kind, uid types.UID) client.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current[kind][uid]
}

func (r *Recorder) allKnown(kind Kind) []client.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]client.Object, 0, len(r.current[kind]))
	for _, obj := range r.current[kind] {
		out = append(out, obj)
	}
	return out
}

// length is how many revisions have arrived.
func (r *Recorder) length() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.log.Revisions)
}

// snapshot is the log as it is now.
func (r *Recorder) snapshot() *Log {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.log
	out.Revisions = slices.Clone(r.log.Revisions)
	out.Gaps = slices.Clone(r.log.Gaps)
	out.Fences = slices.Clone(r.log.Fences)
	out.Deletions = slices.Clone(r.log.Deletions)
	out.End = time.Now()
	return &out
}

// stop ends the recording.
func (r *Recorder) stop() {
	r.cancel()
	r.done.Wait()
}

// parseRV reads a resourceVersion, 0 when it is no number: then nothing is certainly
// after anything.
func parseRV(text string) uint64 {
	rv, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return rv
}
