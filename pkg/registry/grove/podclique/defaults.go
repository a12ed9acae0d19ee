package podclique

import (
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// setDefaults sets what depends on other fields (D15): a clique that says nothing else
// needs all its pods. One that is scaled to nothing does not say how many those are.
func setDefaults(clique *grove.PodClique) {
	spec := &clique.Spec
	if spec.MinAvailable == nil && spec.Replicas > 0 {
		spec.MinAvailable = ptr.To(spec.Replicas)
	}
	if config := spec.AutoScalingConfig; config != nil && config.MinReplicas == nil && spec.Replicas > 0 {
		config.MinReplicas = ptr.To(spec.Replicas)
	}
}

// keepDefaults fills what is absent and immutable from the old object. minReplicas, too:
// the size is the autoscaler's to change, not a new bound.
func keepDefaults(clique, old *grove.PodClique) {
	spec, before := &clique.Spec, &old.Spec
	if spec.MinAvailable == nil {
		spec.MinAvailable = before.MinAvailable
	}
	if spec.AutoScalingConfig != nil && spec.AutoScalingConfig.MinReplicas == nil && before.AutoScalingConfig != nil {
		spec.AutoScalingConfig.MinReplicas = before.AutoScalingConfig.MinReplicas
	}
}
