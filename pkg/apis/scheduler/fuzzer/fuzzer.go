// Package fuzzer fills objects of the scheduler.grove.io API with random values, for
// tests of round trips. It leaves no field empty that has a fixed default, because a
// default is set on the way back and would look like a change. It makes no valid objects.
package fuzzer

import (
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
)

// Funcs are the fuzzer functions of the API group.
func Funcs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(spec *scheduler.PodGroupSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			if spec.MinSubGroup == nil {
				spec.MinMember = ptr.To(c.Int31())
			}
			if spec.MarkUnschedulable == nil {
				spec.MarkUnschedulable = ptr.To(c.Bool())
			}
			if spec.SchedulingBackoff == nil {
				spec.SchedulingBackoff = ptr.To(c.Int31())
			}
		},
	}
}
