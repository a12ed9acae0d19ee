package gang

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// packed is a constraint in the form "topology: required preferred"; a dash is nothing.
func packed(text string) *grovev1alpha1.TopologyConstraint {
	name, domains, _ := strings.Cut(text, ": ")
	fields := strings.Fields(strings.ReplaceAll(domains, "-", " - "))
	domain := func(i int) string {
		if i >= len(fields) || fields[i] == "-" {
			return ""
		}
		return fields[i]
	}
	return &grovev1alpha1.TopologyConstraint{TopologyName: name, Pack: &grovev1alpha1.TopologyPackConstraint{Required: domain(0), Preferred: domain(1)}}
}

func packedSet(text string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Template.TopologyConstraint = packed(text) }
}

func packedGroup(text string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.Template.PodCliqueScalingGroups[0].TopologyConstraint = packed(text)
	}
}

func packedClique(i int, text string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Template.Cliques[i].TopologyConstraint = packed(text) }
}

// gpus is a topology of zones, racks and hosts.
func gpus() *grovev1alpha1.ClusterTopologyBinding {
	binding := &grovev1alpha1.ClusterTopologyBinding{}
	binding.Name = "gpu"
	for _, domain := range []string{"zone", "rack", "host"} {
		binding.Spec.Levels = append(binding.Spec.Levels, grovev1alpha1.TopologyLevel{Domain: domain, Key: "key/" + domain})
	}
	return binding
}

// told is a constraint of a gang as "required preferred" of keys without their prefix.
func told(constraint *schedulerv1alpha1.TopologyConstraint) string {
	if constraint == nil {
		return ""
	}
	key := func(key *string) string {
		return strings.TrimPrefix(ptr.Deref(key, "-"), "key/")
	}
	return key(constraint.PackConstraint.Required) + " " + key(constraint.PackConstraint.Preferred)
}

