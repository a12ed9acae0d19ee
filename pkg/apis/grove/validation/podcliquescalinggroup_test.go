package validation

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/labels"
)

func trainingGroup(g *grove.PodCliqueScalingGroup) { g.Spec.WorkloadType = grove.WorkloadTypeTraining }

func cliquesOf(n int32) func(*grove.PodCliqueScalingGroup) {
	return func(g *grove.PodCliqueScalingGroup) {
		g.Spec.CliqueNames = nil
		for i := range n {
			g.Spec.CliqueNames = append(g.Spec.CliqueNames, "c"+labels.Index(i))
		}
	}
}

func TestValidatePodCliqueScalingGroup(t *testing.T) {
	testCreate(t, mkPodCliqueScalingGroup, ValidatePodCliqueScalingGroup, map[string]createCase[grove.PodCliqueScalingGroup]{
		"valid":             {},
		"valid in Training": {tweak: trainingGroup},
		"nil everything": {
			tweak: func(g *grove.PodCliqueScalingGroup) { *g = grove.PodCliqueScalingGroup{} },
			want: field.ErrorList{
				required("metadata.name"), required("metadata.namespace"),
				unsupported("spec.workloadType"), required("spec.cliqueNames"),
			},
		},
		"name is a DNS label, without dots": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.Name = "llm.v2" },
			want:  field.ErrorList{invalid("metadata.name")},
		},
		"namespace is required": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.Namespace = "" },
			want:  field.ErrorList{required("metadata.namespace")},
		},
		"scaled to nothing, whatever the minimum": {tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.Replicas = 0 }},
		"replicas are not negative": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.Replicas, g.Spec.MinAvailable = -1, nil },
			want:  field.ErrorList{invalid("spec.replicas")},
		},
		"20000 replicas are not too many": {tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.Replicas = 20000 }},
		"2^31-1 replicas are too many": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.Replicas = math.MaxInt32 },
			want:  field.ErrorList{invalid("spec.replicas")},
		},
		"minAvailable may be absent": {tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.MinAvailable = nil }},
		"minAvailable is at least 1": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.MinAvailable = ptr.To[int32](0) },
			want:  field.ErrorList{invalid("spec.minAvailable")},
		},
		"minAvailable is at most replicas": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.MinAvailable = ptr.To[int32](4) },
			want:  field.ErrorList{invalid("spec.minAvailable")},
		},
		"workloadType is known": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.WorkloadType = "Batch" },
			want:  field.ErrorList{unsupported("spec.workloadType")},
		},
		"group has a clique": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.CliqueNames = nil },
			want:  field.ErrorList{required("spec.cliqueNames")},
		},
		"256 cliques are not too many": {tweak: cliquesOf(256)},
		"257 cliques are too many":     {tweak: cliquesOf(257), want: field.ErrorList{tooMany("spec.cliqueNames")}},
		"clique names are valid and unique": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.CliqueNames = []string{"a", "", "B", "a"} },
			want: field.ErrorList{
				required("spec.cliqueNames[1]"), invalid("spec.cliqueNames[2]"), duplicate("spec.cliqueNames[3]"),
			},
		},
	})
}

func TestValidatePodCliqueScalingGroupUpdate(t *testing.T) {
	tooBig := func(g *grove.PodCliqueScalingGroup) { g.Spec.Replicas = 30000 }
	testUpdate(t, mkPodCliqueScalingGroup, ValidatePodCliqueScalingGroupUpdate, map[string]updateCase[grove.PodCliqueScalingGroup]{
		"nothing changes": {},
		"metadata is checked": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"replicas may change":          {tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.Replicas = 5 }},
		"replicas may become 0":        {tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.Replicas = 0 }},
		"labels may change, Training":  {before: trainingGroup, tweak: func(g *grove.PodCliqueScalingGroup) { g.Labels = map[string]string{"a": "b"} }},
		"a change is checked in whole": {tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.Replicas = 1 }, want: field.ErrorList{invalid("spec.minAvailable")}},
		"workloadType is immutable":    {tweak: trainingGroup, want: field.ErrorList{invalid("spec.workloadType")}},
		"cliqueNames are immutable": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.CliqueNames = []string{"worker", "leader"} },
			want:  field.ErrorList{invalid("spec.cliqueNames")},
		},
		"minAvailable is immutable": {
			tweak: func(g *grove.PodCliqueScalingGroup) { g.Spec.MinAvailable = ptr.To[int32](1) },
			want:  field.ErrorList{invalid("spec.minAvailable")},
		},
		"replicas are immutable in Training": {
			before: trainingGroup,
			tweak:  func(g *grove.PodCliqueScalingGroup) { g.Spec.Replicas = 2 },
			want:   field.ErrorList{forbidden("spec.replicas")},
		},
		"an invalid spec may be written unchanged": {
			before: tooBig,
			tweak:  func(g *grove.PodCliqueScalingGroup) { g.Labels, g.Finalizers = map[string]string{"a": "b"}, nil },
		},
		"an invalid spec cannot be changed into another": {
			before: tooBig,
			tweak:  func(g *grove.PodCliqueScalingGroup) { g.Spec.Replicas = 30001 },
			want:   field.ErrorList{invalid("spec.replicas")},
		},
		"an invalid field that is left untouched": {
			before: func(g *grove.PodCliqueScalingGroup) { g.Spec.CliqueNames = []string{"a", "a"} },
			tweak:  func(g *grove.PodCliqueScalingGroup) { g.Spec.Replicas = 5 },
		},
		"a group that goes away needs no valid spec": {
			before: func(g *grove.PodCliqueScalingGroup) { deleting(&g.ObjectMeta) },
			tweak:  func(g *grove.PodCliqueScalingGroup) { g.Finalizers, g.Spec.Replicas = nil, -1 },
		},
		"a group that goes away keeps what is immutable": {
			before: func(g *grove.PodCliqueScalingGroup) { deleting(&g.ObjectMeta) },
			tweak:  trainingGroup,
			want:   field.ErrorList{invalid("spec.workloadType")},
		},
	})
}
