package podgroup

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/scheduling/none"
)

// parallelWrites bounds how many pods of one group are written at once.
const parallelWrites = 32

// release takes our gate from the pods of a group once as many exist as it needs: their
// scheduler knows no groups, so that is all that can be done for them.
func (r *Reconciler) release(ctx context.Context, s *state) error {
	var there int32
	var held []*corev1.Pod
	for _, pod := range s.members {
		if pod.DeletionTimestamp != nil {
			continue
		}
		there++
		if isHeld(pod) {
			held = append(held, pod)
		}
	}
	wasScheduled := meta.IsStatusConditionTrue(s.group.Status.Conditions, schedulerv1alpha1.PodGroupConditionScheduled)
	if there < s.minPods() && !wasScheduled {
		return nil
	}
	group := errgroup.Group{}
	group.SetLimit(parallelWrites)
	for _, pod := range held {
		group.Go(func() error { return none.Release(ctx, r.Writer, pod) })
	}
	return group.Wait()
}

// isHeld says that our gate holds a pod.
func isHeld(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == naming.PendingGate })
}