func TestPlaceGang(t *testing.T) {
	// A router, and a group of a leader and a worker of which two copies are in the base gang.
	disaggregated := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return inferenceSet(append([]setOption{template("router", 1, 1), template("leader", 1, 1), template("worker", 3, 3), group("decode", 3, 2, "leader", "worker")}, options...)...)
	}
	staged := func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.StartupPolicy = &grovev1alpha1.StartupPolicy{StartupPolicyOrder: grovev1alpha1.StartupPolicyInOrder}
	}
	legacy := func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.Template.TopologyConstraint = &grovev1alpha1.TopologyConstraint{TopologyName: "gpu", PackDomain: "rack"} //nolint:staticcheck // sets that were stored with it keep it
	}
	all := Topology{Binding: gpus()}
	tests := map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		topology Topology
		gang     string
		// want is what is said, by "whole" for the gang and the names of its parts.
		want []string
	}{
		"no constraint":                        {disaggregated(), all, "set-0", nil},
		"of the set":                           {disaggregated(packedSet("gpu: zone rack")), all, "set-0", []string{"whole: zone rack"}},
		"in Grove's words":                     {disaggregated(legacy), all, "set-0", []string{"whole: rack -"}},
		"preferred alone":                      {disaggregated(packedSet("gpu: - rack")), all, "set-0", []string{"whole: - rack"}},
		"at three levels":                      {disaggregated(packedSet("gpu: zone"), packedGroup(": rack host"), packedClique(2, ": host")), all, "set-0", []string{"whole: zone -", "set-0-decode-0 of set-0-decode-0-leader,set-0-decode-0-worker: rack host", "set-0-decode-1 of set-0-decode-1-leader,set-0-decode-1-worker: rack host", "set-0-decode-0-worker: host -", "set-0-decode-1-worker: host -"}},
		"of a part alone":                      {disaggregated(packedClique(0, "gpu: rack")), all, "set-0", []string{"set-0-router: rack -"}},
		"a scaled gang is a copy of its group": {disaggregated(packedSet("gpu: zone"), packedGroup(": rack host"), packedClique(2, ": host")), all, "set-0-decode-0", []string{"whole: rack host", "set-0-decode-2-worker: host -"}},
		"or is placed as its set":              {disaggregated(packedSet("gpu: zone rack"), packedClique(0, ": host")), all, "set-0-decode-0", []string{"whole: zone rack"}},
		"what its group does not say holds as for the set":       {disaggregated(packedSet("gpu: zone"), packedGroup(": - host")), all, "set-0-decode-0", []string{"whole: zone host"}},
		"what the set prefers may be broader than that":          {disaggregated(packedSet("gpu: - zone"), packedGroup(": rack")), all, "set-0-decode-0", []string{"whole: rack -"}},
		"what is broader than around it says nothing":            {disaggregated(packedSet("gpu: rack"), packedGroup(": zone"), packedClique(0, ": zone")), all, "set-0", []string{"whole: rack -"}},
		"in a scaled gang either":                                {disaggregated(packedSet("gpu: rack"), packedGroup(": zone")), all, "set-0-decode-0", []string{"whole: rack -"}},
		"a preference that is broader than what is required":     {disaggregated(packedSet("gpu: rack zone"), packedClique(0, ": host rack")), all, "set-0", []string{"whole: rack -", "set-0-router: host -"}},
		"the group of a clique is around it":                     {disaggregated(packedGroup("gpu: host"), packedClique(1, ": rack")), all, "set-0", []string{"set-0-decode-0 of set-0-decode-0-leader,set-0-decode-0-worker: host -", "set-0-decode-1 of set-0-decode-1-leader,set-0-decode-1-worker: host -"}},
		"a level that is missing is left out":                    {disaggregated(packedSet("gpu: block rack"), packedClique(0, ": socket")), all, "set-0", []string{"whole: - rack"}},
		"all are missing":                                        {disaggregated(packedSet("gpu: block"), packedClique(0, ": socket")), all, "set-0", nil},
		"there is no topology":                                   {disaggregated(packedSet("gpu: zone")), Topology{}, "set-0", nil},
		"it is switched off":                                     {disaggregated(packedSet("gpu: zone")), Topology{Off: true, Binding: gpus()}, "set-0", nil},
		"a stage is a gang":                                      {disaggregated(staged, packedSet("gpu: zone"), packedGroup(": rack"), packedClique(2, ": host")), all, "set-0-worker", []string{"whole: zone -", "set-0-decode-0 of set-0-decode-0-worker: rack -", "set-0-decode-1 of set-0-decode-1-worker: rack -", "set-0-decode-0-worker: host -", "set-0-decode-1-worker: host -"}},
		"a gang without members":                                 {disaggregated(packedSet("gpu: zone")), all, "other", nil},
		"a constraint that only names the topology says nothing": {disaggregated(packedSet("gpu: ")), all, "set-0", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			members := slices.DeleteFunc(ExpectedCliques(tc.set, 0, TemplateSizes), func(c ExpectedClique) bool { return c.Gang != tc.gang })
			placement := PlaceGang(tc.set, tc.topology, members)
			var got []string
			say := func(what string, constraint *schedulerv1alpha1.TopologyConstraint) {
				if constraint != nil {
					got = append(got, what+": "+told(constraint))
				}
			}
			say("whole", placement.Gang)
			for _, config := range placement.Configs {
				say(config.Name+" of "+strings.Join(config.PodGroupNames, ","), config.TopologyConstraint)
			}
			for _, member := range members {
				say(member.Name, placement.Groups[member.Name])
			}
			expect(t, "constraints", tc.want, got)
			expect(t, "named", len(tc.want) > 0, placement.Name != "")
		})
	}
}

