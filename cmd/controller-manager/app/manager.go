// Package app is the command of the controller manager: its flags, and how it starts
// and ends.
package app

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers"
	"github.com/copse-dev/copse/pkg/metrics"
	"github.com/copse-dev/copse/pkg/podgrouper/live"
	"github.com/copse-dev/copse/pkg/scheduling/kai"
	"github.com/copse-dev/copse/pkg/version"
)

// apiPollInterval is how often a manager that starts before the APIs looks for them.
const apiPollInterval = time.Second

// NewCommand returns the command. It runs until ctx ends.
func NewCommand(ctx context.Context) *cobra.Command {
	options := NewOptions()
	cmd := &cobra.Command{
		Use:          "copse-controller-manager",
		Short:        "Run the pods of PodCliqueSets",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		Version:      version.String(),
		RunE: func(*cobra.Command, []string) error {
			logs.InitLogs()
			if err := logsapi.ValidateAndApply(options.Logs, nil); err != nil {
				return err
			}
			ctrl.SetLogger(klog.Background())
			if err := options.Validate(); err != nil {
				return err
			}
			return Run(ctx, options)
		},
	}
	options.AddFlags(cmd.Flags())
	return cmd
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(grovev1alpha1.AddToScheme(scheme))
	utilruntime.Must(schedulerv1alpha1.AddToScheme(scheme))
	utilruntime.Must(kai.AddToScheme(scheme))
	return scheme
}

// Run runs the controllers until ctx ends.
func Run(ctx context.Context, options *Options) error {
	restConfig, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	// The servers' priority and fairness bounds us; a limit here would only hide it.
	restConfig.QPS = -1
	restConfig.UserAgent = "copse-controller-manager"
	own, err := metrics.New(crmetrics.Registry)
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(restConfig)
	if err != nil {
		return err
	}
	stop, err := serveHealth(ctx, options.HealthProbeBindAddress)
	if err != nil {
		return err
	}
	resourceClaims := servesResourceClaims(ctx, client)
	stop()
	if ctx.Err() != nil {
		return nil
	}
	mgr, err := manager.New(restConfig, managerOptions(options, resourceClaims))
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	gangs := &nativeGangs{client: client}
	grouping, err := podGrouper(restConfig, mgr, options, gangs)
	if err != nil {
		return err
	}
	if err := serveWebhook(mgr, options, grouping); err != nil {
		return err
	}
	starter := &starter{config: restConfig, manager: mgr, options: options, metrics: own, discovery: client, gangs: gangs, resourceClaims: resourceClaims, grouping: grouping}
	if err := mgr.Add(starter); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", func(*http.Request) error { return nil }); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("controllers", starter.ready); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func managerOptions(options *Options, resourceClaims bool) manager.Options {
	cached := cacheOptions(resourceClaims)
	maps.Copy(cached.ByObject, webhookCache(options))
	return manager.Options{
		Scheme:                        newScheme(),
		Cache:                         cached,
		Client:                        clientOptions(),
		NewClient:                     newClient,
		HealthProbeBindAddress:        options.HealthProbeBindAddress,
		Metrics:                       metricsserver.Options{BindAddress: options.MetricsBindAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization},
		LeaderElection:                options.LeaderElect,
		LeaderElectionID:              "copse-controller-manager",
		LeaderElectionNamespace:       options.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &options.LeaseDuration,
		RenewDeadline:                 &options.RenewDeadline,
		RetryPeriod:                   &options.RetryPeriod,
		// A controller whose API is down waits for it: exiting would lose what it knows
		// and help nobody.
		Controller: config.Controller{CacheSyncTimeout: 24 * 365 * time.Hour},
	}
}

// starter adds the controllers once this replica leads and the APIs are served.
type starter struct {
	config  *rest.Config
	manager manager.Manager
	options *Options
	metrics *metrics.Metrics
	// discovery says what the cluster serves, and gangs whether it schedules gangs.
	discovery discovery.DiscoveryInterface
	gangs     *nativeGangs
	// resourceClaims says that the cluster serves them.
	resourceClaims bool
	// grouping is nil when pods are not grouped.
	grouping *live.Live
	started  atomic.Bool
}

var _ manager.LeaderElectionRunnable = &starter{}

// NeedLeaderElection says that only the leader runs controllers.
func (*starter) NeedLeaderElection() bool { return true }

