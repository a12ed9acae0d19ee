package validation

import (
	"math"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/labels"
)

func TestValidateSize(t *testing.T) {
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"20000 pods are not too many": {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 10000 }},
		"20002 pods are too many": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 10001 },
			want:  field.ErrorList{invalid("spec")},
		},
		"copies of a group count": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.Replicas = ptr.To[int32](20000)
			})),
			want: field.ErrorList{invalid("spec")},
		},
		"2^31-1 replicas of the set": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = math.MaxInt32 },
			want:  field.ErrorList{invalid("spec")},
		},
		"2^31-1 replicas of a clique": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = math.MaxInt32 }),
			want:  field.ErrorList{invalid("spec")},
		},
		"2^31-1 replicas of a clique of a set that has no replica yet": {
			tweak: all(func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 0 }, cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = math.MaxInt32 })),
			want:  field.ErrorList{invalid("spec")},
		},
		"2^31-1 replicas of a group": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.Replicas = ptr.To[int32](math.MaxInt32)
			})),
			want: field.ErrorList{invalid("spec")},
		},
		"2^31-1 replicas everywhere": {
			tweak: all(withGroup("decode", "router", "worker"),
				func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = math.MaxInt32 },
				cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = math.MaxInt32 }),
				cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.Replicas = math.MaxInt32 }),
				group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.Replicas = ptr.To[int32](math.MaxInt32) })),
			want: field.ErrorList{invalid("spec")},
		},
		"2^31-1 replicas everywhere, in a third clique too": {
			tweak: all(withGroup("decode", "router", "worker", "helper"),
				func(pcs *grove.PodCliqueSet) {
					pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, mkClique("helper"))
				},
				cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = math.MaxInt32 }),
				cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.Replicas = math.MaxInt32 }),
				cliqueSpec(2, func(s *grove.PodCliqueSpec) { s.Replicas = math.MaxInt32 }),
				group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.Replicas = ptr.To[int32](math.MaxInt32) })),
			want: field.ErrorList{invalid("spec")},
		},
		// 2^30 · (2^60 + 2^60) = 2^91, which is 0 in 64 bits.
		"size that is 0 in 64 bits": {
			tweak: all(withGroup("decode", "router", "worker"),
				func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 1 << 30 },
				cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = 1 << 30 }),
				cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.Replicas = 1 << 30 }),
				group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.Replicas = ptr.To[int32](1 << 30) })),
			want: field.ErrorList{invalid("spec")},
		},
	})
}

func TestSizeErrorsAreOfOriginMaximum(t *testing.T) {
	for name, tweak := range map[string]func(*grove.PodCliqueSet){
		"set":    func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = math.MaxInt32 },
		"clique": cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = math.MaxInt32 }),
		"group": all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.Replicas = ptr.To[int32](math.MaxInt32)
		})),
	} {
		errs := ValidatePodCliqueSet(mkPodCliqueSet(tweak))
		if len(errs) != 1 || errs[0].Origin != "maximum" {
			t.Errorf("%s: want one error of origin maximum, got %v", name, errs)
		}
	}
}

