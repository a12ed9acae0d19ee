package kai

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// saidAnnotation names the fields of a group that its gang has said something about: without
// a word of the gang's they are reset, and others are people's.
const saidAnnotation = "scheduler.grove.io/said-by-gang"

// CarriedLabels are the labels by which people tell KAI about a PodCliqueSet. Its PodGangs
// carry them, of which the groups are made.
func CarriedLabels() []string {
	return []string{podgrouper.QueueLabel, podgrouper.ProjectLabel, podgrouper.NodePoolLabel, podgrouper.PreemptibilityLabel}
}

// CarriedAnnotations are the same of annotations.
func CarriedAnnotations() []string {
	return []string{podgrouper.TopologyAnnotation, podgrouper.RequiredPlacementAnnotation, podgrouper.PreferredPlacementAnnotation}
}

// desiredGroup is the group of a gang of which so many members of each clique are needed. A
// clique of which nobody is needed is no subgroup: KAI takes no minimum of 0 before v0.15.
func desiredGroup(podGang *schedulerv1alpha1.PodGang, needed map[string]int32) *PodGroup {
	groupLabels := maps.Clone(podGang.Labels)
	if groupLabels == nil {
		groupLabels = map[string]string{}
	}
	groupLabels[labels.PodGang] = podGang.Name
	queue := queueOf(podGang)
	if len(validation.IsValidLabelValue(queue)) == 0 {
		groupLabels[podgrouper.QueueLabel] = queue
	}
	subGroups := subGroupsOf(podGang, needed)
	group := &PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:            groupName(podGang),
			Namespace:       podGang.Namespace,
			Labels:          groupLabels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(podGang, schedulerv1alpha1.SchemeGroupVersion.WithKind("PodGang"))},
		},
		// KAI's defaults hold for what is left out, such as markUnschedulable and schedulingBackoff.
		Spec: PodGroupSpec{
			MinMember:          sumOf(subGroups),
			Queue:              queue,
			PriorityClassName:  podGang.Spec.PriorityClassName,
			Preemptibility:     preemptibilityOf(podGang),
			TopologyConstraint: topologyOf(podGang),
			SubGroups:          subGroups,
		},
	}
	if said := saidIn(&group.Spec); said != "" {
		metav1.SetMetaDataAnnotation(&group.ObjectMeta, saidAnnotation, said)
	}
	return group
}

// saidIn names what is said of that of which a gang need say nothing.
func saidIn(spec *PodGroupSpec) string {
	var said []string
	if spec.PriorityClassName != "" {
		said = append(said, "priorityClassName")
	}
	if spec.Preemptibility != "" {
		said = append(said, "preemptibility")
	}
	if spec.TopologyConstraint != nil {
		said = append(said, "topologyConstraint")
	}
	return strings.Join(said, ",")
}

// subGroupsOf are the cliques of a gang, and above them those groups of cliques that are
// placed together.
func subGroupsOf(podGang *schedulerv1alpha1.PodGang, needed map[string]int32) []SubGroup {
	var parents, leaves []SubGroup
	parentOf := map[string]string{}
	for _, config := range podGang.Spec.TopologyConstraintGroupConfigs {
		placed := placement(podGang, config.TopologyConstraint)
		name := parentName(podGang, config.Name)
		if placed == nil {
			continue
		}
		used := false
		for _, member := range config.PodGroupNames {
			parentOf[member] = name
			used = used || needed[member] > 0
		}
		if used {
			parents = append(parents, SubGroup{Name: name, TopologyConstraint: placed})
		}
	}
	for _, group := range podGang.Spec.PodGroups {
		if needed[group.Name] < 1 {
			continue
		}
		leaf := SubGroup{Name: podgrouper.SubGroupName(group.Name), MinMember: needed[group.Name], TopologyConstraint: placement(podGang, group.TopologyConstraint)}
		if parent := parentOf[group.Name]; parent != "" {
			leaf.Parent = ptr.To(parent)
		}
		leaves = append(leaves, leaf)
	}
	return append(parents, leaves...)
}

