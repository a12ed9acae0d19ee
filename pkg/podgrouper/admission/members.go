package admission

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// Groupers knows how pods are grouped at the moment.
type Groupers interface {
	// Current is nil while that is not known yet.
	Current() *podgrouper.Grouper
}

// Owners finds the owners of pods.
type Owners interface {
	Find(ctx context.Context, pod *corev1.Pod) (owners.Chain, error)
}

// Members makes pods members of groups.
type Members struct {
	Groupers Groupers
	Owners   Owners
	// Cache has the PodGroups, and the scheduler's.
	Cache client.Reader
	// Live reads what is not in the cache.
	Live client.Reader
	// Classes are the PriorityClasses of the cluster.
	Classes Classes
	// Recent are the groups that pods were put into before they could be in the cache.
	Recent *Recent
}

// Request is one question of the API server.
type Request struct {
	// ID stands for the UID of the pod, which it has not yet: it is another for each pod.
	ID string
	// DryRun says that the pod is only tried out.
	DryRun bool
}

// Add makes a pod a member of its group, if it has one, and returns what its user should
// know. The pod has its namespace.
func (m *Members) Add(ctx context.Context, pod *corev1.Pod, req Request) ([]string, error) {
	if pod.Spec.SchedulingGroup != nil || len(pod.Spec.EvictionResponders) > 0 {
		// It has its group, by us when we are asked once more, or can be in none.
		return nil, nil
	}
	grouper := m.Groupers.Current()
	if grouper == nil {
		return nil, notYet(fmt.Errorf("the pod grouper is starting"))
	}
	if grouper.BackEnd(pod) == podgrouper.KAI {
		// KAI takes pods at any time, so their creation depends on nobody.
		return nil, nil
	}
	forgetCopies(pod)
	// What the pod itself tells saves the search for its owners.
	alone, err := grouper.Identify(pod, owners.Chain{})
	switch {
	case err == nil && alone.Exempt == podgrouper.OtherScheduler:
		return nil, m.hold(ctx, pod)
	case err == nil && alone.Exempt != "" && alone.Exempt != podgrouper.GroupedByHand:
		return nil, nil
	}
	chain, err := m.Owners.Find(ctx, pod)
	if err != nil {
		return nil, notYet(err)
	}
	identity, err := grouper.Identify(pod, chain)
	if err != nil {
		return nil, never("the group of the pod cannot be told: %w", err)
	}
	switch identity.Exempt {
	case "":
		return m.group(ctx, grouper, pod, chain, identity, req)
	case podgrouper.GroupedByHand:
		return m.groupByHand(ctx, pod)
	}
	return nil, nil
}

// forgetCopies takes our marks off a pod that was written after another: a pod that is being
// created, and has no group, was not grouped by us.
func forgetCopies(pod *corev1.Pod) {
	if pod.Annotations[podgrouper.GroupedByAnnotation] == podgrouper.GroupedByValue {
		delete(pod.Annotations, podgrouper.GroupedByAnnotation)
		delete(pod.Annotations, podgrouper.PodGroupAnnotation)
	}
}

// group puts a pod into the group of its owner.
func (m *Members) group(ctx context.Context, grouper *podgrouper.Grouper, pod *corev1.Pod, chain owners.Chain, identity podgrouper.Identity, req Request) ([]string, error) {
	notes := identity.Notes
	name, class := identity.Name, identity.PriorityClassName
	var live *groupClass
	if name == "" {
		name = podgrouper.NameForPod(pod, req.ID)
	} else {
		var err error
		if live, err = m.liveClass(ctx, pod.Namespace, name); err != nil {
			return nil, notYet(err)
		}
	}
	if live == nil && identity.PriorityInOwner {
		group, err := grouper.Describe(ctx, pod, chain, m.Live)
		switch {
		case podgrouper.IsInvalid(err):
			// The group is the same, whatever is wrong with the owner.
			notes = append(slices.Clone(notes), podgrouper.Note{Reason: "InvalidOwner", Message: err.Error()})
		case err != nil:
			return nil, notYet(err)
		default:
			class, notes = group.PriorityClassName, group.Notes
		}
	}
	var warnings []string
	for _, note := range notes {
		warnings = append(warnings, note.Reason+": "+note.Message)
	}
	asked := class
	switch {
	case live != nil && !m.canHave(live):
		// A pod of another priority would keep the whole group from being placed.
		return append(warnings, fmt.Sprintf("NotGrouped: group %s has %s and a priority that no pod gets by that any more; the pod is scheduled without it", name, describe(live.name))), nil
	case live != nil:
		class = live.name
	}
	if m.tooHigh(class) {
		return append(warnings, fmt.Sprintf("NotGrouped: group %s would have %s and a priority above %d, the highest that Kubernetes' scheduler takes for a group; the pod is scheduled without it", name, describe(class), gang.HighestPriority)), nil
	}
	if live == nil && !identity.PerPod {
		class = m.Recent.first(types.NamespacedName{Namespace: pod.Namespace, Name: name}, class, req.DryRun)
	}
	join(pod, name, identity.SubGroup)
	if live != nil || class != asked {
		return append(warnings, follow(pod, name, asked, class)...), nil
	}
	if class != "" {
		setClass(pod, class)
	}
	return warnings, nil
}

// join writes the group into a pod.
func join(pod *corev1.Pod, group, subGroup string) {
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[podgrouper.PodGroupAnnotation] = group
	pod.Annotations[podgrouper.GroupedByAnnotation] = podgrouper.GroupedByValue
	if subGroup == "" {
		return
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[podgrouper.SubGroupLabel] = subGroup
}
