package rules

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// Labels that the JobSet controller puts on pods.
const (
	jobSetReplicatedJob = "jobset.sigs.k8s.io/replicatedjob-name"
	jobSetJobIndex      = "jobset.sigs.k8s.io/job-index"
)

// JobSet groups all pods of a JobSet, as a tree: a subgroup for each replicated job, and one
// below it for each of its Jobs.
type JobSet struct{}

// Name of the rule.
func (JobSet) Name() string { return "JobSet" }

// Kinds that it groups the pods of.
func (JobSet) Kinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: "jobset.x-k8s.io", Kind: "JobSet"}}
}

// Identify says of which Job a pod is, by the labels that the controller puts on it.
func (JobSet) Identify(in podgrouper.Input) (podgrouper.Membership, error) {
	membership := podgrouper.Membership{PriorityClassName: podgrouper.TrainPriorityClass}
	name, index := in.Pod.Labels[jobSetReplicatedJob], in.Pod.Labels[jobSetJobIndex]
	switch {
	case name == "":
		membership.Notes = append(membership.Notes, missingLabel(jobSetReplicatedJob, "its subgroup"))
	case index == "":
		membership.Notes = append(membership.Notes, missingLabel(jobSetJobIndex, "its subgroup"))
	default:
		membership.SubGroup = podgrouper.SubGroupName(name, "replica", index)
	}
	return membership, nil
}

// Describe makes the tree. Replicated jobs that come when others run or have ended are not
// waited for: neither those after the first of an order, nor those that depend on others.
// They keep their minimum in the tree, by which KAI has each of them come as a whole.
func (JobSet) Describe(_ context.Context, in podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	inOrder := owner.String("spec", "startupPolicy", "startupPolicyOrder") == "InOrder"
	current := in.Pod.Labels[jobSetReplicatedJob]
	var shape podgrouper.Shape
	var jobs, first, atOnce int64
	later := current != ""
	for _, job := range owner.List("spec", "replicatedJobs") {
		name, replicas := job.String("name"), or(job.Count("replicas"), 1)
		pods := podsOfJob(job.At("template", "spec"))
		if replicas == 0 {
			continue
		}
		if int64(len(shape.SubGroups))+1+replicas > podgrouper.MaxSubGroups {
			job.Report(field.TooMany(job.Path("replicas"), int(replicas), podgrouper.MaxSubGroups))
			return podgrouper.Shape{}, nil
		}
		jobs++
		if dependent := len(job.List("dependsOn")) > 0; !dependent && (!inOrder || first == 0) {
			first++
			atOnce += replicas * pods
			later = later && name != current
		}
		place := placement(job.At("template").Strings("metadata", "annotations"), &shape.Notes)
		shape.SubGroups = append(shape.SubGroups, podgrouper.SubGroup{Name: podgrouper.SubGroupName(name), MinSubGroup: &replicas, Topology: place})
		for i := range replicas {
			shape.SubGroups = append(shape.SubGroups, podgrouper.SubGroup{
				Name: podgrouper.SubGroupName(name, "replica", strconv.FormatInt(i, 10)), Parent: podgrouper.SubGroupName(name), MinMember: ptr.To(pods),
			})
		}
	}
	shape.AtOnce = &atOnce
	if len(shape.SubGroups) > 0 {
		shape.MinSubGroup = ptr.To(max(1, first))
	}
	if first > 0 && first < jobs {
		shape.FirstPods, shape.FirstPast = ptr.To(atOnce), later
	}
	return shape, nil
}
