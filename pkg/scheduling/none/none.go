// Package none places gangs with schedulers that know of no gangs: the pods of a gang are
// held by a scheduling gate until all that are needed exist, and released together. From
// then on the scheduler places them one by one, so that a gang may come to run in part.
package none

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/scheduling"
)

// parallelWrites bounds how many pods of one gang are released at once.
const parallelWrites = 32

// Backend is the back end.
type Backend struct {
	client client.Client
}

var _ scheduling.Backend = &Backend{}

// New returns the back end.
func New(c client.Client) *Backend {
	return &Backend{client: c}
}

// Name of the back end.
func (*Backend) Name() string { return "none" }

// Topology says that such schedulers are told of none.
func (*Backend) Topology() gang.TopologySupport {
	return gang.TopologySupport{Lacks: "the scheduler places pods one by one, and is told of no topology"}
}

// PreparePod holds a pod until its gang is complete. A gang that was complete once waits
// for nobody.
func (*Backend) PreparePod(pod *corev1.Pod, podGang *schedulerv1alpha1.PodGang) {
	if gang.WasScheduled(podGang) {
		return
	}
	pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: naming.PendingGate})
}

// PrepareSurplus does nothing: such a pod waits for nobody.
func (*Backend) PrepareSurplus(*corev1.Pod, *schedulerv1alpha1.PodGang) {}

// Sync releases the pods of a gang once all that it needs exist. One that has ended counts:
// it was released before the others were.
func (b *Backend) Sync(ctx context.Context, podGang *schedulerv1alpha1.PodGang, needed gang.Needed) error {
	members, err := scheduling.Members(ctx, b.client, podGang)
	if err != nil {
		return err
	}
	var there int32
	var held []*corev1.Pod
	for _, pod := range members {
		if pod.DeletionTimestamp != nil {
			continue
		}
		there++
		if isHeld(pod) {
			held = append(held, pod)
		}
	}
	if there < needed.Members && !gang.WasScheduled(podGang) {
		return nil
	}
	group := errgroup.Group{}
	group.SetLimit(parallelWrites)
	for _, pod := range held {
		group.Go(func() error { return Release(ctx, b.client, pod) })
	}
	return group.Wait()
}

func isHeld(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.SchedulingGates {
		if gate.Name == naming.PendingGate {
			return true
		}
	}
	return false
}

// Release takes our gate from a pod, and no other. A pod that has gone needs no release; one
// that took its name is not touched.
func Release(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"schedulingGates":[{"$patch":"delete","name":%q}]}}`, pod.UID, naming.PendingGate)
	target := &corev1.Pod{}
	target.Namespace, target.Name = pod.Namespace, pod.Name
	err := c.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("release pod %s: %w", pod.Name, err)
	}
	return nil
}

// Observe says what the pods say, for the scheduler does not speak of gangs.
func (b *Backend) Observe(ctx context.Context, podGang *schedulerv1alpha1.PodGang) (scheduling.Observation, error) {
	members, err := scheduling.Members(ctx, b.client, podGang)
	if err != nil {
		return scheduling.Observation{}, err
	}
	return scheduling.Observation{Untold: true, Why: scheduling.Unplaced(members), Gated: scheduling.Gated(members)}, nil
}
