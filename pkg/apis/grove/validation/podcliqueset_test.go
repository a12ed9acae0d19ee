package validation

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

const (
	cliques  = "spec.template.cliques"
	clique0  = "spec.template.cliques[0]"
	clique1  = "spec.template.cliques[1]"
	groups   = "spec.template.podCliqueScalingGroups"
	group0   = "spec.template.podCliqueScalingGroups[0]"
	group1   = "spec.template.podCliqueScalingGroups[1]"
	podSpec0 = clique0 + ".spec.podSpec"
)

func cliqueSpec(i int, tweak func(*grove.PodCliqueSpec)) func(*grove.PodCliqueSet) {
	return clique(i, func(c *grove.PodCliqueTemplateSpec) { tweak(&c.Spec) })
}

func podSpec(tweak func(*corev1.PodSpec)) func(*grove.PodCliqueSet) {
	return clique(0, func(c *grove.PodCliqueTemplateSpec) { tweak(&c.Spec.PodSpec) })
}

func delay(d time.Duration) *metav1.Duration {
	return &metav1.Duration{Duration: d}
}

func TestValidatePodCliqueSet(t *testing.T) {
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"valid inference set": {},
		"valid training set":  {tweak: training},
		"nil everything": {
			tweak: func(pcs *grove.PodCliqueSet) { *pcs = grove.PodCliqueSet{} },
			want: field.ErrorList{
				required("metadata.name"), required("metadata.namespace"),
				unsupported("spec.workloadType"), required(cliques),
			},
		},
		"null clique, null group and null rules": {
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.StartupPolicy = &grove.StartupPolicy{StartupPolicyOrder: grove.StartupPolicyAnyOrder, Rules: make([]grove.StartupPolicyRule, 1)}
				pcs.Spec.GroupSchedulingConfig = &grove.GroupSchedulingConfig{TargetCliques: make([]string, 1)}
				pcs.Spec.TrainingSpec = &grove.TrainingSpec{}
				pcs.Spec.UpdateStrategy = &grove.PodCliqueSetUpdateStrategy{}
				pcs.Spec.Template = grove.PodCliqueSetTemplateSpec{
					Cliques:                make([]grove.PodCliqueTemplateSpec, 1),
					PodCliqueScalingGroups: make([]grove.PodCliqueScalingGroupConfig, 1),
				}
			},
			want: field.ErrorList{
				unsupported("spec.updateStrategy.type"),
				unsupported("spec.startupPolicy.rules[0].waitForCliquesStatus"), required("spec.startupPolicy.rules[0].targetCliques"),
				forbidden("spec.trainingSpec"),
				required(clique0 + ".name"), invalid(clique0 + ".spec.replicas"), required(podSpec0 + ".containers"),
				required(group0 + ".name"), required(group0 + ".cliqueNames"),
			},
		},

		// Metadata.
		"name is required":                          {tweak: func(pcs *grove.PodCliqueSet) { pcs.Name = "" }, want: field.ErrorList{required("metadata.name")}},
		"name is a DNS label, without dots":         {tweak: func(pcs *grove.PodCliqueSet) { pcs.Name = "llm.v2" }, want: field.ErrorList{invalid("metadata.name")}},
		"namespace is required":                     {tweak: func(pcs *grove.PodCliqueSet) { pcs.Namespace = "" }, want: field.ErrorList{required("metadata.namespace")}},
		"name does not end in a dash":               {tweak: func(pcs *grove.PodCliqueSet) { pcs.Name = "llm-" }, want: field.ErrorList{invalid("metadata.name")}},
		"last character of generateName is checked": {tweak: func(pcs *grove.PodCliqueSet) { pcs.GenerateName = "llM" }, want: field.ErrorList{invalid("metadata.generateName")}},
		"generateName may end in a dash":            {tweak: func(pcs *grove.PodCliqueSet) { pcs.GenerateName = "llm-" }},
		"generateName is the beginning of a label":  {tweak: func(pcs *grove.PodCliqueSet) { pcs.GenerateName = "llm.v2-" }, want: field.ErrorList{invalid("metadata.generateName")}},

		// The set.
		"replicas may be 0 in Inference": {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 0 }},
		"replicas are not negative":      {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = -1 }, want: field.ErrorList{invalid("spec.replicas")}},
		"workloadType is known":          {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.WorkloadType = "Batch" }, want: field.ErrorList{unsupported("spec.workloadType")}},
		"updateStrategy is known": {
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.UpdateStrategy = &grove.PodCliqueSetUpdateStrategy{Type: "Recreate"}
			},
			want: field.ErrorList{unsupported("spec.updateStrategy.type")},
		},
		"updateStrategy RollingRecreate": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.UpdateStrategy = &grove.PodCliqueSetUpdateStrategy{Type: grove.UpdateStrategyRollingRecreate}
		}},
		"updateStrategy OnDelete": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.UpdateStrategy = &grove.PodCliqueSetUpdateStrategy{Type: grove.UpdateStrategyOnDelete}
		}},
		"cliqueStartupType is known": {
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.StartupType = ptr.To[grove.CliqueStartupType]("InOrder")
			},
			want: field.ErrorList{unsupported("spec.template.cliqueStartupType")},
		},
		"cliqueStartupType InOrder": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.StartupType = ptr.To(grove.CliqueStartupTypeInOrder)
		}},
		"cliqueStartupType Explicit": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.StartupType = ptr.To(grove.CliqueStartupTypeExplicit)
		}},
		"priorityClassName may have dots":   {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.PriorityClassName = "gpu.high" }},
		"priorityClassName is a valid name": {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.PriorityClassName = "High" }, want: field.ErrorList{invalid("spec.template.priorityClassName")}},

		// Cliques.
		"clique list is not empty": {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques = nil }, want: field.ErrorList{required(cliques)}},
		"empty clique list with a startup policy and a group": {
			tweak: all(withGroup("decode", "worker"), func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques = []grove.PodCliqueTemplateSpec{}
				pcs.Spec.StartupPolicy = &grove.StartupPolicy{
					StartupPolicyOrder: grove.StartupPolicyInOrder,
					Rules:              []grove.StartupPolicyRule{{TargetCliques: []string{"worker"}, WaitForCliquesStatus: grove.CliqueStatusReady}},
				}
			}),
			want: field.ErrorList{required(cliques), notFound(group0 + ".cliqueNames[0]"), notFound("spec.startupPolicy.rules[0].targetCliques[0]")},
		},
		"clique name is required":    {tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Name = "" }), want: field.ErrorList{required(clique0 + ".name")}},
		"clique name is a DNS label": {tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Name = "router.a" }), want: field.ErrorList{invalid(clique0 + ".name")}},
		"clique names are unique":    {tweak: clique(1, func(c *grove.PodCliqueTemplateSpec) { c.Name = "router" }), want: field.ErrorList{duplicate(clique1 + ".name")}},
		"roles are unique":           {tweak: cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.RoleName = "router" }), want: field.ErrorList{duplicate(clique1 + ".spec.roleName")}},
		"cliques without a role are no duplicates": {tweak: all(
			cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.RoleName = "" }),
			cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.RoleName = "" }),
		)},
		"clique labels are valid": {
			tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Labels = map[string]string{"app": "not a value"} }),
			want:  field.ErrorList{invalid(clique0 + ".labels")},
		},
		"clique annotations are valid": {
			tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Annotations = map[string]string{"not a key": ""} }),
			want:  field.ErrorList{invalid(clique0 + ".annotations")},
		},
		"clique has at least one pod": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas, s.MinAvailable = 0, nil }),
			want:  field.ErrorList{invalid(clique0 + ".spec.replicas")},
		},
		"clique replicas are not negative": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas, s.MinAvailable = -1, nil }),
			want:  field.ErrorList{invalid(clique0 + ".spec.replicas")},
		},
		"minAvailable may be below replicas": {tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas, s.MinAvailable = 3, ptr.To[int32](2) })},
		"minAvailable is at least 1": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.MinAvailable = ptr.To[int32](0) }),
			want:  field.ErrorList{invalid(clique0 + ".spec.minAvailable")},
		},
		"minAvailable is at most replicas": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.MinAvailable = ptr.To[int32](2) }),
			want:  field.ErrorList{invalid(clique0 + ".spec.minAvailable")},
		},
		"attempt is not for users": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Attempt = 1 }),
			want:  field.ErrorList{forbidden(clique0 + ".spec.attempt")},
		},
		"workloadType of a clique is not for users": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.WorkloadType = grove.WorkloadTypeInference }),
			want:  field.ErrorList{forbidden(clique0 + ".spec.workloadType")},
		},

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

		// Pods.
		"pod has a container": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.Containers = nil }),
			want:  field.ErrorList{required(podSpec0 + ".containers")},
		},
		"container name is required": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.Containers[0].Name = "" }),
			want:  field.ErrorList{required(podSpec0 + ".containers[0].name")},
		},
		"container name is a DNS label": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.Containers[0].Name = "Main" }),
			want:  field.ErrorList{invalid(podSpec0 + ".containers[0].name")},
		},
		"container names are unique": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.Containers = append(s.Containers, s.Containers[0]) }),
			want:  field.ErrorList{duplicate(podSpec0 + ".containers[1].name")},
		},
		"init containers share the names of containers": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{Name: "main"}} }),
			want:  field.ErrorList{duplicate(podSpec0 + ".containers[0].name")},
		},
		"init container name is required": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.InitContainers = make([]corev1.Container, 1) }),
			want:  field.ErrorList{required(podSpec0 + ".initContainers[0].name")},
		},
		"restartPolicy is known": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.RestartPolicy = "Sometimes" }),
			want:  field.ErrorList{unsupported(podSpec0 + ".restartPolicy")},
		},
		"restartPolicy may be empty":                {tweak: podSpec(func(s *corev1.PodSpec) { s.RestartPolicy = "" })},
		"restartPolicy Always is fine in Inference": {tweak: podSpec(func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyAlways })},
		"nodeName is for the scheduler": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.NodeName = "node" }),
			want:  field.ErrorList{forbidden(podSpec0 + ".nodeName")},
		},
		"schedulingGroup is for the controller": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.SchedulingGroup = &corev1.PodSchedulingGroup{} }),
			want:  field.ErrorList{forbidden(podSpec0 + ".schedulingGroup")},
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

		// Termination delay.
		"terminationDelay with an override": {tweak: all(withGroup("decode", "worker"), func(pcs *grove.PodCliqueSet) {
			pcs.Spec.Template.TerminationDelay = delay(time.Hour)
			pcs.Spec.Template.PodCliqueScalingGroups[0].TerminationDelay = delay(time.Minute)
		})},
		"terminationDelay is not negative": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(-1) },
			want:  field.ErrorList{invalid("spec.template.terminationDelay")},
		},
		"terminationDelay is more than 0 in Inference": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TerminationDelay = delay(0) },
			want:  field.ErrorList{invalid("spec.template.terminationDelay")},
		},
		"override needs a terminationDelay of the set": {
			tweak: all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.TerminationDelay = delay(time.Minute)
			})),
			want: field.ErrorList{forbidden(group0 + ".terminationDelay")},
		},
		"override is not negative": {
			tweak: all(withGroup("decode", "worker"), func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.TerminationDelay = delay(time.Hour)
				pcs.Spec.Template.PodCliqueScalingGroups[0].TerminationDelay = delay(-1)
			}),
			want: field.ErrorList{invalid(group0 + ".terminationDelay")},
		},
		"override is more than 0 in Inference": {
			tweak: all(withGroup("decode", "worker"), func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.TerminationDelay = delay(time.Hour)
				pcs.Spec.Template.PodCliqueScalingGroups[0].TerminationDelay = delay(0)
			}),
			want: field.ErrorList{invalid(group0 + ".terminationDelay")},
		},
		"override may be 0 in Training": {tweak: all(training, withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.TerminationDelay = delay(0)
		}))},

		// Size.
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

