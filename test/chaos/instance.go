package chaos

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/copse-dev/copse/pkg/controllers"
	"github.com/copse-dev/copse/pkg/controllers/replica"
	"github.com/copse-dev/copse/pkg/metrics"
)

// instance is one process of the controller manager: its caches, its queues and what the
// controllers keep in memory. A crash ends it; what comes after is another instance.
type instance struct {
	run         *Run
	number      int
	informers   map[Kind]*informer
	consistency *consistency
	queues      []workQueue
	stop        context.CancelFunc
	ended       sync.WaitGroup

	mu     sync.Mutex
	dead   bool
	passes map[types.UID]pass
	// handed is the key that the driver hands out.
	handed string
}

// pass is one reconciliation of one key.
type pass struct {
	// key is what the pass works on, with the name of its controller.
	key string
	// ours and cluster are the revisions of the servers when it began.
	ours, cluster int64
}

// startInstance starts the controllers, with some caches as they were in the past.
func (r *Run) startInstance(past []Kind) (*instance, error) {
	r.instances++
	i := &instance{run: r, number: r.instances, informers: map[Kind]*informer{}, consistency: newConsistency(), passes: map[types.UID]pass{}}
	for _, k := range allKinds() {
		i.informers[k] = &informer{kind: k, server: r.serverOf(k), indexes: map[string]client.IndexerFunc{}}
		lag := 0
		if slices.Contains(past, k) {
			lag = r.fault.Steps
		}
		i.informers[k].list(lag)
	}
	ctx, cancel := context.WithCancel(context.Background())
	i.stop = cancel
	own, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	m := &fakeManager{instance: i, logger: logr.New(errorSink{i})}
	err = controllers.Setup(ctx, m, controllers.Options{NativeGangs: true, TopologyOff: true, ClusterDomain: "cluster.local", Workers: 1, Clock: clock.RealClock{}, Metrics: own})
	if err != nil {
		return nil, err
	}
	for _, runnable := range m.runnables {
		if err := i.replaceQueue(runnable); err != nil {
			return nil, err
		}
		i.ended.Go(func() { _ = runnable.Start(ctx) })
	}
	// The controllers have put their handlers on the informers when all of them wait.
	synctest.Wait()
	for _, k := range allKinds() {
		informer := i.informers[k]
		for _, key := range sortedKeys(informer.objects) {
			obj := informer.objects[key]
			i.consistency.saw(change{kind: k, after: obj})
			r.events++
			for _, handler := range informer.handlers {
				handler.OnAdd(obj, true)
			}
		}
	}
	r.live = append(r.live, i)
	return i, nil
}

// replaceQueue makes a controller take its keys from the driver. The field is exported,
// its type is not.
func (i *instance) replaceQueue(runnable manager.Runnable) error {
	field := reflect.ValueOf(runnable).Elem().FieldByName("NewQueue")
	if !field.IsValid() {
		return fmt.Errorf("%T has no field NewQueue", runnable)
	}
	switch runnable.(type) {
	case controller.TypedController[reconcile.Request]:
		field.Set(reflect.ValueOf(newQueueFor[reconcile.Request](i)))
	case controller.TypedController[replica.Key]:
		field.Set(reflect.ValueOf(newQueueFor[replica.Key](i)))
	default:
		return fmt.Errorf("the keys of %T are not known to this test", runnable)
	}
	return nil
}

func newQueueFor[K comparable](i *instance) func(string, workqueue.TypedRateLimiter[K]) workqueue.TypedRateLimitingInterface[K] {
	var made *queue[K]
	// The place of the queue among the others is that of its controller, whichever
	// controller starts first.
	place := len(i.queues)
	i.queues = append(i.queues, nil)
	return func(name string, limiter workqueue.TypedRateLimiter[K]) workqueue.TypedRateLimitingInterface[K] {
		made = newQueue(name, limiter, func() int { return i.run.events })
		i.queues[place] = made
		return made
	}
}

// kill ends an instance as a crash does: nothing that it does from now on has an effect.
func (i *instance) kill() {
	i.mu.Lock()
	i.dead = true
	i.mu.Unlock()
	i.consistency.kill()
	i.stop()
	i.run.abandon(i)
	i.ended.Wait()
}

func (i *instance) isDead() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.dead
}

// began is the pass that a call belongs to; the first call of a pass tells when it began.
func (i *instance) began(ctx context.Context) pass {
	id := controller.ReconcileIDFromContext(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	p, known := i.passes[id]
	if !known {
		p = pass{key: i.handed, ours: i.run.ours.revision, cluster: i.run.cluster.revision}
		i.passes[id] = p
	}
	return p
}

// reachable says whether the instance reaches the server of a kind.
func (i *instance) reachable(k Kind) error {
	if i.isDead() {
		return errCrashed
	}
	if i.run.partitioned(k) {
		return apierrors.NewServiceUnavailable("no route to the server")
	}
	return nil
}

func (i *instance) cached() cachedReader {
	return cachedReader{reader{i.informers}}
}

// deliver hands the next change of a kind to the controllers.
func (i *instance) deliver(k Kind) {
	i.run.events++
	informer := i.informers[k]
	informer.deliver(i.consistency.saw)
}

// deliverable says that a change of a kind can be handed out.
func (i *instance) deliverable(k Kind) bool {
	informer := i.informers[k]
	if informer.ghostUntil > 0 && informer.ghostUntil <= i.run.step {
		informer.ghostUntil, informer.hideRemoval, informer.relist = 0, false, true
	}
	return informer.frozenUntil <= i.run.step && (informer.behind() > 0 || informer.relist)
}

// startKey hands the next key of a queue to its controller.
func (i *instance) startKey(q workQueue) bool {
	return q.start(func(name string) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.handed = name
		i.run.passes[name]++
	})
}

// errorSink puts the errors that the controllers log into the trace.
type errorSink struct {
	instance *instance
}

var _ logr.LogSink = errorSink{}

func (errorSink) Init(logr.RuntimeInfo)            {}
func (errorSink) Enabled(int) bool                 { return false }
func (errorSink) Info(int, string, ...any)         {}
func (s errorSink) WithValues(...any) logr.LogSink { return s }
func (s errorSink) WithName(string) logr.LogSink   { return s }
func (s errorSink) Error(err error, message string, _ ...any) {
	// What the dead say comes in no order.
	if !s.instance.isDead() {
		s.instance.run.trace("    error: %s: %v", message, err)
	}
}