// parentName is the name of the subgroup above others. A clique may have the name that a copy
// of a scaling group has.
func parentName(podGang *schedulerv1alpha1.PodGang, config string) string {
	name := podgrouper.SubGroupName(config)
	for _, group := range podGang.Spec.PodGroups {
		if podgrouper.SubGroupName(group.Name) == name {
			return podgrouper.SubGroupName(config + "-" + naming.Hash(config))
		}
	}
	return name
}

// sumOf is the minimum of a whole group: that of its leaves.
func sumOf(subGroups []SubGroup) int32 {
	var sum int32
	for i := range subGroups {
		sum += subGroups[i].MinMember
	}
	return sum
}

// queueOf is the queue that is named, or the one that the project has in its node pool, as
// KAI's own grouper has it.
func queueOf(podGang *schedulerv1alpha1.PodGang) string {
	if queue := podGang.Labels[podgrouper.QueueLabel]; queue != "" {
		return queue
	}
	project, pool := podGang.Labels[podgrouper.ProjectLabel], podGang.Labels[podgrouper.NodePoolLabel]
	switch {
	case project == "":
		return podgrouper.DefaultQueue
	case pool == "":
		return project
	}
	return project + "-" + pool
}

// preemptibilityOf is what the label says, if it is one of the two words that KAI takes: the
// group would be refused with another. KAI decides by the priority else.
func preemptibilityOf(podGang *schedulerv1alpha1.PodGang) string {
	switch value := podGang.Labels[podgrouper.PreemptibilityLabel]; schedulerv1alpha1.Preemptibility(value) {
	case schedulerv1alpha1.Preemptible, schedulerv1alpha1.NonPreemptible:
		return value
	}
	return ""
}

// topologyOf is where the whole gang is placed: by its constraint, else by KAI's annotations.
func topologyOf(podGang *schedulerv1alpha1.PodGang) *TopologyConstraint {
	if placed := placement(podGang, podGang.Spec.TopologyConstraint); placed != nil {
		return placed
	}
	annotations := podGang.Annotations
	return topology(annotations[podgrouper.TopologyAnnotation], annotations[podgrouper.RequiredPlacementAnnotation], annotations[podgrouper.PreferredPlacementAnnotation])
}

// placement is a constraint in KAI's words. KAI's levels are keys of node labels too, but it
// looks for them in a topology that it knows by name. Where the gang names none the constraint
// cannot be told, and the pods are placed freely.
func placement(podGang *schedulerv1alpha1.PodGang, constraint *schedulerv1alpha1.TopologyConstraint) *TopologyConstraint {
	if constraint == nil || constraint.PackConstraint == nil {
		return nil
	}
	name := podGang.Annotations[labels.TopologyName]
	if name == "" {
		name = podGang.Annotations[podgrouper.TopologyAnnotation]
	}
	return topology(name, ptr.Deref(constraint.PackConstraint.Required, ""), ptr.Deref(constraint.PackConstraint.Preferred, ""))
}

func topology(name, required, preferred string) *TopologyConstraint {
	placed, _ := podgrouper.ReadTopology(name, required, preferred)
	if placed == nil {
		return nil
	}
	return &TopologyConstraint{Topology: placed.Name, RequiredTopologyLevel: placed.Required, PreferredTopologyLevel: placed.Preferred}
}

// groupName is new with each gang object and attempt. KAI tells groups apart by name, up to
// some versions without the namespace.
func groupName(podGang *schedulerv1alpha1.PodGang) string {
	return naming.SchedulingGroup(podGang.Name, podGang.UID, gang.GangAttempt(podGang))
}

func attemptOf(group client.Object) int32 {
	attempt, _ := labels.ParseIndex(group.GetLabels()[labels.RestartAttempt])
	return attempt
}