// The longest generated name is a pod's host name, of 63 characters at most.
func TestValidatePodCliqueSetNameBudget(t *testing.T) {
	// named gives the set a name that makes the longest host name of the worker, whose
	// other parts are rest characters long, 63 characters long; more makes it longer.
	named := func(rest string, more int) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { pcs.Name = strings.Repeat("a", 63-len(rest)+more) }
	}
	oneClique := func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques = pcs.Spec.Template.Cliques[1:] }
	shapes := map[string]struct {
		rest  string
		tweak func(*grove.PodCliqueSet)
	}{
		"standalone clique":   {"-0-worker-0", oneClique},
		"member clique":       {"-0-decode-0-worker-0", all(oneClique, withGroup("decode", "worker"))},
		"replica of 3 digits": {"-100-worker-0", all(oneClique, func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 101 })},
		"set scaled to 0":     {"-0-worker-0", all(oneClique, func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 0 })},
		"pod of 2 digits":     {"-0-worker-10", all(oneClique, cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = 11 }))},
		"pod of 1 digit":      {"-0-worker-9", all(oneClique, cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = 10 }))},
		"pod that an autoscaler may make": {"-0-worker-99", all(oneClique, cliqueSpec(0, func(s *grove.PodCliqueSpec) {
			s.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 100}
		}))},
		"copy of 2 digits": {"-0-decode-10-worker-0", all(oneClique, withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.Replicas = ptr.To[int32](11)
		}))},
		"copy that an autoscaler may make": {"-0-decode-99-worker-0", all(oneClique, withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.ScaleConfig = &grove.AutoScalingConfig{MaxReplicas: 100}
		}))},
		"group without replicas": {"-0-decode-0-worker-0", all(oneClique, withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			g.Replicas = nil
		}))},
	}
	tests := map[string]createCase[grove.PodCliqueSet]{}
	for name, shape := range shapes {
		tests[name+": 63 characters"] = createCase[grove.PodCliqueSet]{tweak: all(shape.tweak, named(shape.rest, 0))}
		tests[name+": 64 characters"] = createCase[grove.PodCliqueSet]{
			tweak: all(shape.tweak, named(shape.rest, 1)),
			want:  field.ErrorList{invalid(clique0 + ".name")},
		}
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, tests)
}

