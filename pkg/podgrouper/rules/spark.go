package rules

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// Labels that Spark puts on its driver and executors.
const (
	sparkAppName     = "spark-app-name"
	sparkAppSelector = "spark-app-selector"
)

// SparkApplication groups the pods that the operator for Spark makes: driver and executors
// of one submission. One of them is enough, since executors come when the driver runs.
type SparkApplication struct{}

// Name of the rule.
func (SparkApplication) Name() string { return "SparkApplication" }

// Kinds that it groups the pods of.
func (SparkApplication) Kinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}}
}

// Identify says which submission a pod belongs to.
func (SparkApplication) Identify(in podgrouper.Input) (podgrouper.Membership, error) {
	if membership, ok := ofSpark(in); ok {
		return membership, nil
	}
	return podgrouper.Membership{PriorityClassName: podgrouper.TrainPriorityClass}, nil
}

// Describe says that one pod is enough.
func (SparkApplication) Describe(context.Context, podgrouper.Input, fields.Fields, client.Reader) (podgrouper.Shape, error) {
	return podgrouper.Shape{}, nil
}

// ofSpark is the group of a pod of a Spark application. The driver owns the executors and is
// in their group, so that cannot be named after its UID: it has none while it is created.
// The selector is new with each submission.
func ofSpark(in podgrouper.Input) (podgrouper.Membership, bool) {
	name, selector := in.Pod.Labels[sparkAppName], in.Pod.Labels[sparkAppSelector]
	if name == "" || selector == "" {
		return podgrouper.Membership{}, false
	}
	return podgrouper.Membership{Base: selector, UID: selector, PriorityClassName: podgrouper.TrainPriorityClass}, true
}