// A hostile list is refused by its length, before anything looks at what is in it.
func TestListsAreBounded(t *testing.T) {
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"256 cliques": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.Cliques = nil
			for i := range int32(256) {
				pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, mkClique("c"+labels.Index(i)))
			}
		}},
		"257 cliques are too many": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques = make([]grove.PodCliqueTemplateSpec, 257) },
			want:  field.ErrorList{tooMany(cliques)},
		},
		"257 groups are too many": {
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.PodCliqueScalingGroups = make([]grove.PodCliqueScalingGroupConfig, 257)
			},
			want: field.ErrorList{tooMany(groups)},
		},
	})
	const many = 10001
	names := make([]string, many)
	env := make([]corev1.EnvVar, many)
	entries := map[string]string{}
	for i := range int32(many) {
		entries["k"+labels.Index(i)] = ""
	}
	metrics := &grove.AutoScalingConfig{MaxReplicas: 1, Metrics: make([]autoscalingv2.MetricSpec, many)}
	policies := &autoscalingv2.HPAScalingRules{Policies: make([]autoscalingv2.HPAScalingPolicy, many)}
	behaves := func(up, down *autoscalingv2.HPAScalingRules) *grove.AutoScalingConfig {
		return &grove.AutoScalingConfig{MaxReplicas: 1, Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: up, ScaleDown: down}}
	}
	sharing := grove.PCSGResourceSharingSpec{Filter: &grove.PCSGResourceSharingFilter{ChildCliqueNames: names}}
	tests := map[string]func(*grove.PodCliqueSet){
		"containers":                     podSpec(func(s *corev1.PodSpec) { s.Containers = make([]corev1.Container, many) }),
		"init containers":                podSpec(func(s *corev1.PodSpec) { s.InitContainers = make([]corev1.Container, many) }),
		"volumes":                        podSpec(func(s *corev1.PodSpec) { s.Volumes = make([]corev1.Volume, many) }),
		"scheduling gates":               podSpec(func(s *corev1.PodSpec) { s.SchedulingGates = make([]corev1.PodSchedulingGate, many) }),
		"environment variables":          podSpec(func(s *corev1.PodSpec) { s.Containers[0].Env = env }),
		"variables of an init container": podSpec(func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{Name: "init", Env: env}} }),
		"startsAfter":                    cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.StartsAfter = names }),
		"metrics":                        cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.AutoScalingConfig = metrics }),
		"policies to scale up":           cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.AutoScalingConfig = behaves(policies, nil) }),
		"policies to scale down":         cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.AutoScalingConfig = behaves(nil, policies) }),
		"labels":                         clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Labels = entries }),
		"annotations":                    clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Annotations = entries }),
		"sharing of a clique":            clique(0, func(c *grove.PodCliqueTemplateSpec) { c.ResourceSharing = make([]grove.ResourceSharingSpec, many) }),
		"cliques of a group":             withGroup("decode", names...),
		"annotations of a group":         all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.Annotations = entries })),
		"metrics of a group":             all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.ScaleConfig = metrics })),
		"sharing of a group": all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.ResourceSharing = make([]grove.PCSGResourceSharingSpec, many)
		})),
		"filter of a group": all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.ResourceSharing = []grove.PCSGResourceSharingSpec{sharing}
		})),
		"sharing of the set": func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.ResourceSharing = make([]grove.PCSResourceSharingSpec, many)
		},
		"claim templates": func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.ResourceClaimTemplates = make([]grove.ResourceClaimTemplateConfig, many)
		},
		"filter of cliques": func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.ResourceSharing = []grove.PCSResourceSharingSpec{{Filter: &grove.PCSResourceSharingFilter{ChildCliqueNames: names}}}
		},
		"filter of groups": func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.ResourceSharing = []grove.PCSResourceSharingSpec{{Filter: &grove.PCSResourceSharingFilter{ChildScalingGroupNames: names}}}
		},
		"rules":             startupInOrder(make([]grove.StartupPolicyRule, many)...),
		"targets of a rule": startupInOrder(grove.StartupPolicyRule{TargetCliques: names}),
		"targets of the barrier": func(pcs *grove.PodCliqueSet) {
			pcs.Spec.GroupSchedulingConfig = &grove.GroupSchedulingConfig{TargetCliques: names}
		},
	}
	for name, tweak := range tests {
		t.Run(name, func(t *testing.T) {
			wantErrors(t, ValidatePodCliqueSet(mkPodCliqueSet(tweak)), field.ErrorList{invalid("spec")})
		})
	}
	t.Run("a PodClique", func(t *testing.T) {
		wantErrors(t, ValidatePodClique(mkPodClique(func(c *grove.PodClique) { c.Spec.PodSpec.Containers[0].Env = env })), field.ErrorList{invalid("spec")})
	})
	t.Run("lists that are not too long in all", func(t *testing.T) {
		fits := podSpec(func(s *corev1.PodSpec) {
			for i := range int32(9990) {
				s.Containers[0].Env = append(s.Containers[0].Env, corev1.EnvVar{Name: "E" + labels.Index(i)})
			}
		})
		wantErrors(t, ValidatePodCliqueSet(mkPodCliqueSet(fits)), nil)
	})
}

// etcd would refuse a bigger object, with words that help nobody.
func TestObjectsAreBounded(t *testing.T) {
	script := func(bytes int) corev1.Container {
		return corev1.Container{Name: "main", Command: []string{strings.Repeat("a", bytes)}}
	}
	set := func(bytes int) func(*grove.PodCliqueSet) {
		return podSpec(func(s *corev1.PodSpec) { s.Containers = []corev1.Container{script(bytes)} })
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"a set of 1 MiB":            {tweak: set(1 << 20)},
		"a set of 3 MiB is too big": {tweak: set(3 << 20), want: field.ErrorList{invalid("spec")}},
		"what becomes bigger as text": {tweak: podSpec(func(s *corev1.PodSpec) {
			// A quarter of the bytes that JSON needs for it.
			s.Containers[0].Command = []string{strings.Repeat("\x01", 300_000)}
		}), want: field.ErrorList{invalid("spec")}},
		"metadata counts": {tweak: all(set(1_150_000), func(pcs *grove.PodCliqueSet) {
			pcs.Annotations = map[string]string{"a": strings.Repeat("a", 200_000)}
		}), want: field.ErrorList{invalid("spec")}},
	})
	testCreate(t, mkPodClique, ValidatePodClique, map[string]createCase[grove.PodClique]{
		"a clique of 1 MiB":            {tweak: func(c *grove.PodClique) { c.Spec.PodSpec.Containers = []corev1.Container{script(1 << 20)} }},
		"a clique of 3 MiB is too big": {tweak: func(c *grove.PodClique) { c.Spec.PodSpec.Containers = []corev1.Container{script(3 << 20)} }, want: field.ErrorList{invalid("spec")}},
	})
}

func TestPods(t *testing.T) {
	set := mkPodCliqueSet(withGroup("decode", "worker"),
		func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 2 },
		cliqueSpec(0, func(s *grove.PodCliqueSpec) {
			s.Replicas, s.AutoScalingConfig = 3, &grove.AutoScalingConfig{MaxReplicas: 5}
		}),
		cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.Replicas = 7 }),
		group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.Replicas, g.ScaleConfig = ptr.To[int32](2), &grove.AutoScalingConfig{MaxReplicas: 4}
		}))
	if got := Pods(&set.Spec, false); got != 2*(3+7*2) {
		t.Errorf("the template has %d pods", got)
	}
	if got := Pods(&set.Spec, true); got != 2*(5+7*4) {
		t.Errorf("the autoscalers may make it %d pods", got)
	}
}
