package validation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/scheduler"
)

func TestValidatePodGroup(t *testing.T) {
	const subGroups = "spec.subGroups"
	sub := func(i int, tweak func(*scheduler.SubGroup)) func(*scheduler.PodGroup) {
		return func(g *scheduler.PodGroup) { tweak(&g.Spec.SubGroups[i]) }
	}
	topology := func(topology, required, preferred string) func(*scheduler.PodGroup) {
		return func(g *scheduler.PodGroup) {
			g.Spec.TopologyConstraint = &scheduler.PodGroupTopologyConstraint{Topology: topology, RequiredTopologyLevel: required, PreferredTopologyLevel: preferred}
		}
	}
	testCreate(t, mkPodGroup, ValidatePodGroup, map[string]createCase[scheduler.PodGroup]{
		"valid":                     {},
		"name may have dots":        {tweak: func(g *scheduler.PodGroup) { g.Name = "job.v2" }},
		"minSubGroup alone":         {tweak: func(g *scheduler.PodGroup) { g.Spec.MinMember, g.Spec.MinSubGroup = nil, ptr.To[int32](1) }},
		"minimum of 0":              {tweak: func(g *scheduler.PodGroup) { g.Spec.MinMember = ptr.To[int32](0) }},
		"preemptible":               {tweak: func(g *scheduler.PodGroup) { g.Spec.Preemptibility = scheduler.Preemptible }},
		"non-preemptible":           {tweak: func(g *scheduler.PodGroup) { g.Spec.Preemptibility = scheduler.NonPreemptible }},
		"back-off of one cycle":     {tweak: func(g *scheduler.PodGroup) { g.Spec.SchedulingBackoff = ptr.To[int32](1) }},
		"no subgroups":              {tweak: func(g *scheduler.PodGroup) { g.Spec.SubGroups = nil }},
		"empty parent is no parent": {tweak: sub(1, func(s *scheduler.SubGroup) { s.Parent = ptr.To("") })},
		"parent after its child":    {tweak: func(g *scheduler.PodGroup) { s := g.Spec.SubGroups; s[0], s[2] = s[2], s[0] }},
		"subgroup of subgroups":     {tweak: sub(0, func(s *scheduler.SubGroup) { s.MinSubGroup = ptr.To[int32](2) })},
		"nil everything": {
			tweak: func(g *scheduler.PodGroup) { *g = scheduler.PodGroup{} },
			want:  field.ErrorList{required("metadata.name"), required("metadata.namespace")},
		},
		"null subgroup": {
			tweak: func(g *scheduler.PodGroup) { g.Spec.SubGroups = make([]scheduler.SubGroup, 1) },
			want:  field.ErrorList{required(subGroups + "[0].name")},
		},
		"name is valid": {
			tweak: func(g *scheduler.PodGroup) { g.Name = "Job" },
			want:  field.ErrorList{invalid("metadata.name")},
		},
		"namespace is required": {
			tweak: func(g *scheduler.PodGroup) { g.Namespace = "" },
			want:  field.ErrorList{required("metadata.namespace")},
		},
		"minMember and minSubGroup exclude each other": {
			tweak: func(g *scheduler.PodGroup) { g.Spec.MinSubGroup = ptr.To[int32](1) },
			want:  field.ErrorList{forbidden("spec.minSubGroup")},
		},
		"minMember is not negative": {
			tweak: func(g *scheduler.PodGroup) { g.Spec.MinMember = ptr.To[int32](-1) },
			want:  field.ErrorList{invalid("spec.minMember")},
		},
		"minSubGroup is not negative": {
			tweak: func(g *scheduler.PodGroup) { g.Spec.MinMember, g.Spec.MinSubGroup = nil, ptr.To[int32](-1) },
			want:  field.ErrorList{invalid("spec.minSubGroup")},
		},
		"preemptibility is known": {
			tweak: func(g *scheduler.PodGroup) { g.Spec.Preemptibility = "sometimes" },
			want:  field.ErrorList{unsupported("spec.preemptibility")},
		},
		"schedulingBackoff is 1 or -1": {
			tweak: func(g *scheduler.PodGroup) { g.Spec.SchedulingBackoff = ptr.To[int32](0) },
			want:  field.ErrorList{unsupported("spec.schedulingBackoff")},
		},
		"subgroup name is a DNS label": {
			tweak: sub(1, func(s *scheduler.SubGroup) { s.Name = "Leader" }),
			want:  field.ErrorList{invalid(subGroups + "[1].name")},
		},
		"subgroup names are unique": {
			tweak: sub(2, func(s *scheduler.SubGroup) { s.Name = "leader" }),
			want:  field.ErrorList{duplicate(subGroups + "[2].name")},
		},
		"minMember of a subgroup is not negative": {
			tweak: sub(1, func(s *scheduler.SubGroup) { s.MinMember = ptr.To[int32](-1) }),
			want:  field.ErrorList{invalid(subGroups + "[1].minMember")},
		},
		"minSubGroup of a subgroup is not negative": {
			tweak: sub(0, func(s *scheduler.SubGroup) { s.MinSubGroup = ptr.To[int32](-1) }),
			want:  field.ErrorList{invalid(subGroups + "[0].minSubGroup")},
		},
		"minMember and minSubGroup of a subgroup exclude each other": {
			tweak: sub(1, func(s *scheduler.SubGroup) { s.MinSubGroup = ptr.To[int32](1) }),
			want:  field.ErrorList{forbidden(subGroups + "[1].minSubGroup")},
		},
		"queue is a valid name":              {tweak: func(g *scheduler.PodGroup) { g.Spec.Queue = "A" }, want: field.ErrorList{invalid("spec.queue")}},
		"priorityClassName is a valid name":  {tweak: func(g *scheduler.PodGroup) { g.Spec.PriorityClassName = "High" }, want: field.ErrorList{invalid("spec.priorityClassName")}},
		"topology constraint":                {tweak: topology("gpu", "example.com/rack", "kubernetes.io/hostname")},
		"topology without levels":            {tweak: topology("gpu", "", "")},
		"topology is a valid name":           {tweak: topology("GPU", "", ""), want: field.ErrorList{invalid("spec.topologyConstraint.topology")}},
		"levels need a topology":             {tweak: topology("", "rack", ""), want: field.ErrorList{required("spec.topologyConstraint.topology")}},
		"a preferred level needs a topology": {tweak: topology("", "", "rack"), want: field.ErrorList{required("spec.topologyConstraint.topology")}},
		"a required level is a label":        {tweak: topology("gpu", "a/b/c", ""), want: field.ErrorList{invalid("spec.topologyConstraint.requiredTopologyLevel")}},
		"a preferred level is a label":       {tweak: topology("gpu", "", "a/b/c"), want: field.ErrorList{invalid("spec.topologyConstraint.preferredTopologyLevel")}},
		"topology of a subgroup": {
			tweak: sub(1, func(s *scheduler.SubGroup) {
				s.TopologyConstraint = &scheduler.PodGroupTopologyConstraint{Topology: "GPU"}
			}),
			want: field.ErrorList{invalid(subGroups + "[1].topologyConstraint.topology")},
		},
		"10001 subgroups are too many": {
			tweak: func(g *scheduler.PodGroup) { g.Spec.SubGroups = make([]scheduler.SubGroup, 10001) },
			want:  field.ErrorList{tooMany(subGroups)},
		},
		"a chain of subgroups without an end": {
			tweak: func(g *scheduler.PodGroup) {
				g.Spec.SubGroups = append(g.Spec.SubGroups, scheduler.SubGroup{Name: "a", Parent: ptr.To("b")}, scheduler.SubGroup{Name: "b", Parent: ptr.To("nobody")})
			},
			want: field.ErrorList{notFound(subGroups + "[4].parent")},
		},
		"parent exists": {
			tweak: sub(1, func(s *scheduler.SubGroup) { s.Parent = ptr.To("nobody") }),
			want:  field.ErrorList{notFound(subGroups + "[1].parent")},
		},
		"subgroup is not its own parent": {
			tweak: sub(1, func(s *scheduler.SubGroup) { s.Parent = ptr.To("leader") }),
			want:  field.ErrorList{invalid(subGroups + "[1].parent")},
		},
		"subgroups form no cycle": {
			tweak: sub(0, func(s *scheduler.SubGroup) { s.Parent = ptr.To("leader") }),
			want: field.ErrorList{
				invalid(subGroups + "[0].parent"), invalid(subGroups + "[1].parent"), invalid(subGroups + "[2].parent"),
			},
		},
	})
}

