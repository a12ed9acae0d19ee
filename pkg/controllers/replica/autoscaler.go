package replica

import (
	"maps"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// planAutoscalers makes an autoscaler for each standalone clique and scaling group of a
// replica that the template wants scaled, once there is something to scale.
func planAutoscalers(p *plan, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) {
	wanted := map[string]bool{}
	want := func(kind, name string, config *grovev1alpha1.AutoScalingConfig, hasTarget bool) {
		if config == nil {
			return
		}
		wanted[name] = true
		scaler := desiredAutoscaler(pcs, replica, kind, name, config)
		if existing := have.autoscalers[name]; existing != nil {
			if updated := putRight(existing, scaler); updated != nil {
				p.update = append(p.update, updated)
			}
		} else if hasTarget {
			p.create = append(p.create, scaler)
		}
	}
	template := &pcs.Spec.Template
	for i := range template.Cliques {
		name := naming.StandaloneClique(pcs.Name, replica, template.Cliques[i].Name)
		target := have.cliques[name]
		want("PodClique", name, template.Cliques[i].Spec.AutoScalingConfig, target != nil && target.DeletionTimestamp == nil)
	}
	for i := range template.PodCliqueScalingGroups {
		name := naming.ScalingGroup(pcs.Name, replica, template.PodCliqueScalingGroups[i].Name)
		target := have.groups[name]
		want("PodCliqueScalingGroup", name, template.PodCliqueScalingGroups[i].ScaleConfig, target != nil && target.DeletionTimestamp == nil)
	}
	for _, name := range slices.Sorted(maps.Keys(have.autoscalers)) {
		if !wanted[name] {
			p.removeOne(have.autoscalers[name])
		}
	}
}

// desiredAutoscaler scales a child of the set by its template, under the child's name.
func desiredAutoscaler(pcs *grovev1alpha1.PodCliqueSet, replica int32, kind, name string, config *grovev1alpha1.AutoScalingConfig) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Namespace:       pcs.Namespace,
			Labels:          labels.ForReplica(name, pcs.Name, labels.ComponentAutoscaler, replica),
			OwnerReferences: []metav1.OwnerReference{ownedBySet(pcs)},
		},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: grovev1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: name},
			MinReplicas:    ptr.To(ptr.Deref(config.MinReplicas, 1)),
			MaxReplicas:    config.MaxReplicas,
			Metrics:        metricsOf(config),
			Behavior:       behaviorOf(config),
		},
	}
}

// putRight is an autoscaler as it should be, nil if it is. What people write beside what is
// ours, such as their labels, stays.
func putRight(scaler, want *autoscalingv2.HorizontalPodAutoscaler) client.Object {
	if scaler.DeletionTimestamp != nil || (apiequality.Semantic.DeepEqual(scaler.Spec, want.Spec) && hasLabels(scaler, want.Labels)) {
		return nil
	}
	updated := scaler.DeepCopy()
	updated.Spec = want.Spec
	setLabels(updated, want.Labels)
	return updated
}

// What follows are the API server's defaults for what the template leaves open. They are said
// here as well, so that an autoscaler can be compared with what it should be: one that
// differs in what the template does not say was changed by somebody.

// defaultUtilization is the percentage of CPU that an autoscaler without metrics aims at.
const defaultUtilization = 80

func metricsOf(config *grovev1alpha1.AutoScalingConfig) []autoscalingv2.MetricSpec {
	if len(config.Metrics) > 0 {
		return config.DeepCopy().Metrics
	}
	return []autoscalingv2.MetricSpec{{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](defaultUtilization)},
		},
	}}
}

func behaviorOf(config *grovev1alpha1.AutoScalingConfig) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	if config.Behavior == nil {
		return nil
	}
	out := config.Behavior.DeepCopy()
	out.ScaleUp = withDefaults(out.ScaleUp,
		autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
		autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
	if out.ScaleUp.StabilizationWindowSeconds == nil {
		// Scaling down has none: its default is a flag of the autoscalers' controller.
		out.ScaleUp.StabilizationWindowSeconds = ptr.To[int32](0)
	}
	out.ScaleDown = withDefaults(out.ScaleDown,
		autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
	return out
}

func withDefaults(rules *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	if rules == nil {
		rules = &autoscalingv2.HPAScalingRules{}
	}
	if rules.SelectPolicy == nil {
		rules.SelectPolicy = ptr.To(autoscalingv2.MaxChangePolicySelect)
	}
	if rules.Policies == nil {
		rules.Policies = policies
	}
	return rules
}
