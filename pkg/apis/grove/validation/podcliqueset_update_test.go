package validation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/labels"
)

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
				pcs.Spec.Template.ResourceClaimTemplates = []grove.ResourceClaimTemplateConfig{mkClaim("claim")}
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
			tweak: all(podSpec(func(s *corev1.PodSpec) { s.SchedulerName = "kai-scheduler" }), cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.PodSpec.SchedulerName = "kai-scheduler" })),
			want:  field.ErrorList{invalid(podSpec0 + ".schedulerName"), invalid(clique1 + ".spec.podSpec.schedulerName")},
		},
		"memory fabric of the set is immutable": {
			tweak: func(pcs *grove.PodCliqueSet) { pcs.Annotations = map[string]string{labels.FabricGroup: "a"} },
			want:  field.ErrorList{invalid("metadata.annotations[grove.io/mnnvl-group]")},
		},
		"memory fabric of a clique is immutable": {
			before: clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Annotations = map[string]string{labels.FabricGroup: "a"} }),
			tweak:  clique(0, func(c *grove.PodCliqueTemplateSpec) { c.Annotations = nil }),
			want:   field.ErrorList{invalid(clique0 + ".annotations[grove.io/mnnvl-group]")},
		},
		"memory fabric of a group is immutable": {
			before: decode,
			tweak:  group(0, func(g *grove.PodCliqueScalingGroupConfig) { g.Annotations = map[string]string{labels.FabricGroup: "a"} }),
			want:   field.ErrorList{invalid(group0 + ".annotations[grove.io/mnnvl-group]")},
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
		"an invalid field that is left untouched": {before: tooBig, tweak: image},
		"an invalid field cannot be changed into another": {
			before: tooBig,
			tweak:  func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 40000 },
			want:   field.ErrorList{invalid("spec")},
		},
		"an invalid field excuses no other": {
			before: tooBig,
			tweak:  podSpec(func(s *corev1.PodSpec) { s.NodeName = "node" }),
			want:   field.ErrorList{forbidden(podSpec0 + ".nodeName")},
		},
		"an invalid field of a clique that is moved": {
			before: podSpec(func(s *corev1.PodSpec) { s.NodeName = "node" }),
			tweak:  swap,
		},
		"an invalid field excuses one of its like": {
			before: podSpec(func(s *corev1.PodSpec) { s.NodeName = "node" }),
			tweak:  cliqueSpec(1, func(s *grove.PodCliqueSpec) { s.PodSpec.NodeName = "node" }),
			want:   field.ErrorList{forbidden(clique1 + ".spec.podSpec.nodeName")},
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
