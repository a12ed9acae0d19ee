package validation

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func trainingClique(clique *grove.PodClique) { clique.Spec.WorkloadType = grove.WorkloadTypeTraining }

func scaled(maxReplicas int32) func(*grove.PodClique) {
	return func(clique *grove.PodClique) {
		clique.Spec.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: maxReplicas}
	}
}

func TestValidatePodClique(t *testing.T) {
	testCreate(t, mkPodClique, ValidatePodClique, map[string]createCase[grove.PodClique]{
		"valid":             {},
		"valid in Training": {tweak: trainingClique},
		"nil everything": {
			tweak: func(c *grove.PodClique) { *c = grove.PodClique{} },
			want: field.ErrorList{
				required("metadata.name"), required("metadata.namespace"),
				unsupported("spec.workloadType"), required("spec.podSpec.containers"),
			},
		},
		"name is a DNS label, without dots": {
			tweak: func(c *grove.PodClique) { c.Name = "llm.v2" },
			want:  field.ErrorList{invalid("metadata.name")},
		},
		"namespace is required": {
			tweak: func(c *grove.PodClique) { c.Namespace = "" },
			want:  field.ErrorList{required("metadata.namespace")},
		},
		"scaled to nothing, whatever the minimum": {tweak: func(c *grove.PodClique) { c.Spec.Replicas = 0 }},
		"replicas are not negative": {
			tweak: func(c *grove.PodClique) { c.Spec.Replicas, c.Spec.MinAvailable = -1, nil },
			want:  field.ErrorList{invalid("spec.replicas")},
		},
		"20000 replicas are not too many": {tweak: func(c *grove.PodClique) { c.Spec.Replicas = 20000 }},
		"20001 replicas are too many": {
			tweak: func(c *grove.PodClique) { c.Spec.Replicas = 20001 },
			want:  field.ErrorList{invalid("spec.replicas")},
		},
		"2^31-1 replicas are too many": {
			tweak: func(c *grove.PodClique) { c.Spec.Replicas = math.MaxInt32 },
			want:  field.ErrorList{invalid("spec.replicas")},
		},
		"minAvailable may be absent": {tweak: func(c *grove.PodClique) { c.Spec.MinAvailable = nil }},
		"minAvailable is at least 1": {
			tweak: func(c *grove.PodClique) { c.Spec.MinAvailable = ptr.To[int32](0) },
			want:  field.ErrorList{invalid("spec.minAvailable")},
		},
		"minAvailable is at most replicas": {
			tweak: func(c *grove.PodClique) { c.Spec.MinAvailable = ptr.To[int32](4) },
			want:  field.ErrorList{invalid("spec.minAvailable")},
		},
		"attempt is not negative": {
			tweak: func(c *grove.PodClique) { c.Spec.Attempt = -1 },
			want:  field.ErrorList{invalid("spec.attempt")},
		},
		"workloadType is known": {
			tweak: func(c *grove.PodClique) { c.Spec.WorkloadType = "Batch" },
			want:  field.ErrorList{unsupported("spec.workloadType")},
		},
		"startsAfter": {tweak: func(c *grove.PodClique) { c.Spec.StartsAfter = []string{"llm-0-router", "llm-0-leader"} }},
		"startsAfter names PodCliques": {
			tweak: func(c *grove.PodClique) { c.Spec.StartsAfter = []string{"", "A"} },
			want:  field.ErrorList{required("spec.startsAfter[0]"), invalid("spec.startsAfter[1]")},
		},
		"startsAfter names a PodClique once": {
			tweak: func(c *grove.PodClique) { c.Spec.StartsAfter = []string{"llm-0-router", "llm-0-router"} },
			want:  field.ErrorList{duplicate("spec.startsAfter[1]")},
		},
		"autoscaling": {tweak: scaled(5)},
		"autoscaling of a clique that is scaled to nothing": {tweak: all(scaled(5), func(c *grove.PodClique) { c.Spec.Replicas = 0 })},
		"minReplicas is at least minAvailable": {
			tweak: all(scaled(5), func(c *grove.PodClique) { c.Spec.AutoScalingConfig.MinReplicas = ptr.To[int32](1) }),
			want:  field.ErrorList{invalid("spec.autoScalingConfig.minReplicas")},
		},
		"maxReplicas is at least 1": {
			tweak: all(scaled(0), func(c *grove.PodClique) { c.Spec.Replicas = 0 }),
			want:  field.ErrorList{invalid("spec.autoScalingConfig.maxReplicas")},
		},
		"replicas are at most maxReplicas": {
			tweak: scaled(2),
			want:  field.ErrorList{invalid("spec.replicas")},
		},
		"autoscaling is rejected in Training": {
			tweak: all(trainingClique, scaled(5)),
			want:  field.ErrorList{forbidden("spec.autoScalingConfig")},
		},
		"restartPolicy Always is rejected in Training": {
			tweak: all(trainingClique, func(c *grove.PodClique) { c.Spec.PodSpec.RestartPolicy = corev1.RestartPolicyAlways }),
			want:  field.ErrorList{unsupported("spec.podSpec.restartPolicy")},
		},
		"pod spec is checked": {
			tweak: func(c *grove.PodClique) { c.Spec.PodSpec.NodeName = "node" },
			want:  field.ErrorList{forbidden("spec.podSpec.nodeName")},
		},
	})
}

