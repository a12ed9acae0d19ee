package validation

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/labels"
)

func TestValidateScaling(t *testing.T) {
	const config0 = clique0 + ".spec.autoScalingConfig"
	metrics := func(metrics ...autoscalingv2.MetricSpec) func(*grove.PodCliqueSet) {
		return cliqueSpec(0, func(s *grove.PodCliqueSpec) {
			s.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 4, Metrics: metrics}
		})
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		// Autoscaling of a clique.
		"autoscaling": {tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) {
			s.Replicas, s.AutoScalingConfig = 2, &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](1), MaxReplicas: 2}
		})},
		"autoscaling without minReplicas": {tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) {
			s.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 1}
		})},
		"minReplicas without minAvailable": {tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) {
			s.MinAvailable, s.AutoScalingConfig = nil, &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](1), MaxReplicas: 1}
		})},
		"minReplicas is at least minAvailable": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) {
				s.Replicas, s.MinAvailable = 2, ptr.To[int32](2)
				s.AutoScalingConfig = &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](1), MaxReplicas: 2}
			}),
			want: field.ErrorList{invalid(clique0 + ".spec.autoScalingConfig.minReplicas")},
		},
		"maxReplicas is at least minReplicas": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) {
				s.AutoScalingConfig = &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](3), MaxReplicas: 2}
			}),
			want: field.ErrorList{invalid(clique0 + ".spec.autoScalingConfig.maxReplicas")},
		},
		"maxReplicas is at least replicas": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) {
				s.Replicas = 3
				s.AutoScalingConfig = &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](1), MaxReplicas: 2}
			}),
			want: field.ErrorList{invalid(clique0 + ".spec.autoScalingConfig.maxReplicas")},
		},
		"autoscaling without maxReplicas": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.AutoScalingConfig = &grove.AutoScalingConfig{} }),
			want:  field.ErrorList{invalid(clique0 + ".spec.autoScalingConfig.maxReplicas")},
		},
		"autoscaling is not for member cliques": {
			tweak: all(withGroup("decode", "worker"), cliqueSpec(1, func(s *grove.PodCliqueSpec) {
				s.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 2}
			})),
			want: field.ErrorList{forbidden(clique1 + ".spec.autoScalingConfig")},
		},

		// Scaling groups.
		"scaling group": {tweak: withGroup("decode", "router", "worker")},
		"scaling group name is required": {
			tweak: withGroup("", "worker"),
			want:  field.ErrorList{required(group0 + ".name")},
		},
		"scaling group name is a DNS label": {
			tweak: withGroup("Decode", "worker"),
			want:  field.ErrorList{invalid(group0 + ".name")},
		},
		"scaling group names are unique": {
			tweak: all(withGroup("decode", "router"), withGroup("decode", "worker")),
			want:  field.ErrorList{duplicate(group1 + ".name")},
		},
		"scaling group annotations are valid": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.Annotations = map[string]string{"not a key": ""}
			})),
			want: field.ErrorList{invalid(group0 + ".annotations")},
		},
		"scaling group without replicas has one copy": {tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.Replicas = nil
		}))},
		"scaling group has at least one copy": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.Replicas, g.MinAvailable = ptr.To[int32](0), nil
			})),
			want: field.ErrorList{invalid(group0 + ".replicas")},
		},
		"minAvailable of a group is at least 1": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.MinAvailable = ptr.To[int32](0)
			})),
			want: field.ErrorList{invalid(group0 + ".minAvailable")},
		},
		"minAvailable of a group is at most replicas": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.Replicas, g.MinAvailable = nil, ptr.To[int32](2)
			})),
			want: field.ErrorList{invalid(group0 + ".minAvailable")},
		},
		"minReplicas of a group is at least minAvailable": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.Replicas, g.MinAvailable = ptr.To[int32](2), ptr.To[int32](2)
				g.ScaleConfig = &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](1), MaxReplicas: 2}
			})),
			want: field.ErrorList{invalid(group0 + ".scaleConfig.minReplicas")},
		},
		"maxReplicas of a group is at least replicas": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.Replicas, g.ScaleConfig = ptr.To[int32](3), &grove.AutoScalingConfig{MaxReplicas: 2}
			})),
			want: field.ErrorList{invalid(group0 + ".scaleConfig.maxReplicas")},
		},
		"scaling group has a clique": {
			tweak: withGroup("decode"),
			want:  field.ErrorList{required(group0 + ".cliqueNames")},
		},
		"cliques of a group exist": {
			tweak: withGroup("decode", "worker", "nobody"),
			want:  field.ErrorList{notFound(group0 + ".cliqueNames[1]")},
		},
		"clique is in a group once": {
			tweak: withGroup("decode", "worker", "worker"),
			want:  field.ErrorList{duplicate(group0 + ".cliqueNames[1]")},
		},
		"clique is in one group": {
			tweak: all(withGroup("prefill", "router", "worker"), withGroup("decode", "worker")),
			want:  field.ErrorList{invalid(group1 + ".cliqueNames[0]")},
		},
		"minReplicas is at least 1": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) {
				s.MinAvailable, s.AutoScalingConfig = nil, &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](0), MaxReplicas: 1}
			}),
			want: field.ErrorList{invalid(config0 + ".minReplicas")},
		},
		"maxReplicas of 20000": {tweak: all(func(pcs *grove.PodCliqueSet) { pcs.Name = "l" }, cliqueSpec(0, func(s *grove.PodCliqueSpec) {
			s.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 20000}
		}))},
		"maxReplicas is at most the pods of a set": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 20001} }),
			want:  field.ErrorList{invalid(config0 + ".maxReplicas")},
		},
		"maxReplicas of a group is at least minReplicas": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.ScaleConfig = &grove.AutoScalingConfig{MinReplicas: ptr.To[int32](3), MaxReplicas: 2}
			})),
			want: field.ErrorList{invalid(group0 + ".scaleConfig.maxReplicas")},
		},
		"metrics": {tweak: metrics(
			autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{}},
			autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{}},
			autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{}},
			autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{}},
			autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{}},
		)},
		"metric has a known type": {tweak: metrics(autoscalingv2.MetricSpec{Type: "CPU"}), want: field.ErrorList{unsupported(config0 + ".metrics[0].type")}},
		"metric has what its type says": {
			tweak: metrics(autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{}}),
			want:  field.ErrorList{required(config0 + ".metrics[0].resource")},
		},
		"metrics of a group": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.ScaleConfig = &grove.AutoScalingConfig{MaxReplicas: 2, Metrics: make([]autoscalingv2.MetricSpec, 1)}
			})),
			want: field.ErrorList{unsupported(group0 + ".scaleConfig.metrics[0].type")},
		},
		"an autoscaler has a name of its own": {
			tweak: all(withGroup("router", "worker"), metrics(), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.ScaleConfig = &grove.AutoScalingConfig{MaxReplicas: 2}
			})),
			want: field.ErrorList{invalid(config0)},
		},
		"a group of the name of a clique that does not scale": {tweak: all(withGroup("router", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.ScaleConfig = &grove.AutoScalingConfig{MaxReplicas: 2}
		}))},
		"a group that does not scale of the name of a clique that does": {tweak: all(withGroup("router", "worker"), metrics())},
		"memory fabric of a group is a DNS label": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.Annotations = map[string]string{labels.FabricGroup: "a_b"}
			})),
			want: field.ErrorList{invalid(group0 + ".annotations[grove.io/mnnvl-group]")},
		},
	})
}