func TestValidatePodGroupUpdate(t *testing.T) {
	bad := func(g *scheduler.PodGroup) { g.Spec.MinMember = ptr.To[int32](-1) }
	testUpdate(t, mkPodGroup, ValidatePodGroupUpdate, map[string]updateCase[scheduler.PodGroup]{
		"nothing changes": {},
		"spec may change": {tweak: func(g *scheduler.PodGroup) { g.Spec.Queue, g.Spec.MinMember = "other", ptr.To[int32](5) }},
		"metadata is checked": {
			tweak: func(g *scheduler.PodGroup) { g.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"a change has to be valid": {tweak: bad, want: field.ErrorList{invalid("spec.minMember")}},
		"an invalid spec may be written unchanged": {
			before: bad,
			tweak:  func(g *scheduler.PodGroup) { g.Labels = map[string]string{"a": "b"} },
		},
		"an invalid field that is left untouched": {before: bad, tweak: func(g *scheduler.PodGroup) { g.Spec.Queue = "other" }},
		"an invalid field cannot be changed into another": {
			before: bad,
			tweak:  func(g *scheduler.PodGroup) { g.Spec.MinMember = ptr.To[int32](-2) },
			want:   field.ErrorList{invalid("spec.minMember")},
		},
		"a group that goes away needs no valid spec": {
			before: func(g *scheduler.PodGroup) { deleting(&g.ObjectMeta) },
			tweak: func(g *scheduler.PodGroup) {
				bad(g)
				g.Finalizers = nil
			},
		},
	})
}

func TestValidatePodGroupStatusUpdate(t *testing.T) {
	transition := func(seconds int64) func(*scheduler.PodGroup) {
		return func(g *scheduler.PodGroup) {
			g.Status.Conditions = []metav1.Condition{{Type: "Any", Status: metav1.ConditionTrue, LastTransitionTime: metav1.Unix(seconds, 0)}}
		}
	}
	testUpdate(t, mkPodGroup, ValidatePodGroupStatusUpdate, map[string]updateCase[scheduler.PodGroup]{
		"status may change": {tweak: func(g *scheduler.PodGroup) { g.Status.Phase = scheduler.PodGroupRunning }},
		"status of an invalid spec may change": {
			before: func(g *scheduler.PodGroup) { g.Spec.MinMember = ptr.To[int32](-1) },
			tweak:  func(g *scheduler.PodGroup) { g.Status.Phase = scheduler.PodGroupRunning },
		},
		"metadata is checked": {
			tweak: func(g *scheduler.PodGroup) { g.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"time of a transition goes on": {before: transition(100), tweak: transition(101)},
		"time of a transition does not go back": {
			before: transition(100),
			tweak:  transition(99),
			want:   field.ErrorList{invalid("status.conditions[0].lastTransitionTime")},
		},
	})
}
