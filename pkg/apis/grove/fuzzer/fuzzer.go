// Package fuzzer fills objects of the grove.io API with random values, for tests of
// round trips. It leaves no field empty that has a fixed default, because a default is
// set on the way back and would look like a change. It makes no valid objects.
package fuzzer

import (
	corev1 "k8s.io/api/core/v1"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// Funcs are the fuzzer functions of the API group.
func Funcs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(podSpec *corev1.PodSpec, c randfill.Continue) {
			c.FillNoCustom(podSpec)
			if podSpec.TerminationGracePeriodSeconds == nil {
				podSpec.TerminationGracePeriodSeconds = ptr.To(c.Int63())
			}
			// The defaults of core/v1 that come with the type.
			clique := &grovev1alpha1.PodClique{Spec: grovev1alpha1.PodCliqueSpec{PodSpec: *podSpec}}
			grovev1alpha1.SetObjectDefaults_PodClique(clique)
			*podSpec = clique.Spec.PodSpec
		},
		func(spec *grove.PodCliqueSetSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			spec.WorkloadType = either(c, grove.WorkloadTypeInference, grove.WorkloadTypeTraining)
		},
		func(strategy *grove.PodCliqueSetUpdateStrategy, c randfill.Continue) {
			strategy.Type = either(c, grove.UpdateStrategyRollingRecreate, grove.UpdateStrategyOnDelete)
		},
		func(policy *grove.StartupPolicy, c randfill.Continue) {
			c.FillNoCustom(policy)
			policy.StartupPolicyOrder = either(c, grove.StartupPolicyAnyOrder, grove.StartupPolicyInOrder)
		},
		func(rule *grove.StartupPolicyRule, c randfill.Continue) {
			c.FillNoCustom(rule)
			rule.WaitForCliquesStatus = either(c, grove.CliqueStatusReady, grove.CliqueStatusSucceeded)
		},
		func(template *grove.PodCliqueSetTemplateSpec, c randfill.Continue) {
			c.FillNoCustom(template)
			template.StartupType = ptr.To(either(c, grove.CliqueStartupTypeAnyOrder, grove.CliqueStartupTypeExplicit))
			template.HeadlessServiceConfig = &grove.HeadlessServiceConfig{PublishNotReadyAddresses: ptr.To(c.Bool())}
			for i := range template.PodCliqueScalingGroups {
				template.PodCliqueScalingGroups[i].Replicas = ptr.To(c.Int31())
			}
		},
		func(spec *grove.PodCliqueSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			spec.Replicas = 1 + c.Int31n(1000)
			spec.WorkloadType = either(c, grove.WorkloadTypeInference, grove.WorkloadTypeTraining)
		},
		func(spec *grove.PodCliqueScalingGroupSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			spec.WorkloadType = either(c, grove.WorkloadTypeInference, grove.WorkloadTypeTraining)
		},
	}
}

func either[T any](c randfill.Continue, a, b T) T {
	if c.Bool() {
		return a
	}
	return b
}