func TestATopologyIsNamedAsItsSchedulerKnowsIt(t *testing.T) {
	refers := gpus()
	refers.Spec.SchedulerTopologyBindings = []grovev1alpha1.SchedulerTopologyBinding{{SchedulerName: "other", TopologyReference: "theirs"}, {SchedulerName: "kai-scheduler", TopologyReference: "ours"}}
	by := func(scheduler string) setOption {
		return func(pcs *grovev1alpha1.PodCliqueSet) {
			pcs.Spec.Template.Cliques[0].Spec.PodSpec.SchedulerName = scheduler
		}
	}
	for name, tc := range map[string]struct {
		binding   *grovev1alpha1.ClusterTopologyBinding
		scheduler string
		want      string
	}{
		"its own":                       {gpus(), "kai-scheduler", "gpu"},
		"one that is there":             {refers, "kai-scheduler", "ours"},
		"the scheduler is not named":    {refers, "", "gpu"},
		"another of another schedulers": {refers, "other", "theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			pcs := inferenceSet(template("a", 1, 1), packedSet("gpu: rack"), by(tc.scheduler))
			expect(t, "name", tc.want, PlaceGang(pcs, Topology{Binding: tc.binding}, ExpectedCliques(pcs, 0, TemplateSizes)).Name)
		})
	}
}

// placedGang is a gang of groups, with what is required of the whole, of some and of each.
func placedGang(whole string, of map[string]string, groups ...string) *schedulerv1alpha1.PodGangSpec {
	constraint := func(key string) *schedulerv1alpha1.TopologyConstraint {
		if key == "" {
			return nil
		}
		return &schedulerv1alpha1.TopologyConstraint{PackConstraint: &schedulerv1alpha1.TopologyPackConstraint{Required: ptr.To(key)}}
	}
	spec := &schedulerv1alpha1.PodGangSpec{TopologyConstraint: constraint(whole)}
	for _, name := range groups {
		spec.PodGroups = append(spec.PodGroups, schedulerv1alpha1.PodGangPodGroup{Name: name, TopologyConstraint: constraint(of[name])})
	}
	for name, key := range of {
		if names := strings.Split(name, ","); len(names) > 1 || !slices.Contains(groups, name) {
			spec.TopologyConstraintGroupConfigs = append(spec.TopologyConstraintGroupConfigs, schedulerv1alpha1.TopologyConstraintGroupConfig{Name: "c", PodGroupNames: names, TopologyConstraint: constraint(key)})
		}
	}
	return spec
}

// What a scheduler that knows one level of a gang is told: the narrowest that is required of
// all of it.
func TestRequiredOfAll(t *testing.T) {
	preferred := placedGang("", nil, "a")
	preferred.TopologyConstraint = &schedulerv1alpha1.TopologyConstraint{PackConstraint: &schedulerv1alpha1.TopologyPackConstraint{Preferred: ptr.To("rack")}}
	for name, tc := range map[string]struct {
		spec *schedulerv1alpha1.PodGangSpec
		want string
	}{
		"nothing":                       {placedGang("", nil, "a", "b"), ""},
		"of the whole":                  {placedGang("rack", nil, "a", "b"), "rack"},
		"preferred":                     {preferred, ""},
		"a part is not the whole":       {placedGang("rack", map[string]string{"a": "host", "a,b": "zone"}, "a", "b", "c"), "rack"},
		"a part alone is nothing":       {placedGang("", map[string]string{"a": "host"}, "a", "b"), ""},
		"some groups that are all":      {placedGang("zone", map[string]string{"a,b": "rack"}, "a", "b"), "rack"},
		"the only group":                {placedGang("zone", map[string]string{"a": "host"}, "a"), "host"},
		"the only group that is silent": {placedGang("zone", nil, "a"), "zone"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, "level", tc.want, RequiredOfAll(tc.spec))
		})
	}
}

