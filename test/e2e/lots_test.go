package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/test/lots"
)

// The hunt for sets that wait for ever, on a cluster: what is drawn by lot is refused with
// the field that is wrong, or starts all that it should, or says what it waits for.

var (
	huntDeep = flag.Bool("hunt.deep", os.Getenv("HUNT_DEEP") != "", "draw a hundred sets, not a sample")
	huntSeed = flag.Uint64("hunt.seed", 0, "draw the set of this seed alone")
)

// huntBounds keep the barrier's time away: pods that come too late are for the tests that
// decide when they come.
var huntBounds = lots.Bounds{Pods: 12, TooBig: 8, Timeouts: [2]int32{300, 600}}

// huntTime is how long a set may take on a machine that is busy with all others.
const huntTime = 3 * time.Minute

func TestNoSetDrawnByLotWaitsForEver(t *testing.T) {
	t.Parallel()
	first, sets := uint64(1), uint64(20)
	if *huntDeep {
		sets = 100
	}
	if *huntSeed > 0 {
		first, sets = *huntSeed, 1
	}
	const namespaces = 4
	var (
		mu    sync.Mutex
		ends  = map[string]int{}
		began = time.Now()
		// The slowest set, and when it had come to its end.
		slow    time.Duration
		slowest uint64
	)
	t.Run("sets", func(t *testing.T) {
		for n := range min(namespaces, sets) {
			t.Run(fmt.Sprint("namespace ", n), func(t *testing.T) {
				t.Parallel()
				ns := cluster.Namespace(t)
				ns.PlayWaiters()
				var group sync.WaitGroup
				for seed := first + n; seed < first+sets; seed += namespaces {
					group.Go(func() {
						lot := lots.Draw(seed, huntBounds)
						end, err := huntOnCluster(t.Context(), ns.Name, lot)
						if err != nil {
							manifest, _ := yaml.Marshal(lot.Set)
							t.Errorf("seed %d: %v\n%s", seed, err, manifest)
						}
						mu.Lock()
						defer mu.Unlock()
						ends[end]++
						if took := time.Since(began); took > slow {
							slow, slowest = took, seed
						}
					})
				}
				group.Wait()
			})
		}
	})
	t.Logf("%d sets after %s, the last of seed %d: %v", sets, slow.Round(time.Second), slowest, ends)
}

// huntOnCluster brings a set to its end, and says which.
func huntOnCluster(ctx context.Context, namespace string, lot lots.Lot) (string, error) {
	set := lot.Set.DeepCopy()
	for i := range set.Spec.Template.Cliques {
		if set.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining {
			set.Spec.Template.Cliques[i].Annotations = map[string]string{"kwok.copse.dev/exit-after": "1s"}
		}
	}
	client := cluster.Copse.GroveV1alpha1().PodCliqueSets(namespace)
	_, err := client.Create(ctx, set, metav1.CreateOptions{})
	switch {
	case apierrors.IsInvalid(err) && lot.Field != "":
		return "refused", namesField(err, lot)
	case err != nil:
		return "", fmt.Errorf("a set without a mistake is refused: %w", err)
	case lot.Field != "":
		return "", errors.New("a set is admitted though " + lot.Mistake)
	}
	end, last := "", error(nil)
	err = wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, huntTime, true, func(ctx context.Context) (bool, error) {
		pcs, err := client.Get(ctx, set.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		end, last = hasEnded(ctx, pcs, lot)
		return last == nil, nil
	})
	if err != nil {
		return "", fmt.Errorf("not within %s: %w", huntTime, last)
	}
	return end, nil
}

// namesField holds that a refusal says which field is wrong, and why.
func namesField(err error, lot lots.Lot) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if strings.HasPrefix(cause.Field, lot.Field) && cause.Message != "" {
				return nil
			}
		}
	}
	return fmt.Errorf("it is not said that %s, at %s: %w", lot.Mistake, lot.Field, err)
}

// hasEnded says what a set has come to, or what it has yet to come to.
func hasEnded(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, lot lots.Lot) (string, error) {
	status := &pcs.Status
	training := pcs.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining
	if status.Phase == grovev1alpha1.PodCliqueSetFailed {
		failed := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeFailed)
		if failed == nil || failed.Reason != grovev1alpha1.ReasonMaxRuntimeExceeded {
			return "", fmt.Errorf("the set has failed: %+v", failed)
		}
		return "ran too long", nil
	}
	if lot.TooBig != "" {
		return "waits for room", saysNoRoom(ctx, pcs)
	}
	if want := lots.CountPods(pcs); int(status.Pods) != want || int(status.AvailablePods) != want {
		return "", fmt.Errorf("%d of %d pods are available, of %d: %+v", status.AvailablePods, status.Pods, want, status.ReplicaStatuses)
	}
	for _, replica := range status.ReplicaStatuses {
		if replica.WaitingFor != nil {
			return "", fmt.Errorf("replica %d waits for %+v", replica.Index, *replica.WaitingFor)
		}
	}
	policy := pcs.Spec.StartupPolicy
	if policy != nil && policy.StartupPolicyOrder == grovev1alpha1.StartupPolicyInOrder && !meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeStartupPolicyCompleted) {
		return "", fmt.Errorf("the order is not completed: %+v", status.Conditions)
	}
	switch {
	case training && status.Phase != grovev1alpha1.PodCliqueSetSucceeded:
		return "", fmt.Errorf("the phase is %s", status.Phase)
	case training:
		return "succeeded", nil
	}
	return "started", nil
}

// saysNoRoom holds that each replica of a set, one clique of which fits nowhere, says so,
// and a gang of it.
func saysNoRoom(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet) error {
	told := int32(0)
	for _, replica := range pcs.Status.ReplicaStatuses {
		if waiting := replica.WaitingFor; waiting != nil && waiting.Status == schedulerv1alpha1.ReasonNotEnoughResources && waiting.Message != "" {
			told++
		}
	}
	if told != pcs.Spec.Replicas {
		return fmt.Errorf("%d of %d replicas say that there is no room: %+v", told, pcs.Spec.Replicas, pcs.Status.ReplicaStatuses)
	}
	gangs, err := cluster.Copse.SchedulerV1alpha1().PodGangs(pcs.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range gangs.Items {
		scheduled := meta.FindStatusCondition(gangs.Items[i].Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled)
		if metav1.IsControlledBy(&gangs.Items[i], pcs) && scheduled != nil && scheduled.Reason == schedulerv1alpha1.ReasonNotEnoughResources {
			return nil
		}
	}
	return errors.New("no gang says that there is no room")
}
