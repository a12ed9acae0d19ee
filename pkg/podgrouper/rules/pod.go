package rules

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// Pod groups pods that nothing stands above: each by itself, and pods that a pod owns with
// their owner. Those of a Spark application are one group.
type Pod struct{}

// Name of the rule.
func (Pod) Name() string { return "Pod" }

// Kinds that it groups the pods of.
func (Pod) Kinds() []schema.GroupKind { return []schema.GroupKind{{Kind: "Pod"}} }

// Identify says which group a pod is in.
func (Pod) Identify(in podgrouper.Input) (podgrouper.Membership, error) {
	if membership, ok := ofSpark(in); ok {
		return membership, nil
	}
	return podgrouper.Membership{PerPod: in.Owner == nil, PriorityClassName: podgrouper.TrainPriorityClass}, nil
}

// Describe says that one pod is enough.
func (Pod) Describe(context.Context, podgrouper.Input, fields.Fields, client.Reader) (podgrouper.Shape, error) {
	return podgrouper.Shape{}, nil
}
