package rules

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/fields"
)

// All returns the rules of all kinds but pods.
func All() []podgrouper.Rule {
	const train, inference, build = podgrouper.TrainPriorityClass, podgrouper.InferencePriorityClass, podgrouper.BuildPriorityClass
	return []podgrouper.Rule{
		Deployment{},
		PerOwner("apps", "ReplicaSet", train, replicaSet),
		PerOwner("apps", "StatefulSet", train, statefulSet),
		PerOwner("batch", "Job", train, job),
		PerOwner("kubeflow.org", "MPIJob", train, mpiJob),
		PerOwner("kubeflow.org", "TFJob", train, tfJob),
		PerOwner("kubeflow.org", "XGBoostJob", train, xgboostJob),
		PerOwner("kubeflow.org", "JAXJob", train, jaxJob),
		PyTorchJob{},
		PerOwner("kubeflow.org", "Notebook", build, notebook),
		JobSet{},
		LeaderWorkerSet{},
		RayCluster{},
		SparkApplication{},
		PerOwner("serving.knative.dev", "Revision", inference, knativeRevision),
		PodCliqueSet{},
	}
}

// NewRegistry returns the rules of all kinds, and those that are configured, which replace
// others of their kinds.
func NewRegistry(configured ...podgrouper.Rule) *podgrouper.Registry {
	return podgrouper.NewRegistry(Pod{}, Default{}, append(All(), configured...)...)
}

// PassedOver returns the kinds that only order the work of those below them.
func PassedOver() []schema.GroupKind {
	return []schema.GroupKind{
		// The steps of a workflow run one after another, so its pods are no gang; a step may
		// be one (seed 004).
		{Group: "argoproj.io", Kind: "Workflow"},
		// Its JobSet says everything.
		{Group: "trainer.kubeflow.org", Kind: "TrainJob"},
		// Each run is a Job of its own.
		{Group: "batch", Kind: "CronJob"},
		// Their RayCluster is the gang. A retry, or an upgrade of a service, is another
		// RayCluster, and so another gang; the pod that submits the job of a RayJob comes when
		// the gang runs.
		{Group: "ray.io", Kind: "RayJob"},
		{Group: "ray.io", Kind: "RayService"},
		// Each Revision scales by itself.
		{Group: "serving.knative.dev", Kind: "Service"},
		{Group: "serving.knative.dev", Kind: "Configuration"},
	}
}

// Default groups the pods of kinds that nothing is known about by their owner; one of them
// is enough.
type Default struct{}

// Name of the rule.
func (Default) Name() string { return "Default" }

// Kinds is empty: it is for all that have no other.
func (Default) Kinds() []schema.GroupKind { return nil }

// Identify puts all pods of an owner together.
func (Default) Identify(podgrouper.Input) (podgrouper.Membership, error) {
	return podgrouper.Membership{PriorityClassName: podgrouper.TrainPriorityClass}, nil
}

// Describe has nothing to say about an unknown kind.
func (Default) Describe(context.Context, podgrouper.Input, fields.Fields, client.Reader) (podgrouper.Shape, error) {
	return podgrouper.Shape{}, nil
}

// or is a count, or what it is without one.
func or(count *int64, otherwise int64) int64 {
	if count == nil {
		return otherwise
	}
	return *count
}

// parseCount is a number of pods, or an index; nil when there is none.
func parseCount(value string) *int64 {
	count, err := strconv.ParseInt(value, 10, 32)
	if err != nil || count < 0 {
		return nil
	}
	return &count
}
