package clustertopologybinding

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/scheduling/kai"
)

// observed is what KAI has.
type observed struct {
	// topologies are those that the binding speaks of, by name.
	topologies map[string]*kai.Topology
	// refused is why KAI does not take the topology of the binding's name; empty when it does.
	refused string
}

// decide returns the next status of a binding.
func decide(binding *grovev1alpha1.ClusterTopologyBinding, schedulers []string, seen observed, now time.Time) grovev1alpha1.ClusterTopologyBindingStatus {
	status := *binding.Status.DeepCopy()
	status.ObservedGeneration = ptr.To(binding.Generation)
	status.SchedulerTopologyStatuses = nil
	var missing, differing []string
	for _, entry := range entriesOf(binding, schedulers) {
		found := compare(binding, &entry, slices.Contains(schedulers, entry.SchedulerName), seen)
		status.SchedulerTopologyStatuses = append(status.SchedulerTopologyStatuses, entry)
		text := fmt.Sprintf("%s: %s", entry.SchedulerName, entry.Message)
		switch {
		case !found:
			missing = append(missing, text)
		case !entry.InSync:
			differing = append(differing, text)
		}
	}
	value, reason, message := metav1.ConditionFalse, grovev1alpha1.ReasonTopologyInSync, "the schedulers' topologies have the levels of the binding"
	switch {
	case len(missing) > 0:
		value, reason, message = metav1.ConditionUnknown, grovev1alpha1.ReasonTopologyNotFound, strings.Join(append(missing, differing...), "; ")
	case len(differing) > 0:
		value, reason, message = metav1.ConditionTrue, grovev1alpha1.ReasonTopologyDrift, strings.Join(differing, "; ")
	case len(status.SchedulerTopologyStatuses) == 0:
		message = "no scheduler has a topology object: KAI's topologies are not served, and Kubernetes' own scheduler goes by the labels of nodes"
	}
	setCondition(&status, binding.Generation, now, value, reason, message)
	return status
}

// setCondition tells whether schedulers have other levels. Its time does not go back, though
// a controller whose clock is ahead may have written it.
func setCondition(status *grovev1alpha1.ClusterTopologyBindingStatus, generation int64, now time.Time, value metav1.ConditionStatus, reason, message string) {
	const conditionType = grovev1alpha1.ConditionTypeSchedulerTopologyDrift
	if before := meta.FindStatusCondition(status.Conditions, conditionType); before != nil && now.Before(before.LastTransitionTime.Time) {
		now = before.LastTransitionTime.Time
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: conditionType, Status: value, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// entriesOf are the schedulers that the binding names, and those that are given its topology.
func entriesOf(binding *grovev1alpha1.ClusterTopologyBinding, schedulers []string) []grovev1alpha1.SchedulerTopologyStatus {
	var out []grovev1alpha1.SchedulerTopologyStatus
	named := map[string]bool{}
	for _, ref := range binding.Spec.SchedulerTopologyBindings {
		named[ref.SchedulerName] = true
		out = append(out, grovev1alpha1.SchedulerTopologyStatus{SchedulerTopologyBinding: ref})
	}
	for _, scheduler := range schedulers {
		if !named[scheduler] {
			out = append(out, grovev1alpha1.SchedulerTopologyStatus{
				SchedulerTopologyBinding: grovev1alpha1.SchedulerTopologyBinding{SchedulerName: scheduler, TopologyReference: binding.Name},
			})
		}
	}
	return out
}

// compare fills in how a scheduler's topology compares, and says whether there is one.
func compare(binding *grovev1alpha1.ClusterTopologyBinding, entry *grovev1alpha1.SchedulerTopologyStatus, isKAI bool, seen observed) bool {
	topology := seen.topologies[entry.TopologyReference]
	switch {
	case !isKAI:
		entry.Message = "no scheduler of this name has topology objects that are known"
		return false
	case topology == nil && seen.refused != "" && entry.TopologyReference == binding.Name:
		entry.Message = "the topology is refused: " + seen.refused
		return true
	case topology == nil:
		entry.Message = fmt.Sprintf("there is no Topology %q", entry.TopologyReference)
		return false
	}
	entry.SchedulerBackendTopologyObservedGeneration = topology.Generation
	if have, want := topology.Keys(), keysOf(binding); !slices.Equal(have, want) {
		entry.Message = fmt.Sprintf("Topology %q has the levels %s, and the binding %s", topology.Name, strings.Join(have, " > "), strings.Join(want, " > "))
		return true
	}
	entry.InSync = true
	return true
}
