package rules

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

const mpiLauncher = "Launcher"

// mpiJob groups the launcher and the workers of an MPI job, of which all are needed unless
// it asks for less (seed 004). It may have no more than a launcher, as its operator has it. A
// launcher that is made when the workers are ready does not count before: they would wait for
// it, and it for them.
func mpiJob(ctx context.Context, in podgrouper.Input, owner fields.Fields, reader client.Reader) (podgrouper.Shape, error) {
	byType, total := replicasOf(owner, "mpiReplicaSpecs", mpiLauncher)
	asked, atOnce := minAvailable(owner, total), total
	if owner.String("spec", "launcherCreationPolicy") == "WaitForWorkersReady" {
		launched, err := hasLauncher(ctx, in, reader)
		if err != nil {
			return podgrouper.Shape{}, err
		}
		if !launched {
			atOnce -= byType[mpiLauncher]
		}
	}
	minimum, notes := atMost(asked, total)
	// That the launcher is yet to come is nobody's mistake, and not worth a note.
	minimum = ptr.To(min(*minimum, atOnce))
	return podgrouper.Shape{MinMember: minimum, AtOnce: &atOnce, Notes: notes}, nil
}

// hasLauncher says whether there is a launcher that does not terminate.
func hasLauncher(ctx context.Context, in podgrouper.Input, reader client.Reader) (bool, error) {
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(in.Pod.Namespace), client.MatchingLabels{kubeflowJobName: in.Owner.Name}); err != nil {
		return false, fmt.Errorf("list the pods of MPIJob %s: %w", in.Owner.Name, err)
	}
	for i := range pods.Items {
		if isLauncher(&pods.Items[i]) && pods.Items[i].DeletionTimestamp == nil {
			return true, nil
		}
	}
	return false, nil
}

// isLauncher knows the label of the MPI operator, and the one of the training operator.
func isLauncher(pod *corev1.Pod) bool {
	return strings.EqualFold(pod.Labels[kubeflowJobRole], mpiLauncher) || strings.EqualFold(pod.Labels[kubeflowReplicaType], mpiLauncher)
}