// A gang that keeps its placement keeps that of its parts as long as none is scaled to 0: what
// is left is not all of it.
func TestThePlacementOfAGangThatExists(t *testing.T) {
	podGang := &schedulerv1alpha1.PodGang{Spec: *placedGang("zone", map[string]string{"a": "host", "a,b": "rack"}, "a", "b")}
	for name, tc := range map[string]struct {
		groups []string
		want   *schedulerv1alpha1.PodGangSpec
	}{
		"as it is":       {[]string{"a", "b"}, &podGang.Spec},
		"a group goes":   {[]string{"a"}, placedGang("zone", nil, "a")},
		"another comes":  {[]string{"a", "b", "c"}, placedGang("zone", map[string]string{"a": "host", "a,b": "rack"}, "a", "b", "c")},
		"all are others": {[]string{"c"}, placedGang("zone", nil, "c")},
	} {
		t.Run(name, func(t *testing.T) {
			spec := placedGang("other", map[string]string{"x,y": "other"}, tc.groups...)
			before := podGang.DeepCopy()
			PlacementOf(podGang, spec.PodGroups).Apply(spec)
			expect(t, "gang", tc.want, spec)
			expect(t, "the gang that was read", before, podGang)
		})
	}
}

// What is required of a part is not required of all of a gang because the rest is scaled to 0: it
// is held to that when it comes back.
func TestAPartIsNotAllOfAGangOfWhichTheRestIsScaledToZero(t *testing.T) {
	disaggregated := inferenceSet(template("router", 1, 1), template("worker", 3, 3), group("decode", 2, 1, "worker"), packedSet("gpu: zone"), packedClique(0, ": host"), packedClique(1, ": rack"))
	alone := inferenceSet(template("router", 1, 1), packedSet("gpu: zone"), packedClique(0, ": host"))
	native, kai := TopologySupport{Gangs: true, Fixed: true}, TopologySupport{Gangs: true, Parts: true}
	for name, tc := range map[string]struct {
		set     *grovev1alpha1.PodCliqueSet
		support TopologySupport
		gang    string
		copies  int32
		all     string
		part    string
	}{
		"all are there":                        {disaggregated, native, "set-0", 1, "key/zone", "host -"},
		"the rest is scaled to 0":              {disaggregated, native, "set-0", 0, "key/zone", ""},
		"a scheduler of parts is told of them": {disaggregated, kai, "set-0", 0, "key/host", "host -"},
		"there is no rest":                     {alone, native, "set-0", 0, "key/host", "host -"},
		"a scaled gang":                        {disaggregated, native, "set-0-decode-0", 2, "key/rack", "rack -"},
	} {
		t.Run(name, func(t *testing.T) {
			members := ExpectedCliques(tc.set, 0, func(int32, *grovev1alpha1.PodCliqueScalingGroupConfig) int32 { return tc.copies })
			members = slices.DeleteFunc(members, func(c ExpectedClique) bool { return c.Gang != tc.gang })
			spec := &schedulerv1alpha1.PodGangSpec{}
			for _, member := range members {
				spec.PodGroups = append(spec.PodGroups, schedulerv1alpha1.PodGangPodGroup{Name: member.Name})
			}
			PlaceGang(tc.set, Topology{Binding: gpus(), Support: tc.support}, members).Apply(spec)
			expect(t, "required of all", tc.all, RequiredOfAll(spec))
			expect(t, "of the first part", tc.part, told(spec.PodGroups[0].TopologyConstraint))
		})
	}
}

func TestTheTopologyOfASet(t *testing.T) {
	two := inferenceSet(template("a", 1, 1), template("b", 1, 1), group("g", 1, 1, "b"))
	for name, tc := range map[string]struct {
		option      setOption
		name        string
		constrained bool
	}{
		"none":          {func(*grovev1alpha1.PodCliqueSet) {}, "", false},
		"of the set":    {packedSet("gpu: rack"), "gpu", true},
		"of a group":    {packedGroup("gpu: rack"), "gpu", true},
		"of a clique":   {packedClique(1, "gpu: rack"), "gpu", true},
		"without name":  {packedClique(1, ": rack"), "", true},
		"named further": {func(pcs *grovev1alpha1.PodCliqueSet) { packedSet(": zone")(pcs); packedClique(0, "gpu: rack")(pcs) }, "gpu", true},
	} {
		t.Run(name, func(t *testing.T) {
			pcs := two.DeepCopy()
			tc.option(pcs)
			name, constrained := TopologyName(pcs)
			expect(t, "topology", fmt.Sprint(tc.name, tc.constrained), fmt.Sprint(name, constrained))
		})
	}
}