func TestValidatePodCliqueSetUpdate(t *testing.T) {
	decode := withGroup("decode", "worker")
	constraint := &grove.TopologyConstraint{TopologyName: "gpu", Pack: &grove.TopologyPackConstraint{Required: "rack"}}
	sharing := grove.ResourceSharingSpec{Name: "claim", Scope: grove.ResourceSharingScopePerReplica}
	image := func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "v2" }
	swap := func(pcs *grove.PodCliqueSet) {
		list := pcs.Spec.Template.Cliques
		list[0], list[1] = list[1], list[0]
	}
	inOrder := func(pcs *grove.PodCliqueSet) {
		pcs.Spec.StartupPolicy = &grove.StartupPolicy{
			StartupPolicyOrder: grove.StartupPolicyInOrder,
			Rules:              []grove.StartupPolicyRule{{TargetCliques: []string{"router"}, WaitForCliquesStatus: grove.CliqueStatusReady}},
		}
	}
	// An object that was stored before a rule was tightened.
	tooBig := func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 30000 }

	testUpdate(t, mkPodCliqueSet, ValidatePodCliqueSetUpdate, map[string]updateCase[grove.PodCliqueSet]{
		"nothing changes": {},
		"metadata is checked": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"nil everything": {
			before: func(pcs *grove.PodCliqueSet) { *pcs = grove.PodCliqueSet{} },
			want:   field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"what may change in Inference": {
			before: decode,
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Labels = map[string]string{"a": "b"}
				pcs.Spec.Replicas = 2
				pcs.Spec.UpdateStrategy = &grove.PodCliqueSetUpdateStrategy{Type: grove.UpdateStrategyOnDelete}
				template := &pcs.Spec.Template
				template.PriorityClassName = "high"
				template.HeadlessServiceConfig = nil
				template.TerminationDelay = delay(time.Hour)
				template.Cliques[0].Labels = map[string]string{"a": "b"}
				template.Cliques[0].Annotations = map[string]string{"a": "b"}
				template.Cliques[0].Spec.Replicas = 2
				template.Cliques[0].Spec.AutoScalingConfig = &grove.AutoScalingConfig{MaxReplicas: 4}
				template.Cliques[0].Spec.PodSpec.Containers[0].Image = "v2"
				template.PodCliqueScalingGroups[0].Replicas = ptr.To[int32](2)
				template.PodCliqueScalingGroups[0].ScaleConfig = &grove.AutoScalingConfig{MaxReplicas: 4}
				template.PodCliqueScalingGroups[0].TerminationDelay = delay(time.Minute)
			},
		},
		"a change has to be valid": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = -1 },
			want:  field.ErrorList{invalid("spec.replicas")},
		},

		// What is immutable.
		"workloadType is immutable": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.WorkloadType = grove.WorkloadTypeTraining },
			want:  field.ErrorList{invalid("spec.workloadType")},
		},
		"startupPolicy is immutable": {
			tweak: inOrder,
			want:  field.ErrorList{invalid("spec.startupPolicy")},
		},
		"groupSchedulingConfig is immutable": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.GroupSchedulingConfig = &grove.GroupSchedulingConfig{} },
			want:  field.ErrorList{invalid("spec.groupSchedulingConfig")},
		},
		"cliqueStartupType is immutable": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.StartupType = ptr.To(grove.CliqueStartupTypeInOrder) },
			want:  field.ErrorList{invalid("spec.template.cliqueStartupType")},
		},
		"topologyConstraint is immutable": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TopologyConstraint = constraint },
			want:  field.ErrorList{invalid("spec.template.topologyConstraint")},
		},
		"resourceClaimTemplates are immutable": {
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.ResourceClaimTemplates = []grove.ResourceClaimTemplateConfig{{Name: "claim", TemplateSpec: resourcev1.ResourceClaimTemplateSpec{}}}
			},
			want: field.ErrorList{invalid("spec.template.resourceClaimTemplates")},
		},
		"resourceSharing is immutable": {
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.ResourceSharing = []grove.PCSResourceSharingSpec{{ResourceSharingSpec: sharing}}
			},
			want: field.ErrorList{invalid("spec.template.resourceSharing")},
		},
		"a clique cannot be added": {
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, mkClique("helper"))
			},
			want: field.ErrorList{forbidden("spec.template.cliques[2].name")},
		},
		"a clique cannot be removed": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques = pcs.Spec.Template.Cliques[:1] },
			want:  field.ErrorList{forbidden(cliques)},
		},
		"a clique cannot be renamed": {
			tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Name = "gateway" }),
			want:  field.ErrorList{forbidden(clique0 + ".name"), forbidden(cliques)},
		},
		"all cliques removed": {
			before: inOrder,
			tweak:  func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.Cliques = nil },
			want: field.ErrorList{
				forbidden(cliques), forbidden(cliques), required(cliques),
				notFound("spec.startupPolicy.rules[0].targetCliques[0]"),
			},
		},
		"cliques may be moved in AnyOrder": {tweak: swap},
		"cliques may be moved in startupPolicy AnyOrder": {
			before: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.StartupPolicy = &grove.StartupPolicy{StartupPolicyOrder: grove.StartupPolicyAnyOrder}
			},
			tweak: swap,
		},
		"cliques cannot be moved in cliqueStartupType InOrder": {
			before: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.StartupType = ptr.To(grove.CliqueStartupTypeInOrder) },
			tweak:  swap,
			want:   field.ErrorList{forbidden(cliques)},
		},
		"cliques cannot be moved in startupPolicy InOrder": {
			before: all(inOrder, func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, mkClique("helper"))
				pcs.Spec.StartupPolicy.Rules[0].TargetCliques = []string{"router", "worker"}
			}),
			tweak: swap,
			want:  field.ErrorList{forbidden(cliques)},
		},
		"roleName is immutable": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.RoleName = "gateway" }),
			want:  field.ErrorList{invalid(clique0 + ".spec.roleName")},
		},
		"minAvailable is immutable": {
			before: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = 2 }),
			tweak:  cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.MinAvailable = ptr.To[int32](2) }),
			want:   field.ErrorList{invalid(clique0 + ".spec.minAvailable")},
		},
		"startsAfter is immutable": {
			tweak: cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.StartsAfter = []string{"worker"} }),
			want:  field.ErrorList{invalid(clique0 + ".spec.startsAfter")},
		},
		"schedulerName is immutable": {
			tweak: podSpec(func(s *corev1.PodSpec) { s.SchedulerName = "kai-scheduler" }),
			want:  field.ErrorList{invalid(podSpec0 + ".schedulerName")},
		},
		"topologyConstraint of a clique is immutable": {
			tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.TopologyConstraint = constraint }),
			want:  field.ErrorList{invalid(clique0 + ".topologyConstraint")},
		},
		"resourceSharing of a clique is immutable": {
			tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.ResourceSharing = []grove.ResourceSharingSpec{sharing} }),
			want:  field.ErrorList{invalid(clique0 + ".resourceSharing")},
		},
		"immutable fields of a moved clique are compared by name": {
			tweak: all(swap, cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.RoleName = "gateway" })),
			want:  field.ErrorList{invalid(clique1 + ".spec.roleName")},
		},
		"a scaling group cannot be added": {
			tweak: decode,
			want:  field.ErrorList{forbidden(group0 + ".name")},
		},
		"a scaling group cannot be removed": {
			before: decode,
			tweak:  func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.PodCliqueScalingGroups = nil },
			want:   field.ErrorList{forbidden(groups)},
		},
		"cliqueNames are immutable": {
			before: decode,
			tweak:  group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.CliqueNames = []string{"router"} }),
			want:   field.ErrorList{invalid(group0 + ".cliqueNames")},
		},
		"minAvailable of a group is immutable": {
			before: all(decode, group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.Replicas = ptr.To[int32](2) })),
			tweak:  group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.MinAvailable = ptr.To[int32](2) }),
			want:   field.ErrorList{invalid(group0 + ".minAvailable")},
		},
		"topologyConstraint of a group is immutable": {
			before: decode,
			tweak:  group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.TopologyConstraint = constraint }),
			want:   field.ErrorList{invalid(group0 + ".topologyConstraint")},
		},
		"resourceSharing of a group is immutable": {
			before: decode,
			tweak: group(0, func(g *grove.PodCliqueScalingGroupConfig) {
				g.ResourceSharing = []grove.PCSGResourceSharingSpec{{ResourceSharingSpec: sharing}}
			}),
			want: field.ErrorList{invalid(group0 + ".resourceSharing")},
		},

		// Training.
		"budgets may change in Training": {before: training, tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.TrainingSpec.MaxRestarts = ptr.To[int32](0)
			pcs.Spec.TrainingSpec.MaxRuntime = nil
		}},
		"budgets may go away in Training": {before: training, tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.TrainingSpec = nil }},
		"labels of the set and delays may change in Training": {before: all(training, decode), tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Labels = map[string]string{"a": "b"}
			pcs.Annotations = map[string]string{"a": "b"}
			pcs.Spec.Template.TerminationDelay = delay(time.Minute)
			pcs.Spec.Template.PodCliqueScalingGroups[0].TerminationDelay = delay(time.Second)
		}},
		"cliques may be moved in Training": {before: training, tweak: swap},
		"an equal template may be written in another way in Training": {
			before: all(training, podSpec(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{} })),
			tweak:  podSpec(func(s *corev1.PodSpec) { s.NodeSelector = nil }),
		},
		"replicas are immutable in Training": {
			before: training,
			tweak:  func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 2 },
			want:   field.ErrorList{forbidden("spec.replicas")},
		},
		"replicas of a clique are immutable in Training": {
			before: training,
			tweak:  cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.Replicas = 2 }),
			want:   field.ErrorList{forbidden(clique0 + ".spec.replicas")},
		},
		"replicas of a group are immutable in Training": {
			before: all(training, decode),
			tweak:  group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.Replicas = ptr.To[int32](2) }),
			want:   field.ErrorList{forbidden(group0 + ".replicas")},
		},
		"a group without replicas has one copy in Training": {
			before: all(training, decode),
			tweak:  group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.Replicas = nil }),
		},
		"replicas of a group that had none are immutable in Training": {
			before: all(training, decode, group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.Replicas = nil })),
			tweak:  group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.Replicas = ptr.To[int32](2) }),
			want:   field.ErrorList{forbidden(group0 + ".replicas")},
		},
		"podSpec is immutable in Training": {before: training, tweak: image, want: field.ErrorList{forbidden(clique0)}},
		"labels of a clique are immutable in Training": {
			before: training,
			tweak:  clique(1, func(c *grove.PodCliqueTemplateSpec) { c.Labels = map[string]string{"a": "b"} }),
			want:   field.ErrorList{forbidden(clique1)},
		},
		"annotations of a clique are immutable in Training": {
			before: training,
			tweak:  clique(1, func(c *grove.PodCliqueTemplateSpec) { c.Annotations = map[string]string{"a": "b"} }),
			want:   field.ErrorList{forbidden(clique1)},
		},
		"priorityClassName is immutable in Training": {
			before: training,
			tweak:  func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.PriorityClassName = "high" },
			want:   field.ErrorList{forbidden(clique0), forbidden(clique1)},
		},
		"a clique that is added in Training": {
			before: training,
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, mkClique("helper"))
			},
			want: field.ErrorList{forbidden("spec.template.cliques[2].name")},
		},
		"a group that is added in Training": {before: training, tweak: decode, want: field.ErrorList{forbidden(group0 + ".name")}},
		"the old set decides what Training is": {
			before: training,
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Spec.WorkloadType = grove.WorkloadTypeInference
				pcs.Spec.TrainingSpec = nil
				pcs.Spec.Template.TerminationDelay = nil
				pcs.Spec.Replicas = 2
			},
			want: field.ErrorList{invalid("spec.workloadType"), forbidden("spec.replicas")},
		},

		// Ratcheting: a set that was stored before a rule was tightened.
		"an invalid spec may be written unchanged": {before: tooBig, tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Labels = map[string]string{"a": "b"}
			pcs.Finalizers = nil
		}},
		"an invalid spec cannot be changed into another": {
			before: tooBig,
			tweak:  image,
			want:   field.ErrorList{invalid("spec")},
		},
		"a set that goes away needs no valid spec": {
			before: all(tooBig, func(pcs *grove.PodCliqueSet) { deleting(&pcs.ObjectMeta) }),
			tweak: func(pcs *grove.PodCliqueSet) {
				pcs.Finalizers = nil
				pcs.Spec.Replicas = -1
			},
		},
		"a set that goes away keeps what is immutable": {
			before: func(pcs *grove.PodCliqueSet) { deleting(&pcs.ObjectMeta) },
			tweak:  func(pcs *grove.PodCliqueSet) { pcs.Spec.WorkloadType = grove.WorkloadTypeTraining },
			want:   field.ErrorList{invalid("spec.workloadType")},
		},
	})
}

