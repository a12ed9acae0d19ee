package storage

import (
	"context"
	"fmt"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
	"github.com/copse-dev/copse/pkg/labels"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// scalable says that a set scales by whole replicas.
func scalable() internalrest.Scalable[*grove.PodCliqueSet] {
	return internalrest.Scalable[*grove.PodCliqueSet]{
		GroupVersion: grovev1alpha1.SchemeGroupVersion,
		Get: func(pcs *grove.PodCliqueSet) (int32, int32, string) {
			return pcs.Spec.Replicas, pcs.Status.Replicas, labels.PodsOfSet(pcs.Name)
		},
		Set:    func(pcs *grove.PodCliqueSet, replicas int32) { pcs.Spec.Replicas = replicas },
		Bounds: bounds,
	}
}

// bounds lets a set have as many replicas as its pods allow.
func bounds(_ context.Context, pcs *grove.PodCliqueSet) (internalrest.Bounds, error) {
	if pcs.Spec.WorkloadType == grove.WorkloadTypeTraining {
		return internalrest.FixedInTraining(), nil
	}
	one := pcs.Spec
	one.Replicas = 1
	pods := max(validation.Pods(&one, false), 1)
	return internalrest.Bounds{
		Max:   int32(validation.MaxPodsPerSet / pods),
		MaxOf: fmt.Sprintf("%d pods in each replica, of at most %d in a set", pods, validation.MaxPodsPerSet),
	}, nil
}
