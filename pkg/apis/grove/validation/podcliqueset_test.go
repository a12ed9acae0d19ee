package validation

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/labels"
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
		"name is required":                                   {tweak: func(pcs *grove.PodCliqueSet) { pcs.Name = "" }, want: field.ErrorList{required("metadata.name")}},
		"name is a DNS label, without dots":                  {tweak: func(pcs *grove.PodCliqueSet) { pcs.Name = "llm.v2" }, want: field.ErrorList{invalid("metadata.name")}},
		"namespace is required":                              {tweak: func(pcs *grove.PodCliqueSet) { pcs.Namespace = "" }, want: field.ErrorList{required("metadata.namespace")}},
		"name begins with a letter, as those of Services do": {tweak: func(pcs *grove.PodCliqueSet) { pcs.Name = "7b" }, want: field.ErrorList{invalid("metadata.name")}},
		"name has at most 63 characters":                     {tweak: func(pcs *grove.PodCliqueSet) { pcs.Name = strings.Repeat("a", 64) }, want: field.ErrorList{invalid("metadata.name")}},
		"memory fabric is a DNS label":                       {tweak: func(pcs *grove.PodCliqueSet) { pcs.Annotations = map[string]string{labels.FabricGroup: "a_b"} }, want: field.ErrorList{invalid("metadata.annotations[grove.io/mnnvl-group]")}},
		"memory fabric none":                                 {tweak: func(pcs *grove.PodCliqueSet) { pcs.Annotations = map[string]string{labels.FabricGroup: "none"} }},
		"name does not end in a dash":                        {tweak: func(pcs *grove.PodCliqueSet) { pcs.Name = "llm-" }, want: field.ErrorList{invalid("metadata.name")}},
		"last character of generateName is checked":          {tweak: func(pcs *grove.PodCliqueSet) { pcs.GenerateName = "llM" }, want: field.ErrorList{invalid("metadata.generateName")}},
		"generateName may end in a dash":                     {tweak: func(pcs *grove.PodCliqueSet) { pcs.GenerateName = "llm-" }},
		"generateName is the beginning of a label":           {tweak: func(pcs *grove.PodCliqueSet) { pcs.GenerateName = "llm.v2-" }, want: field.ErrorList{invalid("metadata.generateName")}},

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
		"maxUnavailable lets a pod be replaced": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.UpdateStrategy = &grove.PodCliqueSetUpdateStrategy{Type: grove.UpdateStrategyRollingRecreate, MaxUnavailable: ptr.To[int32](0)}
		}, want: field.ErrorList{invalid("spec.updateStrategy.maxUnavailable")}},
		"maxUnavailable may be 1": {tweak: func(pcs *grove.PodCliqueSet) {
			pcs.Spec.UpdateStrategy = &grove.PodCliqueSetUpdateStrategy{Type: grove.UpdateStrategyRollingRecreate, MaxUnavailable: ptr.To[int32](1)}
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

		"priorityClassName has at most 253 characters": {tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.PriorityClassName = strings.Repeat("a", 254) }, want: field.ErrorList{tooLong("spec.template.priorityClassName")}},

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
		"clique name is required":               {tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Name = "" }), want: field.ErrorList{required(clique0 + ".name")}},
		"clique name is a DNS label":            {tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Name = "router.a" }), want: field.ErrorList{invalid(clique0 + ".name")}},
		"clique name has at most 63 characters": {tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Name = strings.Repeat("a", 64) }), want: field.ErrorList{tooLong(clique0 + ".name")}},
		"memory fabric of a clique is a DNS label": {
			tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Annotations = map[string]string{labels.FabricGroup: ""} }),
			want:  field.ErrorList{invalid(clique0 + ".annotations[grove.io/mnnvl-group]")},
		},
		"clique names are unique": {tweak: clique(1, func(c *grove.PodCliqueTemplateSpec) { c.Name = "router" }), want: field.ErrorList{duplicate(clique1 + ".name")}},
		"roles are unique":        {tweak: cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.RoleName = "router" }), want: field.ErrorList{duplicate(clique1 + ".spec.roleName")}},
		"cliques without a role are no duplicates": {tweak: all(
			cliqueSpec(0, func(s *grove.PodCliqueSpec) { s.RoleName = "" }),
			cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.RoleName = "" }),
		)},
		"clique labels are valid": {
			tweak: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Labels = map[string]string{"app": "not a value"} }),
			want:  field.ErrorList{invalid(clique0 + ".labels")},
		},
		"clique labels of grove.io are the controller's": {
			tweak: clique(1, func(c *grove.PodCliqueTemplateSpec) {
				c.Labels = map[string]string{"grove.io/podgang": "other-0", "app": "a"}
			}),
			want: field.ErrorList{forbidden(clique1 + ".labels[grove.io/podgang]")},
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
	})
}
