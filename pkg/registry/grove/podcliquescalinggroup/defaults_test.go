package podcliquescalinggroup

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func TestDefaultsThatDependOnOtherFields(t *testing.T) {
	strategy := NewStrategy(runtime.NewScheme())
	spec := func(workload grove.WorkloadType, replicas int32, minAvailable *int32) grove.PodCliqueScalingGroupSpec {
		return grove.PodCliqueScalingGroupSpec{WorkloadType: workload, Replicas: replicas, MinAvailable: minAvailable}
	}
	const inference, training = grove.WorkloadTypeInference, grove.WorkloadTypeTraining
	tests := map[string]struct {
		// old is nil on create.
		old      *grove.PodCliqueScalingGroupSpec
		in, want grove.PodCliqueScalingGroupSpec
	}{
		"one copy is enough":          {in: spec(inference, 3, nil), want: spec(inference, 3, ptr.To[int32](1))},
		"all copies are, in Training": {in: spec(training, 3, nil), want: spec(training, 3, ptr.To[int32](3))},
		"scaled to nothing":           {in: spec(inference, 0, nil), want: spec(inference, 0, ptr.To[int32](1))},
		"no copies in Training":       {in: spec(training, 0, nil), want: spec(training, 0, nil)},
		"a given minimum stays":       {in: spec(training, 3, ptr.To[int32](2)), want: spec(training, 3, ptr.To[int32](2))},
		"update: what is absent stays": {
			old: ptr.To(spec(inference, 3, ptr.To[int32](2))), in: spec(inference, 5, nil), want: spec(inference, 5, ptr.To[int32](2)),
		},
		"update: what changes is left to validation": {
			old: ptr.To(spec(inference, 3, ptr.To[int32](2))), in: spec(inference, 3, ptr.To[int32](1)), want: spec(inference, 3, ptr.To[int32](1)),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := &grove.PodCliqueScalingGroup{Spec: tc.in}
			if tc.old == nil {
				strategy.PrepareForCreate(context.Background(), got)
			} else {
				strategy.PrepareForUpdate(context.Background(), got, &grove.PodCliqueScalingGroup{Spec: *tc.old})
			}
			if diff := cmp.Diff(tc.want, got.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}
