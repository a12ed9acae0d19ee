// Package controllers puts the controllers together: their indexes, their clients and
// what they share.
package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/copse-dev/copse/pkg/controllers/clustertopologybinding"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/controllers/internal/topology"
	"github.com/copse-dev/copse/pkg/controllers/podclique"
	"github.com/copse-dev/copse/pkg/controllers/podcliquescalinggroup"
	"github.com/copse-dev/copse/pkg/controllers/podcliqueset"
	"github.com/copse-dev/copse/pkg/controllers/podgang"
	"github.com/copse-dev/copse/pkg/controllers/replica"
	"github.com/copse-dev/copse/pkg/metrics"
	"github.com/copse-dev/copse/pkg/podspec"
	"github.com/copse-dev/copse/pkg/scheduling"
	"github.com/copse-dev/copse/pkg/scheduling/kai"
	"github.com/copse-dev/copse/pkg/scheduling/native"
	"github.com/copse-dev/copse/pkg/scheduling/none"
)

// Options are what the controllers need to know.
type Options struct {
	// NativeGangs says that the cluster schedules gangs itself.
	NativeGangs bool
	// KAISchedulers are the names that pods give to schedulers that are KAI; none where the
	// cluster does not serve KAI's groups.
	KAISchedulers []string
	// ResourceClaims says that the cluster serves them.
	ResourceClaims bool
	// TopologyOff says that gangs are placed without regard to topology constraints.
	TopologyOff bool
	// NativeTopology says that the groups of the cluster's own scheduler have a topology.
	NativeTopology bool
	// KAITopologies says that the cluster serves KAI's topologies.
	KAITopologies bool
	// ClusterDomain is the domain of the cluster's DNS.
	ClusterDomain string
	// UnreadyNodeTimeout is how long a node may be not ready until pods that it should have
	// stopped are taken for stopped; 0 for ever.
	UnreadyNodeTimeout time.Duration
	// Waiter is how pods wait to start, where they do.
	Waiter podspec.Waiter
	// Workers is how many keys each controller works on at once.
	Workers int
	Clock   clock.Clock
	Metrics *metrics.Metrics
}

// Setup adds all controllers to a manager. The error names the one that failed.
func Setup(ctx context.Context, mgr manager.Manager, options Options) error {
	if err := index.Register(ctx, mgr.GetFieldIndexer(), options.NativeGangs); err != nil {
		return err
	}
	if len(options.KAISchedulers) > 0 {
		if err := index.RegisterControlled(ctx, mgr.GetFieldIndexer(), &kai.PodGroup{}); err != nil {
			return err
		}
	}
	if options.ResourceClaims {
		if err := index.RegisterClaims(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
	}
	backends := &scheduling.Backends{Others: none.New(mgr.GetClient()), ByScheduler: map[string]scheduling.Backend{}}
	if options.NativeGangs {
		backends.ByScheduler[corev1.DefaultSchedulerName] = native.New(mgr.GetClient(), options.NativeTopology)
	}
	for _, name := range options.KAISchedulers {
		backends.ByScheduler[name] = kai.New(mgr.GetClient(), options.KAITopologies)
	}
	places := topology.Source{Off: options.TopologyOff, Backends: backends}
	events := recorder{mgr.GetEventRecorder("copse-controller-manager")}

	sets := &podcliqueset.Reconciler{
		Client: mgr.GetClient(), Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Recorder: events, Clock: options.Clock, Pace: pace.New(), Metrics: options.Metrics,
		ResourceClaims: options.ResourceClaims, Topology: places,
	}
	if err := sets.Setup(mgr, workers[reconcile.Request](options.Workers)); err != nil {
		return fmt.Errorf("controller podcliqueset: %w", err)
	}
	replicas := &replica.Reconciler{
		Client: mgr.GetClient(), Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Recorder: events, Clock: options.Clock,
		ResourceClaims: options.ResourceClaims, NativeGangs: options.NativeGangs, Topology: places,
	}
	if err := replicas.Setup(mgr, workers[replica.Key](options.Workers)); err != nil {
		return fmt.Errorf("controller replica: %w", err)
	}
	cliques := &podclique.Reconciler{
		Client: mgr.GetClient(), Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Recorder: events, Clock: options.Clock, Pace: pace.New(),
		Backends: backends, ClusterDomain: options.ClusterDomain, UnreadyNodeTimeout: options.UnreadyNodeTimeout, Waiter: options.Waiter, Metrics: options.Metrics,
	}
	if err := cliques.Setup(mgr, workers[reconcile.Request](options.Workers)); err != nil {
		return fmt.Errorf("controller podclique: %w", err)
	}
	groups := &podcliquescalinggroup.Reconciler{
		Client: mgr.GetClient(), Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Recorder: events, Clock: options.Clock, Metrics: options.Metrics,
	}
	if err := groups.Setup(mgr, workers[reconcile.Request](options.Workers)); err != nil {
		return fmt.Errorf("controller podcliquescalinggroup: %w", err)
	}
	gangs := &podgang.Reconciler{Client: mgr.GetClient(), Clock: options.Clock, Backends: backends, NativeGroups: options.NativeGangs, KAIGroups: len(options.KAISchedulers) > 0}
	if err := gangs.Setup(mgr, workers[reconcile.Request](options.Workers)); err != nil {
		return fmt.Errorf("controller podgang: %w", err)
	}
	if err := setupTopology(mgr, options); err != nil {
		return err
	}
	return options.Metrics.CountPhases(phasesOf(ctx, mgr.GetCache()))
}

// setupTopology adds the controller of ClusterTopologyBindings, where anybody asks for them.
func setupTopology(mgr manager.Manager, options Options) error {
	if options.TopologyOff {
		return nil
	}
	bindings := &clustertopologybinding.Reconciler{Client: mgr.GetClient(), Clock: options.Clock}
	if options.KAITopologies {
		bindings.KAISchedulers = options.KAISchedulers
	}
	if err := bindings.Setup(mgr, workers[reconcile.Request](options.Workers)); err != nil {
		return fmt.Errorf("controller clustertopologybinding: %w", err)
	}
	return nil
}

// How long a pass that has failed waits for the next try. The longest wait is what it may
// take after whatever stood in the way has gone without an event, such as a quota.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Minute
)

// workers are the options of one controller.
func workers[K comparable](n int) controller.TypedOptions[K] {
	return controller.TypedOptions[K]{
		MaxConcurrentReconciles: n,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstRetry, lastRetry),
	}
}
