package rules

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

const kubeflowGroup = "kubeflow.org"

// Labels that Kubeflow's operators put on pods.
const (
	kubeflowJobName      = "training.kubeflow.org/job-name"
	kubeflowReplicaType  = "training.kubeflow.org/replica-type"
	kubeflowReplicaIndex = "training.kubeflow.org/replica-index"
	kubeflowJobRole      = "training.kubeflow.org/job-role"
)

// TrainingJob groups the pods of a Kubeflow job of which all are needed.
type TrainingJob struct {
	kind     string
	specs    string
	required []string
}

// NewTFJob returns the rule for TensorFlow.
func NewTFJob() TrainingJob { return TrainingJob{kind: "TFJob", specs: "tfReplicaSpecs"} }

// NewXGBoostJob returns the rule for XGBoost.
func NewXGBoostJob() TrainingJob {
	return TrainingJob{kind: "XGBoostJob", specs: "xgbReplicaSpecs", required: []string{"Master", "Worker"}}
}

// NewJAXJob returns the rule for JAX.
func NewJAXJob() TrainingJob {
	return TrainingJob{kind: "JAXJob", specs: "jaxReplicaSpecs", required: []string{"Worker"}}
}

// Name of the rule.
func (r TrainingJob) Name() string { return r.kind }

// Kinds that it groups the pods of.
func (r TrainingJob) Kinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: kubeflowGroup, Kind: r.kind}}
}

// Identify puts all pods together.
func (TrainingJob) Identify(podgrouper.Input) (podgrouper.Membership, error) {
	return podgrouper.Membership{PriorityClassName: podgrouper.TrainPriorityClass}, nil
}

// Describe counts the pods.
func (r TrainingJob) Describe(_ context.Context, _ podgrouper.Input, owner fields.Fields, _ client.Reader) (podgrouper.Shape, error) {
	_, total := replicasOf(owner, r.specs, r.required...)
	minimum, notes := atMost(minAvailable(owner, total), total)
	return podgrouper.Shape{MinMember: minimum, AtOnce: &total, Notes: notes}, nil
}

// replicasOf counts the pods of each type, and of all. A type without a count has one pod.
func replicasOf(owner fields.Fields, specs string, required ...string) (byType map[string]int64, total int64) {
	types := owner.At("spec", specs)
	for _, name := range required {
		if !types.At(name).Exists() {
			types.Report(field.Required(types.Path(name), "pods of this type do the work"))
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