// Two cliques of a set never lead to PodCliques of one name.
func TestCliquesOfASetHaveNamesApart(t *testing.T) {
	cliques := func(names ...string) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) {
			base := pcs.Spec.Template.Cliques[0]
			pcs.Spec.Template.Cliques = nil
			for _, name := range names {
				clique := *base.DeepCopy()
				clique.Name, clique.Spec.RoleName = name, name
				pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, clique)
			}
		}
	}
	tests := map[string]createCase[grove.PodCliqueSet]{
		"standalone like a copy":          {tweak: all(cliques("worker", "decode-0-worker"), withGroup("decode", "worker")), want: field.ErrorList{invalid("spec.template.cliques[1].name")}},
		"standalone like a far copy":      {tweak: all(cliques("worker", "decode-12-worker"), withGroup("decode", "worker")), want: field.ErrorList{invalid("spec.template.cliques[1].name")}},
		"standalone with another member":  {tweak: all(cliques("worker", "decode-0-leader"), withGroup("decode", "worker"))},
		"standalone without a number":     {tweak: all(cliques("worker", "decode-x-worker"), withGroup("decode", "worker"))},
		"standalone that goes on":         {tweak: all(cliques("worker", "decode-0-worker-b"), withGroup("decode", "worker"))},
		"groups a and a-0":                {tweak: all(cliques("0-b", "b"), withGroup("a", "0-b"), withGroup("a-0", "b")), want: field.ErrorList{invalid("spec.template.cliques[0].name")}},
		"groups a and a-0-x":              {tweak: all(cliques("x-1-b", "b"), withGroup("a", "x-1-b"), withGroup("a-0-x", "b")), want: field.ErrorList{invalid("spec.template.cliques[0].name")}},
		"groups a and a-b":                {tweak: all(cliques("0-b", "b"), withGroup("a", "0-b"), withGroup("a-b", "b"))},
		"groups a and a-0, other members": {tweak: all(cliques("worker", "b"), withGroup("a", "worker"), withGroup("a-0", "b"))},
		"two cliques of one group":        {tweak: all(cliques("worker", "leader"), withGroup("decode", "worker", "leader"))},
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, tests)
}
