package rules

import (
	"context"
	"fmt"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// batchMinMember is KAI's annotation of Jobs for the minimum.
const batchMinMember = "kai.scheduler/batch-min-member"

// job groups the pods of a Job; one is enough, since pods of a Job usually do not need each
// other (seed 004).
func job(_ context.Context, in podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	atOnce := podsOfJob(owner.At("spec"))
	shape := podgrouper.Shape{AtOnce: &atOnce}
	value := in.Owner.Annotations[batchMinMember]
	if value == "" {
		return shape, nil
	}
	count, err := strconv.ParseInt(value, 10, 32)
	if err != nil || count < 1 {
		shape.Notes = append(shape.Notes, podgrouper.Note{
			Reason:  podgrouper.ReasonInvalidOverride,
			Message: fmt.Sprintf("annotation %s %q of Job %s is passed over: must be a whole number from 1 to 2147483647", batchMinMember, value, in.Owner.Name),
		})
		return shape, nil
	}
	shape.MinMember, shape.Notes = atMost(count, atOnce)
	return shape, nil
}

// podsOfJob is how many pods a Job with a spec runs at the same time.
func podsOfJob(spec fields.Fields) int64 {
	parallelism := or(spec.Count("parallelism"), 1)
	return min(parallelism, or(spec.Count("completions"), parallelism))
}

// atMost holds a minimum that a workload asks for to the pods that come at once: above
// that it would never be reached.
func atMost(count, atOnce int64) (*int64, []podgrouper.Note) {
	if count <= atOnce {
		return &count, nil
	}
	return &atOnce, []podgrouper.Note{{
		Reason:  podgrouper.ReasonMinMemberTooHigh,
		Message: fmt.Sprintf("a minimum of %d pods is asked for, but no more than %d come at once; %d counts", count, atOnce, atOnce),
	}}
}
