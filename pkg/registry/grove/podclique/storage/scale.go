package storage

import (
	"context"

	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// scalable says that a clique scales by pods.
func scalable() internalrest.Scalable[*grove.PodClique] {
	return internalrest.Scalable[*grove.PodClique]{
		GroupVersion: grovev1alpha1.SchemeGroupVersion,
		Get: func(clique *grove.PodClique) (int32, int32, string) {
			return clique.Spec.Replicas, clique.Status.Replicas, labels.PodsOfClique(clique.Name)
		},
		Set:    func(clique *grove.PodClique, replicas int32) { clique.Spec.Replicas = replicas },
		Bounds: bounds,
	}
}

// bounds keeps a clique at its minimum or more, and within what its autoscaler may do.
func bounds(_ context.Context, clique *grove.PodClique) (internalrest.Bounds, error) {
	if clique.Spec.WorkloadType == grove.WorkloadTypeTraining {
		return internalrest.FixedInTraining(), nil
	}
	b := internalrest.Bounds{
		Min: ptr.Deref(clique.Spec.MinAvailable, 0), MinOf: "spec.minAvailable",
		Max: validation.MaxPodsPerSet, MaxOf: "the most pods of a set",
	}
	if config := clique.Spec.AutoScalingConfig; config != nil {
		b.Max, b.MaxOf = config.MaxReplicas, "spec.autoScalingConfig.maxReplicas"
	}
	b.LimitByHostname(func(index int32) string { return naming.Hostname(clique.Name, index) })
	return b, nil
}
