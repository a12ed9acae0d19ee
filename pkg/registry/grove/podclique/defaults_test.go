package podclique

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
	scaled := func(minReplicas *int32) *grove.AutoScalingConfig {
		return &grove.AutoScalingConfig{MinReplicas: minReplicas, MaxReplicas: 9}
	}
	tests := map[string]struct {
		// old is nil on create.
		old      *grove.PodCliqueSpec
		in, want grove.PodCliqueSpec
	}{
		"all pods are needed": {
			in:   grove.PodCliqueSpec{Replicas: 3},
			want: grove.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](3)},
		},
		"a given minimum stays": {
			in:   grove.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](1)},
			want: grove.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](1)},
		},
		"scaled to nothing": {
			in:   grove.PodCliqueSpec{AutoScalingConfig: scaled(nil)},
			want: grove.PodCliqueSpec{AutoScalingConfig: scaled(nil)},
		},
		"autoscaling starts at the size": {
			in:   grove.PodCliqueSpec{Replicas: 3, AutoScalingConfig: scaled(nil)},
			want: grove.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](3), AutoScalingConfig: scaled(ptr.To[int32](3))},
		},
		"a given lower bound stays": {
			in:   grove.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](1), AutoScalingConfig: scaled(ptr.To[int32](2))},
			want: grove.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](1), AutoScalingConfig: scaled(ptr.To[int32](2))},
		},
		"update: what is absent stays": {
			old:  &grove.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](2), AutoScalingConfig: scaled(ptr.To[int32](2))},
			in:   grove.PodCliqueSpec{Replicas: 5, AutoScalingConfig: scaled(nil)},
			want: grove.PodCliqueSpec{Replicas: 5, MinAvailable: ptr.To[int32](2), AutoScalingConfig: scaled(ptr.To[int32](2))},
		},
		"update: what changes is left to validation": {
			old:  &grove.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](2), AutoScalingConfig: scaled(ptr.To[int32](2))},
			in:   grove.PodCliqueSpec{Replicas: 5, MinAvailable: ptr.To[int32](1), AutoScalingConfig: scaled(ptr.To[int32](1))},
			want: grove.PodCliqueSpec{Replicas: 5, MinAvailable: ptr.To[int32](1), AutoScalingConfig: scaled(ptr.To[int32](1))},
		},
		"update: new autoscaling": {
			old:  &grove.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](2)},
			in:   grove.PodCliqueSpec{Replicas: 3, AutoScalingConfig: scaled(nil)},
			want: grove.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](2), AutoScalingConfig: scaled(nil)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := &grove.PodClique{Spec: tc.in}
			if tc.old == nil {
				strategy.PrepareForCreate(context.Background(), got)
			} else {
				strategy.PrepareForUpdate(context.Background(), got, &grove.PodClique{Spec: *tc.old})
			}
			if diff := cmp.Diff(tc.want, got.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}
