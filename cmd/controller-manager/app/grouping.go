package app

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/copse-dev/copse/pkg/controllers"
	"github.com/copse-dev/copse/pkg/podgrouper/live"
)

// podGrouper makes the pod grouper, which every replica has; nil when it is switched off.
func podGrouper(config *rest.Config, mgr manager.Manager, options *Options, gangs *nativeGangs) (*live.Live, error) {
	if !options.PodGrouper {
		return nil, nil
	}
	grouping, err := live.New(config, mgr.GetScheme(), live.Options{
		Namespace:     options.LeaderElectionNamespace,
		ConfigMap:     options.PodGrouperConfig,
		KAISchedulers: options.KAISchedulerNames,
		NativeGangs:   gangs.served,
		Recorder:      mgr.GetEventRecorder("copse-pod-grouper"),
		Mapper:        mgr.GetRESTMapper(),
		Reader:        mgr.GetAPIReader(),
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(grouping); err != nil {
		return nil, fmt.Errorf("add the pod grouper: %w", err)
	}
	return grouping, nil
}

// startGrouping adds the controllers of the pod grouper, once it knows what it is to do.
func (s *starter) startGrouping(ctx context.Context, nativeGangs bool) error {
	if s.grouping == nil {
		return nil
	}
	if err := s.grouping.WaitReady(ctx); err != nil {
		// Only the end of the context ends the wait.
		return nil
	}
	return controllers.SetupPodGrouper(ctx, s.manager, controllers.PodGrouperOptions{
		Config:      s.config,
		Grouping:    s.grouping,
		NativeGangs: nativeGangs,
		Workers:     s.options.Workers,
		Clock:       clock.RealClock{},
		Metrics:     s.metrics,
	})
}
