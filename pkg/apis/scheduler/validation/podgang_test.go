package validation

import (
	"math"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

func packedBy(required, preferred *string) *scheduler.TopologyConstraint {
	return &scheduler.TopologyConstraint{PackConstraint: &scheduler.TopologyPackConstraint{Required: required, Preferred: preferred}}
}

func TestValidatePodGang(t *testing.T) {
	const (
		groups  = "spec.podgroups"
		configs = "spec.topologyConstraintGroupConfigs"
	)
	testCreate(t, mkPodGang, ValidatePodGang, map[string]createCase[scheduler.PodGang]{
		"valid":                       {},
		"name may have dots":          {tweak: func(g *scheduler.PodGang) { g.Name = "llm.v2" }},
		"group may have no minimum":   {tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups[0].MinReplicas = 0 }},
		"gang without group configs":  {tweak: func(g *scheduler.PodGang) { g.Spec.TopologyConstraintGroupConfigs = nil }},
		"group without pods, for now": {tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups[0].PodReferences = nil }},
		"nil everything": {
			tweak: func(g *scheduler.PodGang) { *g = scheduler.PodGang{} },
			want:  field.ErrorList{required("metadata.name"), required("metadata.namespace"), required(groups)},
		},
		"null entries": {
			tweak: func(g *scheduler.PodGang) {
				g.Spec.PodGroups = make([]scheduler.PodGangPodGroup, 1)
				g.Spec.TopologyConstraintGroupConfigs = make([]scheduler.TopologyConstraintGroupConfig, 1)
			},
			want: field.ErrorList{required(groups + "[0].name"), required(configs + "[0].name"), required(configs + "[0].podGroupNames")},
		},
		"name is valid": {
			tweak: func(g *scheduler.PodGang) { g.Name = "LLM" },
			want:  field.ErrorList{invalid("metadata.name")},
		},
		"namespace is required": {
			tweak: func(g *scheduler.PodGang) {
				g.Namespace = ""
				g.Spec.PodGroups[1].PodReferences = nil
			},
			want: field.ErrorList{required("metadata.namespace")},
		},
		"gang has a group": {
			tweak: func(g *scheduler.PodGang) {
				g.Spec.PodGroups, g.Spec.TopologyConstraintGroupConfigs = nil, nil
			},
			want: field.ErrorList{required(groups)},
		},
		"group name is required": {
			tweak: func(g *scheduler.PodGang) {
				g.Spec.PodGroups[0].Name = ""
				g.Spec.TopologyConstraintGroupConfigs = nil
			},
			want: field.ErrorList{required(groups + "[0].name")},
		},
		"group names are unique": {
			tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups = append(g.Spec.PodGroups, g.Spec.PodGroups[0]) },
			want:  field.ErrorList{duplicate(groups + "[2].name")},
		},
		"minReplicas is not negative": {
			tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups[1].MinReplicas = -1 },
			want:  field.ErrorList{invalid(groups + "[1].minReplicas")},
		},
		"name of a pod is required": {
			tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups[1].PodReferences[0].Name = "" },
			want:  field.ErrorList{required(groups + "[1].podReferences[0].name")},
		},
		"pods are in the gang's namespace": {
			tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups[1].PodReferences[0].Namespace = "other" },
			want:  field.ErrorList{invalid(groups + "[1].podReferences[0].namespace")},
		},
		"name of a config is required": {
			tweak: func(g *scheduler.PodGang) { g.Spec.TopologyConstraintGroupConfigs[0].Name = "" },
			want:  field.ErrorList{required(configs + "[0].name")},
		},
		"names of configs are unique": {
			tweak: func(g *scheduler.PodGang) { g.Spec.TopologyConstraintGroupConfigs[1].Name = "decode" },
			want:  field.ErrorList{duplicate(configs + "[1].name")},
		},
		"group name is that of an object": {
			tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups[0].Name, g.Spec.TopologyConstraintGroupConfigs = "A", nil },
			want:  field.ErrorList{invalid(groups + "[0].name")},
		},
		"20000 pods are not too many": {tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups[0].MinReplicas = 19998 }},
		"20001 pods are too many": {
			tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups[0].MinReplicas = 19999 },
			want:  field.ErrorList{invalid(groups)},
		},
		"2^31-1 pods everywhere": {
			tweak: func(g *scheduler.PodGang) {
				g.Spec.PodGroups[0].MinReplicas, g.Spec.PodGroups[1].MinReplicas = math.MaxInt32, math.MaxInt32
			},
			want: field.ErrorList{invalid(groups)},
		},
		"lists are bounded": {
			tweak: func(g *scheduler.PodGang) {
				g.Spec.PodGroups[0].PodReferences = make([]scheduler.NamespacedName, 40001)
			},
			want: field.ErrorList{invalid("spec")},
		},
		"lists of names are bounded": {
			tweak: func(g *scheduler.PodGang) {
				g.Spec.TopologyConstraintGroupConfigs[0].PodGroupNames = make([]string, 40001)
			},
			want: field.ErrorList{invalid("spec")},
		},
		"name of a pod is that of an object": {
			tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups[1].PodReferences[0].Name = "A" },
			want:  field.ErrorList{invalid(groups + "[1].podReferences[0].name")},
		},
		"a pod is in a group once": {
			tweak: func(g *scheduler.PodGang) {
				g.Spec.PodGroups[1].PodReferences = []scheduler.NamespacedName{{Name: "a"}, {Name: "a"}}
			},
			want: field.ErrorList{duplicate(groups + "[1].podReferences[1].name")},
		},
		"a config names a group": {
			tweak: func(g *scheduler.PodGang) { g.Spec.TopologyConstraintGroupConfigs[1].PodGroupNames = nil },
			want:  field.ErrorList{required(configs + "[1].podGroupNames")},
		},
		"a config names a group once": {
			tweak: func(g *scheduler.PodGang) {
				g.Spec.TopologyConstraintGroupConfigs[1].PodGroupNames = []string{"llm-0-worker", "llm-0-worker"}
			},
			want: field.ErrorList{duplicate(configs + "[1].podGroupNames[1]")},
		},
		"topology constraints": {tweak: func(g *scheduler.PodGang) {
			g.Spec.TopologyConstraint = packedBy(ptr.To("example.com/rack"), nil)
			g.Spec.PodGroups[0].TopologyConstraint = packedBy(nil, ptr.To("host"))
			g.Spec.TopologyConstraintGroupConfigs[0].TopologyConstraint = &scheduler.TopologyConstraint{}
		}},
		"a constraint names a label": {
			tweak: func(g *scheduler.PodGang) { g.Spec.TopologyConstraint = packedBy(nil, nil) },
			want:  field.ErrorList{required("spec.topologyConstraint.packConstraint")},
		},
		"required of a group is a label": {
			tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups[0].TopologyConstraint = packedBy(ptr.To(""), nil) },
			want:  field.ErrorList{invalid(groups + "[0].topologyConstraint.packConstraint.required"), invalid(groups + "[0].topologyConstraint.packConstraint.required")},
		},
		"preferred of a config is a label": {
			tweak: func(g *scheduler.PodGang) {
				g.Spec.TopologyConstraintGroupConfigs[0].TopologyConstraint = packedBy(nil, ptr.To("a/b/c"))
			},
			want: field.ErrorList{invalid(configs + "[0].topologyConstraint.packConstraint.preferred")},
		},
		"a constraint is no longer than a label": {
			tweak: func(g *scheduler.PodGang) {
				g.Spec.TopologyConstraint = packedBy(ptr.To(strings.Repeat("a", 400)), nil)
			},
			want: field.ErrorList{tooLong("spec.topologyConstraint.packConstraint.required")},
		},
		"priorityClassName is a valid name": {
			tweak: func(g *scheduler.PodGang) { g.Spec.PriorityClassName = "High" },
			want:  field.ErrorList{invalid("spec.priorityClassName")},
		},
		"reservation": {tweak: func(g *scheduler.PodGang) {
			g.Spec.ReuseReservationRef = &scheduler.NamespacedName{Namespace: "ns", Name: "llm-1"}
		}},
		"reservation has a name in the gang's namespace": {
			tweak: func(g *scheduler.PodGang) { g.Spec.ReuseReservationRef = &scheduler.NamespacedName{Namespace: "other"} },
			want:  field.ErrorList{required("spec.reuseReservationRef.name"), invalid("spec.reuseReservationRef.namespace")},
		},
		"groups of a config exist": {
			tweak: func(g *scheduler.PodGang) {
				g.Spec.TopologyConstraintGroupConfigs[0].PodGroupNames = []string{"llm-0-leader", "nobody"}
			},
			want: field.ErrorList{notFound(configs + "[0].podGroupNames[1]")},
		},
	})
}