func TestValidatePodCliqueUpdate(t *testing.T) {
	tooBig := func(c *grove.PodClique) { c.Spec.Replicas = 30000 }
	testUpdate(t, mkPodClique, ValidatePodCliqueUpdate, map[string]updateCase[grove.PodClique]{
		"nothing changes": {},
		"metadata is checked": {
			tweak: func(c *grove.PodClique) { c.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"what may change": {tweak: func(c *grove.PodClique) {
			c.Spec.Replicas = 5
			c.Spec.Attempt = 1
			c.Spec.PodSpec.Containers[0].Image = "v2"
			c.Spec.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 9}
		}},
		"attempt may rise in Training": {before: trainingClique, tweak: func(c *grove.PodClique) { c.Spec.Attempt = 1 }},
		"scaled to nothing":            {tweak: func(c *grove.PodClique) { c.Spec.Replicas = 0 }},
		"scaled below minAvailable": {
			tweak: func(c *grove.PodClique) { c.Spec.Replicas = 1 },
			want:  field.ErrorList{invalid("spec.minAvailable")},
		},
		"workloadType is immutable": {
			tweak: trainingClique,
			want:  field.ErrorList{invalid("spec.workloadType")},
		},
		"roleName is immutable": {
			tweak: func(c *grove.PodClique) { c.Spec.RoleName = "leader" },
			want:  field.ErrorList{invalid("spec.roleName")},
		},
		"minAvailable is immutable": {
			tweak: func(c *grove.PodClique) { c.Spec.MinAvailable = ptr.To[int32](1) },
			want:  field.ErrorList{invalid("spec.minAvailable")},
		},
		"startsAfter is immutable": {
			tweak: func(c *grove.PodClique) { c.Spec.StartsAfter = []string{"llm-0-leader"} },
			want:  field.ErrorList{invalid("spec.startsAfter")},
		},
		"attempt does not fall": {
			before: func(c *grove.PodClique) { c.Spec.Attempt = 2 },
			tweak:  func(c *grove.PodClique) { c.Spec.Attempt = 1 },
			want:   field.ErrorList{invalid("spec.attempt")},
		},
		"replicas are immutable in Training": {
			before: trainingClique,
			tweak:  func(c *grove.PodClique) { c.Spec.Replicas = 2 },
			want:   field.ErrorList{forbidden("spec.replicas")},
		},
		"podSpec is immutable in Training": {
			before: trainingClique,
			tweak:  func(c *grove.PodClique) { c.Spec.PodSpec.Containers[0].Image = "v2" },
			want:   field.ErrorList{forbidden("spec.podSpec")},
		},
		"an invalid spec may be written unchanged": {
			before: tooBig,
			tweak:  func(c *grove.PodClique) { c.Labels, c.Finalizers = map[string]string{"a": "b"}, nil },
		},
		"an invalid field that is left untouched": {before: tooBig, tweak: func(c *grove.PodClique) { c.Spec.Attempt = 1 }},
		"an invalid field cannot be changed into another": {
			before: tooBig,
			tweak:  func(c *grove.PodClique) { c.Spec.Replicas = 40000 },
			want:   field.ErrorList{invalid("spec.replicas")},
		},
		"schedulerName is immutable": {
			tweak: func(c *grove.PodClique) { c.Spec.PodSpec.SchedulerName = "kai-scheduler" },
			want:  field.ErrorList{invalid("spec.podSpec.schedulerName")},
		},
		"scaled to maxReplicas": {before: scaled(5), tweak: func(c *grove.PodClique) { c.Spec.Replicas = 5 }},
		"scaled above maxReplicas": {
			before: scaled(5),
			tweak:  func(c *grove.PodClique) { c.Spec.Replicas = 6 },
			want:   field.ErrorList{invalid("spec.replicas")},
		},
		"maxReplicas may be lowered below replicas": {before: scaled(5), tweak: scaled(2)},
		"a clique that goes away needs no valid spec": {
			before: func(c *grove.PodClique) { deleting(&c.ObjectMeta) },
			tweak:  func(c *grove.PodClique) { c.Finalizers, c.Spec.Replicas = nil, -1 },
		},
		"a clique that goes away keeps what is immutable": {
			before: func(c *grove.PodClique) { deleting(&c.ObjectMeta) },
			tweak:  func(c *grove.PodClique) { c.Spec.RoleName = "leader" },
			want:   field.ErrorList{invalid("spec.roleName")},
		},
	})
}
