package validation

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func TestValidateBehavior(t *testing.T) {
	const path = clique0 + ".spec.autoScalingConfig.behavior"
	behaves := func(behavior autoscalingv2.HorizontalPodAutoscalerBehavior) func(*grove.PodCliqueSet) {
		return cliqueSpec(0, func(s *grove.PodCliqueSpec) {
			s.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 4, Behavior: &behavior}
		})
	}
	down := func(rules autoscalingv2.HPAScalingRules) func(*grove.PodCliqueSet) {
		return behaves(autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &rules})
	}
	window := func(seconds int32) func(*grove.PodCliqueSet) {
		return down(autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &seconds})
	}
	policy := func(kind autoscalingv2.HPAScalingPolicyType, value, seconds int32) func(*grove.PodCliqueSet) {
		return down(autoscalingv2.HPAScalingRules{Policies: []autoscalingv2.HPAScalingPolicy{{Type: kind, Value: value, PeriodSeconds: seconds}}})
	}
	tolerance := func(text string) func(*grove.PodCliqueSet) {
		return down(autoscalingv2.HPAScalingRules{Tolerance: ptr.To(resource.MustParse(text))})
	}
	selects := func(policy autoscalingv2.ScalingPolicySelect) func(*grove.PodCliqueSet) {
		return down(autoscalingv2.HPAScalingRules{SelectPolicy: &policy})
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"nothing of it":        {tweak: behaves(autoscalingv2.HorizontalPodAutoscalerBehavior{})},
		"no window":            {tweak: window(0)},
		"a window of an hour":  {tweak: window(3600)},
		"a negative window":    {tweak: window(-1), want: field.ErrorList{invalid(path + ".scaleDown.stabilizationWindowSeconds")}},
		"a longer window":      {tweak: window(3601), want: field.ErrorList{invalid(path + ".scaleDown.stabilizationWindowSeconds")}},
		"the most":             {tweak: selects(autoscalingv2.MaxChangePolicySelect)},
		"the least":            {tweak: selects(autoscalingv2.MinChangePolicySelect)},
		"not at all":           {tweak: selects(autoscalingv2.DisabledPolicySelect)},
		"something else":       {tweak: selects("Some"), want: field.ErrorList{unsupported(path + ".scaleDown.selectPolicy")}},
		"no tolerance":         {tweak: tolerance("0")},
		"a negative tolerance": {tweak: tolerance("-1m"), want: field.ErrorList{invalid(path + ".scaleDown.tolerance")}},
		"an empty list of policies": {
			tweak: down(autoscalingv2.HPAScalingRules{Policies: []autoscalingv2.HPAScalingPolicy{}}),
			want:  field.ErrorList{required(path + ".scaleDown.policies")},
		},
		"a policy of pods":        {tweak: policy(autoscalingv2.PodsScalingPolicy, 1, 1)},
		"a policy of percent":     {tweak: policy(autoscalingv2.PercentScalingPolicy, 100, 1800)},
		"a policy of what":        {tweak: policy("Copies", 1, 1), want: field.ErrorList{unsupported(path + ".scaleDown.policies[0].type")}},
		"a policy of nothing":     {tweak: policy(autoscalingv2.PodsScalingPolicy, 0, 1), want: field.ErrorList{invalid(path + ".scaleDown.policies[0].value")}},
		"a policy without period": {tweak: policy(autoscalingv2.PodsScalingPolicy, 1, 0), want: field.ErrorList{invalid(path + ".scaleDown.policies[0].periodSeconds")}},
		"a policy of long period": {tweak: policy(autoscalingv2.PodsScalingPolicy, 1, 1801), want: field.ErrorList{invalid(path + ".scaleDown.policies[0].periodSeconds")}},
		"scaling up has the same rules": {
			tweak: behaves(autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](-1)}}),
			want:  field.ErrorList{invalid(path + ".scaleUp.stabilizationWindowSeconds")},
		},
	})
}
