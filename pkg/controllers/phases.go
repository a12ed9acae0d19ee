package controllers

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/metrics"
)

// phasesOf counts the sets and gangs of the cache by phase, when somebody asks.
func phasesOf(ctx context.Context, cache client.Reader) func() map[metrics.Phase]int {
	return func() map[metrics.Phase]int {
		// Before the cache is there, a scrape goes without.
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		counts := map[metrics.Phase]int{}
		var sets grovev1alpha1.PodCliqueSetList
		var gangs schedulerv1alpha1.PodGangList
		for _, list := range []client.ObjectList{&sets, &gangs} {
			if err := cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
				log.FromContext(ctx).Error(err, "Cannot count the phases")
			}
		}
		for i := range sets.Items {
			counts[metrics.Phase{Kind: "PodCliqueSet", WorkloadType: string(sets.Items[i].Spec.WorkloadType), Phase: string(sets.Items[i].Status.Phase)}]++
		}
		for i := range gangs.Items {
			counts[metrics.Phase{Kind: "PodGang", Phase: string(gangs.Items[i].Status.Phase)}]++
		}
		return counts
	}
}
