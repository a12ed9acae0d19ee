package rules

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// Notebook groups the one pod of a Kubeflow notebook, which someone waits for.
type Notebook struct{}

// Name of the rule.
func (Notebook) Name() string { return "Notebook" }

// Kinds that it groups the pods of.
func (Notebook) Kinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: "kubeflow.org", Kind: "Notebook"}}
}

// Identify puts all pods together.
func (Notebook) Identify(podgrouper.Input) (podgrouper.Membership, error) {
	return podgrouper.Membership{PriorityClassName: podgrouper.BuildPriorityClass}, nil
}

// Describe says that there is one pod.
func (Notebook) Describe(context.Context, podgrouper.Input, fields.Fields, client.Reader) (podgrouper.Shape, error) {
	return podgrouper.Shape{AtOnce: ptr.To[int64](1)}, nil
}
