package rules

import (
	"context"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// knativeRevision groups the pods of a revision of a Knative Service, of which as many are
// needed as there always are: its minimum scale. The revision has the annotations from its
// template.
func knativeRevision(_ context.Context, in podgrouper.Input, _ fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	least := scale(in, "autoscaling.knative.dev/min-scale", "autoscaling.knative.dev/minScale")
	first := scale(in, "autoscaling.knative.dev/initial-scale", "autoscaling.knative.dev/initialScale")
	atOnce := max(least, first)
	return podgrouper.Shape{MinMember: &least, AtOnce: &atOnce}, nil
}

// scale is what an annotation, or its older spelling, has; Knative refuses what is no number.
func scale(in podgrouper.Input, keys ...string) int64 {
	for _, key := range keys {
		if count, err := strconv.ParseInt(in.Owner.Annotations[key], 10, 32); err == nil {
			return count
		}
	}
	return 0
}