func TestValidatePodGangUpdate(t *testing.T) {
	noGroups := func(g *scheduler.PodGang) { g.Spec = scheduler.PodGangSpec{} }
	testUpdate(t, mkPodGang, ValidatePodGangUpdate, map[string]updateCase[scheduler.PodGang]{
		"nothing changes": {},
		"spec may change": {tweak: func(g *scheduler.PodGang) { g.Spec.PodGroups[1].MinReplicas = 1 }},
		"metadata is checked": {
			tweak: func(g *scheduler.PodGang) { g.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"a change has to be valid": {tweak: noGroups, want: field.ErrorList{required("spec.podgroups")}},
		"an invalid spec may be written unchanged": {
			before: noGroups,
			tweak:  func(g *scheduler.PodGang) { g.Labels = map[string]string{"a": "b"} },
		},
		"an invalid field that is left untouched": {before: noGroups, tweak: func(g *scheduler.PodGang) { g.Spec.PriorityClassName = "high" }},
		"an invalid field excuses no other": {
			before: noGroups,
			tweak:  func(g *scheduler.PodGang) { g.Spec.PriorityClassName = "High" },
			want:   field.ErrorList{invalid("spec.priorityClassName")},
		},
		"a gang that goes away needs no valid spec": {
			before: func(g *scheduler.PodGang) { deleting(&g.ObjectMeta) },
			tweak: func(g *scheduler.PodGang) {
				noGroups(g)
				g.Finalizers = nil
			},
		},
	})
}

func TestValidatePodGangStatusUpdate(t *testing.T) {
	attempt := func(n int32) func(*scheduler.PodGang) {
		return func(g *scheduler.PodGang) { g.Status.ObservedAttempt = n }
	}
	scheduled := func(value metav1.ConditionStatus, seconds int64) func(*scheduler.PodGang) {
		return func(g *scheduler.PodGang) {
			g.Status.Conditions = []metav1.Condition{{Type: schedulerv1alpha1.PodGangConditionScheduled, Status: value, LastTransitionTime: metav1.Unix(seconds, 0)}}
		}
	}
	ready := func(g *scheduler.PodGang) {
		g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: schedulerv1alpha1.PodGangConditionReady, Status: metav1.ConditionTrue})
	}
	anew := func(g *scheduler.PodGang) {
		attempt(1)(g)
		scheduled(metav1.ConditionFalse, 101)(g)
	}
	unknown := func(g *scheduler.PodGang) { g.Status.Conditions = nil }
	testUpdate(t, mkPodGang, ValidatePodGangStatusUpdate, map[string]updateCase[scheduler.PodGang]{
		"nothing changes":       {},
		"observedAttempt rises": {before: attempt(1), tweak: attempt(2)},
		"phase may change back": {
			before: func(g *scheduler.PodGang) { g.Status.Phase = scheduler.PodGangRunning },
			tweak:  func(g *scheduler.PodGang) { g.Status.Phase = scheduler.PodGangPending },
		},
		"status of an invalid spec may change": {
			before: func(g *scheduler.PodGang) { g.Spec = scheduler.PodGangSpec{} },
			tweak:  attempt(1),
		},
		"metadata is checked": {
			tweak: func(g *scheduler.PodGang) { g.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"observedAttempt does not fall": {
			before: attempt(2),
			tweak:  attempt(1),
			want:   field.ErrorList{invalid("status.observedAttempt")},
		},
		"a gang is scheduled":                  {before: scheduled(metav1.ConditionFalse, 100), tweak: scheduled(metav1.ConditionTrue, 101)},
		"a gang stays scheduled":               {before: scheduled(metav1.ConditionTrue, 100), tweak: ready},
		"a new attempt has to be scheduled":    {before: scheduled(metav1.ConditionTrue, 100), tweak: anew},
		"Scheduled may go while it is not yet": {before: scheduled(metav1.ConditionFalse, 100), tweak: unknown},
		"Scheduled stays True": {
			before: scheduled(metav1.ConditionTrue, 100),
			tweak:  scheduled(metav1.ConditionFalse, 101),
			want:   field.ErrorList{invalid("status.conditions")},
		},
		"Scheduled is not dropped": {
			before: scheduled(metav1.ConditionTrue, 100),
			tweak:  unknown,
			want:   field.ErrorList{invalid("status.conditions")},
		},
		"time of a transition does not go back": {
			before: scheduled(metav1.ConditionFalse, 100),
			tweak:  scheduled(metav1.ConditionTrue, 99),
			want:   field.ErrorList{invalid("status.conditions[0].lastTransitionTime")},
		},
	})
}
