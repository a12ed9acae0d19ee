package rules

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// Describe says what the group of a pod needs, as the method of podgrouper.Rule does.
type Describe func(ctx context.Context, in podgrouper.Input, owner fields.Fields, reader client.Reader) (podgrouper.Shape, error)

// PerOwner returns the rule for a kind of which all pods of an owner are one group, without
// subgroups that a pod would have to be told of. It is how most kinds are registered.
func PerOwner(group, kind, priorityClass string, describe Describe) podgrouper.Rule {
	return perOwner{kind: schema.GroupKind{Group: group, Kind: kind}, priorityClass: priorityClass, describe: describe}
}

type perOwner struct {
	kind          schema.GroupKind
	priorityClass string
	describe      Describe
}

// Name of the rule.
func (r perOwner) Name() string { return r.kind.Kind }

// Kinds that it groups the pods of.
func (r perOwner) Kinds() []schema.GroupKind { return []schema.GroupKind{r.kind} }

// Identify puts all pods of the owner together.
func (r perOwner) Identify(podgrouper.Input) (podgrouper.Membership, error) {
	return podgrouper.Membership{PriorityClassName: r.priorityClass}, nil
}

// Describe says what the group needs.
func (r perOwner) Describe(ctx context.Context, in podgrouper.Input, owner fields.Fields, reader client.Reader) (podgrouper.Shape, error) {
	return r.describe(ctx, in, owner, reader)
}
