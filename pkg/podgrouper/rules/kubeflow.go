package rules

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// Labels that Kubeflow's operators put on pods.
const (
	kubeflowJobName      = "training.kubeflow.org/job-name"
	kubeflowReplicaType  = "training.kubeflow.org/replica-type"
	kubeflowReplicaIndex = "training.kubeflow.org/replica-index"
	kubeflowJobRole      = "training.kubeflow.org/job-role"
)

// tfJob groups the pods of a TensorFlow job, of which all are needed.
func tfJob(_ context.Context, _ podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	return allReplicas(owner, "tfReplicaSpecs"), nil
}

// xgboostJob groups the pods of an XGBoost job, of which all are needed. It may have no more
// than a master, as its operator has it.
func xgboostJob(_ context.Context, _ podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	return allReplicas(owner, "xgbReplicaSpecs", "Master"), nil
}

// jaxJob groups the pods of a JAX job, of which all are needed.
func jaxJob(_ context.Context, _ podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	return allReplicas(owner, "jaxReplicaSpecs", "Worker"), nil
}

// allReplicas needs all pods, unless the job asks for less.
func allReplicas(owner fields.Fields, specs string, required ...string) podgrouper.Shape {
	_, total := replicasOf(owner, specs, required...)
	minimum, notes := atMost(minAvailable(owner, total), total)
	return podgrouper.Shape{MinMember: minimum, AtOnce: &total, Notes: notes}
}

// replicasOf counts the pods of each type, and of all. A type without a count has one pod.
func replicasOf(owner fields.Fields, specs string, required ...string) (byType map[string]int64, total int64) {
	types := owner.At("spec", specs)
	for _, name := range required {
		if !types.At(name).Exists() {
			types.Report(field.Required(types.Path(name), "no such job goes without pods of this type"))
		}
	}
	byType = map[string]int64{}
	for _, name := range types.Keys() {
		byType[name] = or(types.At(name).Count("replicas"), 1)
		total += byType[name]
	}
	if !types.Exists() {
		types.Report(field.Required(types.Path(), "the types of pods of the job"))
	}
	return byType, total
}

// minAvailable is the minimum that the job asks for, or otherwise.
func minAvailable(owner fields.Fields, otherwise int64) int64 {
	if count := or(owner.Count("spec", "runPolicy", "schedulingPolicy", "minAvailable"), 0); count > 0 {
		return count
	}
	return otherwise
}
