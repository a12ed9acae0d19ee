package podcliquescalinggroup

import (
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// setDefaults sets what depends on other fields (D15): one copy is enough, but for a
// training workload, which needs all of them (D14).
func setDefaults(group *grove.PodCliqueScalingGroup) {
	spec := &group.Spec
	switch {
	case spec.MinAvailable != nil:
	case spec.WorkloadType != grove.WorkloadTypeTraining:
		spec.MinAvailable = ptr.To[int32](1)
	case spec.Replicas > 0:
		spec.MinAvailable = ptr.To(spec.Replicas)
	}
}

// keepDefaults fills what is absent and immutable from the old object.
func keepDefaults(group, old *grove.PodCliqueScalingGroup) {
	if group.Spec.MinAvailable == nil {
		group.Spec.MinAvailable = old.Spec.MinAvailable
	}
}
