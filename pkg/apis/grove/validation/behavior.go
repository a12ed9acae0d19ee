package validation

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

const (
	maxStabilizationSeconds = 3600
	maxPolicySeconds        = 1800
)

// validateBehavior holds a behaviour to the rules of the API server that an autoscaler is
// made by, for the same reason as validateMetric.
func validateBehavior(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, path *field.Path) field.ErrorList {
	if behavior == nil {
		return nil
	}
	return append(validateScalingRules(behavior.ScaleUp, path.Child("scaleUp")), validateScalingRules(behavior.ScaleDown, path.Child("scaleDown"))...)
}

func validateScalingRules(rules *autoscalingv2.HPAScalingRules, path *field.Path) field.ErrorList {
	if rules == nil {
		return nil
	}
	var errs field.ErrorList
	if seconds := rules.StabilizationWindowSeconds; seconds != nil && (*seconds < 0 || *seconds > maxStabilizationSeconds) {
		errs = append(errs, field.Invalid(path.Child("stabilizationWindowSeconds"), *seconds, "must be from 0 to 3600"))
	}
	if policy := rules.SelectPolicy; policy != nil {
		errs = append(errs, fields.Enum(*policy, path.Child("selectPolicy"),
			autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect)...)
	}
	if tolerance := rules.Tolerance; tolerance != nil && tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("tolerance"), tolerance.String(), "must not be negative"))
	}
	if rules.Policies != nil && len(rules.Policies) == 0 {
		errs = append(errs, field.Required(path.Child("policies"), "leave it out for the default"))
	}
	for i, policy := range rules.Policies {
		policyPath := path.Child("policies").Index(i)
		errs = append(errs, fields.Enum(policy.Type, policyPath.Child("type"), autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy)...)
		if policy.Value < 1 {
			errs = append(errs, field.Invalid(policyPath.Child("value"), policy.Value, "must be at least 1").WithOrigin("minimum"))
		}
		if policy.PeriodSeconds < 1 || policy.PeriodSeconds > maxPolicySeconds {
			errs = append(errs, field.Invalid(policyPath.Child("periodSeconds"), policy.PeriodSeconds, "must be from 1 to 1800"))
		}
	}
	return errs
}
