package storage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// columns shows what a person asks of a set: what it does and what it waits for.
func columns() internalrest.Columns[*grove.PodCliqueSet] {
	return internalrest.Columns[*grove.PodCliqueSet]{
		Clock: clock.RealClock{},
		Definitions: []metav1.TableColumnDefinition{
			internalrest.NameColumn(),
			{Name: "Type", Type: "string", Description: "Inference or Training"},
			{Name: "Phase", Type: "string", Description: "where the workload is in its life"},
			{Name: "Replicas", Type: "string", Description: "available replicas of those wanted; in Training, available or succeeded ones"},
			{Name: "Pods", Type: "string", Description: "pods that are Ready of those wanted; in Training, Ready or succeeded ones"},
			{Name: "Updated", Type: "string", Description: "replicas that follow the current template of those wanted; in Training the template does not change"},
			{Name: "Restarts", Type: "string", Description: "restarts so far, of those allowed in Training"},
			{Name: "Waiting For", Type: "string", Description: "what holds the set back"},
			internalrest.AgeColumn(),
			{Name: "Started", Type: "string", Priority: 1, Description: "time since the set first ran"},
			{Name: "Duration", Type: "string", Priority: 1, Description: "how long a finished set ran"},
			{Name: "Hash", Type: "string", Priority: 1, Description: "hash of the current template"},
		},
		Cells: cells,
	}
}

func cells(pcs *grove.PodCliqueSet, now time.Time) []any {
	status := &pcs.Status
	started, ran := "<none>", "<none>"
	if status.StartTime != nil {
		started = internalrest.Since(status.StartTime.Time, now)
		if status.CompletionTime != nil {
			ran = internalrest.Since(status.StartTime.Time, status.CompletionTime.Time)
		}
	}
	return []any{
		pcs.Name,
		string(pcs.Spec.WorkloadType),
		phase(pcs),
		fmt.Sprintf("%d/%d", status.AvailableReplicas, pcs.Spec.Replicas),
		fmt.Sprintf("%d/%d", status.AvailablePods, status.Pods),
		updated(pcs),
		restarts(pcs),
		waitingFor(pcs),
		internalrest.Age(pcs, now),
		started,
		ran,
		ptr.Deref(status.CurrentGenerationHash, ""),
	}
}

func phase(pcs *grove.PodCliqueSet) string {
	switch {
	case pcs.DeletionTimestamp != nil:
		return "Terminating"
	case pcs.Status.Phase == "":
		return "<none>"
	case pcs.Status.Phase != grove.PodCliqueSetFailed && meta.IsStatusConditionTrue(pcs.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget):
		return "Failing"
	}
	return string(pcs.Status.Phase)
}

func updated(pcs *grove.PodCliqueSet) string {
	if pcs.Spec.WorkloadType == grove.WorkloadTypeTraining {
		return ""
	}
	return fmt.Sprintf("%d/%d", pcs.Status.UpdatedReplicas, pcs.Spec.Replicas)
}

func restarts(pcs *grove.PodCliqueSet) string {
	if pcs.Spec.WorkloadType != grove.WorkloadTypeTraining {
		return ""
	}
	var allowed int32
	if pcs.Spec.TrainingSpec != nil {
		allowed = ptr.Deref(pcs.Spec.TrainingSpec.MaxRestarts, 0)
	}
	return fmt.Sprintf("%d/%d", pcs.Status.RestartCount, allowed)
}

// waitingFor shows what the first waiting replica waits for; a failed set shows why it failed.
func waitingFor(pcs *grove.PodCliqueSet) string {
	if failure := meta.FindStatusCondition(pcs.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget); failure != nil && failure.Status == metav1.ConditionTrue {
		return failure.Reason
	}
	for _, replica := range pcs.Status.ReplicaStatuses {
		if w := replica.WaitingFor; w != nil {
			return nextStage(pcs, &replica) + summary(w)
		}
	}
	return ""
}

// nextStage names the clique that waits for its turn, in a staged set.
func nextStage(pcs *grove.PodCliqueSet, replica *grove.PodCliqueSetReplicaStatus) string {
	policy := pcs.Spec.StartupPolicy
	if policy == nil || policy.StartupPolicyOrder != grove.StartupPolicyInOrder || replica.WaitingFor.Clique == "" {
		return ""
	}
	for i := range pcs.Spec.Template.Cliques {
		if name := pcs.Spec.Template.Cliques[i].Name; !slices.Contains(replica.OpenStages, name) {
			return name + ": "
		}
	}
	return ""
}

func summary(w *grove.WaitingFor) string {
	text := fmt.Sprintf("%s (%d/%d)", w.Status, w.Have, w.Want)
	if w.Clique != "" {
		text = w.Clique + " " + text
	}
	if w.Message != "" {
		text = w.Status + ": " + w.Message
	}
	return strings.TrimSpace(text)
}