// Start waits for the APIs and adds the controllers.
func (s *starter) Start(ctx context.Context) error {
	if err := waitForAPIs(ctx, s.discovery); err != nil {
		// Only the end of the context ends the wait.
		return nil
	}
	nativeGangs := s.gangs.served(ctx)
	kaiSchedulers := servedKAISchedulers(ctx, s.discovery, s.options.KAISchedulerNames)
	nativeTopology := nativeGangs && s.options.TopologyAwareScheduling && s.nativeTopology(ctx)
	kaiTopologies := len(kaiSchedulers) > 0 && s.options.TopologyAwareScheduling && servedKAITopologies(ctx, s.discovery)
	waiter, err := s.options.waiter()
	if err != nil {
		return err
	}
	err = controllers.Setup(ctx, s.manager, controllers.Options{
		Waiter:             waiter,
		NativeGangs:        nativeGangs,
		KAISchedulers:      kaiSchedulers,
		ResourceClaims:     s.resourceClaims,
		TopologyOff:        !s.options.TopologyAwareScheduling,
		NativeTopology:     nativeTopology,
		KAITopologies:      kaiTopologies,
		ClusterDomain:      s.options.ClusterDomain,
		UnreadyNodeTimeout: s.options.UnreadyNodeTimeout,
		Workers:            s.options.Workers,
		Clock:              clock.RealClock{},
		Metrics:            s.metrics,
	})
	if err != nil {
		return err
	}
	if err := s.startGrouping(ctx, nativeGangs); err != nil {
		return err
	}
	if err := s.manager.Add(&revisionWatch{reader: s.manager.GetAPIReader()}); err != nil {
		return err
	}
	s.started.Store(true)
	klog.InfoS("Controllers are running", "nativeGangs", nativeGangs, "nativeTopology", nativeTopology, "kaiSchedulers", kaiSchedulers, "kaiTopologies", kaiTopologies, "resourceClaims", s.resourceClaims)
	<-ctx.Done()
	return nil
}

// ready says whether this replica can do its work: as the leader, or as one that waits
// to become it.
func (s *starter) ready(*http.Request) error {
	select {
	case <-s.manager.Elected():
	default:
		return nil
	}
	if !s.started.Load() {
		return fmt.Errorf("waiting for the APIs of %s and %s", grovev1alpha1.SchemeGroupVersion, schedulerv1alpha1.SchemeGroupVersion)
	}
	return nil
}

// waitForAPIs waits until both API groups are served, and says what it waits for.
func waitForAPIs(ctx context.Context, client discovery.DiscoveryInterface) error {
	for _, gv := range []string{grovev1alpha1.SchemeGroupVersion.String(), schedulerv1alpha1.SchemeGroupVersion.String()} {
		err := wait.PollUntilContextCancel(ctx, apiPollInterval, true, func(context.Context) (bool, error) {
			_, err := client.ServerResourcesForGroupVersion(gv)
			if err != nil {
				klog.InfoS("Waiting for an API to be served", "groupVersion", gv, "err", err)
			}
			return err == nil, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// servedKAISchedulers are the names, if the cluster serves the groups that KAI reads.
func servedKAISchedulers(ctx context.Context, client discovery.DiscoveryInterface, names []string) []string {
	if len(names) == 0 || serves(ctx, client, kai.GroupVersion, kai.Resource) {
		return names
	}
	if ctx.Err() == nil {
		klog.InfoS("KAI is not installed: its pods are held until their gang is complete, and it is told of no gang. It is looked for when this program begins to lead, and not again",
			"schedulers", names, "groupVersion", kai.GroupVersion)
	}
	return nil
}

// servesResourceClaims says whether the cluster serves what pods of a set may share. The cache has
// to know before it is made.
func servesResourceClaims(ctx context.Context, client discovery.DiscoveryInterface) bool {
	served := serves(ctx, client, resourcev1.SchemeGroupVersion, "resourceclaims")
	if !served && ctx.Err() == nil {
		klog.InfoS("The cluster does not serve ResourceClaims: sets that share resources say so in a condition, and their pods are not scheduled", "groupVersion", resourcev1.SchemeGroupVersion)
	}
	return served
}

// serves says whether the cluster serves a resource that it may do without. The answer has to
// be known, so an API server that does not answer is waited for.
func serves(ctx context.Context, client discovery.DiscoveryInterface, groupVersion schema.GroupVersion, resource string) bool {
	served := false
	_ = wait.PollUntilContextCancel(ctx, apiPollInterval, true, func(context.Context) (bool, error) {
		groups, err := client.ServerGroups()
		if err != nil {
			klog.InfoS("Waiting for the cluster to say what it serves", "groupVersion", groupVersion, "err", err)
			return false, nil
		}
		if !hasVersion(groups, groupVersion.String()) {
			return true, nil
		}
		list, err := client.ServerResourcesForGroupVersion(groupVersion.String())
		served = isServed(list, err, resource)
		return err == nil, nil
	})
	return served
}

func hasVersion(groups *metav1.APIGroupList, groupVersion string) bool {
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if version.GroupVersion == groupVersion {
				return true
			}
		}
	}
	return false
}
