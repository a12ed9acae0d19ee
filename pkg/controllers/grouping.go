package controllers

import (
	"context"
	"fmt"

	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/controllers/podgroup"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/metrics"
	"github.com/copse-dev/copse/pkg/podgrouper/live"
)

// PodGrouperOptions are what the controllers of the pod grouper need to know.
type PodGrouperOptions struct {
	// Config connects to the cluster.
	Config *rest.Config
	// Grouping knows how pods are grouped.
	Grouping *live.Live
	// NativeGangs says that the cluster schedules gangs itself.
	NativeGangs bool
	// Workers is how many keys each controller works on at once.
	Workers int
	Clock   clock.Clock
	Metrics *metrics.Metrics
}

// SetupPodGrouper adds the controllers of the pod grouper to a manager. They have a cache of
// their own, for they read all pods of the cluster.
func SetupPodGrouper(ctx context.Context, mgr manager.Manager, options PodGrouperOptions) error {
	cache, err := pods.NewCache(ctx, options.Config, mgr.GetScheme(), mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if err := mgr.Add(cache); err != nil {
		return fmt.Errorf("add the cache of pods: %w", err)
	}
	authorization, err := authorizationclient.NewForConfig(options.Config)
	if err != nil {
		return err
	}
	writer, err := client.New(options.Config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	groups := &podgroup.Reconciler{
		Client: mgr.GetClient(), Writer: writer, Pods: cache, Live: mgr.GetAPIReader(), Grouping: options.Grouping, Recorder: recorder{mgr.GetEventRecorder("copse-pod-grouper")},
		Clock: options.Clock, Pace: pace.New(), Metrics: options.Metrics, NativeGangs: options.NativeGangs,
	}
	return groups.Setup(ctx, mgr, podgroup.Setting{
		Cache: cache, Reviews: authorization.SelfSubjectAccessReviews(), OnChange: options.Grouping.OnChange,
		Groups: workers[reconcile.Request](options.Workers), Pods: workers[podgroup.PodKey](options.Workers),
	})
}
