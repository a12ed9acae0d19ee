package rules

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// KnativeRevision groups the pods of a revision of a Knative Service, as many as it always
// has: its minimum scale.
type KnativeRevision struct{}

// Name of the rule.
func (KnativeRevision) Name() string { return "KnativeRevision" }

// Kinds that it groups the pods of.
func (KnativeRevision) Kinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: "serving.knative.dev", Kind: "Revision"}}
}

// Identify puts all pods of the revision together.
func (KnativeRevision) Identify(podgrouper.Input) (podgrouper.Membership, error) {
	return podgrouper.Membership{PriorityClassName: podgrouper.InferencePriorityClass}, nil
}

// Describe reads the scale from the annotations that the revision has from its template.
func (KnativeRevision) Describe(_ context.Context, in podgrouper.Input, _ fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
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
