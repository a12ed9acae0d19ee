package rules

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// Deployment groups each pod by itself: replicas of a service do not wait for each other,
// and one that is rolled out must not wait for those that it replaces (seed 004). Whoever
// asks for a minimum gets one group for all.
type Deployment struct{}

// Name of the rule.
func (Deployment) Name() string { return "Deployment" }

// Kinds that it groups the pods of.
func (Deployment) Kinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: "apps", Kind: "Deployment"}}
}

// Identify gives each pod a group, unless a minimum is asked for.
func (Deployment) Identify(in podgrouper.Input) (podgrouper.Membership, error) {
	return podgrouper.Membership{PerPod: in.MinMember == nil, PriorityClassName: podgrouper.InferencePriorityClass}, nil
}

// Describe counts the pods.
func (Deployment) Describe(_ context.Context, _ podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	return podgrouper.Shape{AtOnce: ptr.To(or(owner.Count("spec", "replicas"), 1))}, nil
}

// replicaSet groups the pods of a ReplicaSet; one is enough.
func replicaSet(_ context.Context, _ podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	return podgrouper.Shape{AtOnce: ptr.To(or(owner.Count("spec", "replicas"), 1))}, nil
}

// statefulSet groups the pods of a StatefulSet; one is enough. In the default order each
// comes when the one before it is Ready, so they do not come at once.
func statefulSet(_ context.Context, _ podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	atOnce := or(owner.Count("spec", "replicas"), 1)
	if owner.String("spec", "podManagementPolicy") != "Parallel" {
		atOnce = min(atOnce, 1)
	}
	return podgrouper.Shape{AtOnce: &atOnce}, nil
}
