package gang

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// TopologySupport is what a scheduler does about the topology constraints of gangs.
type TopologySupport struct {
	// Gangs says that it keeps what is required of all pods of a gang.
	Gangs bool
	// Parts says that it keeps what is required of a part of a gang as well, and looks for
	// what is preferred.
	Parts bool
	// Fixed says that a gang keeps its constraints for its attempt.
	Fixed bool
	// Lacks says why it follows no constraint.
	Lacks string
}

// Topology is what is known of the topology that the constraints of a set speak of.
type Topology struct {
	// Off says that topology is switched off.
	Off bool
	// Binding has the levels; nil when there is none of the name.
	Binding *grovev1alpha1.ClusterTopologyBinding
	// Support is what the set's scheduler does about it.
	Support TopologySupport
}

// TopologyName is the ClusterTopologyBinding that a set speaks of: a valid set names one.
// constrained says whether it has a constraint at all.
func TopologyName(pcs *grovev1alpha1.PodCliqueSet) (name string, constrained bool) {
	look := func(constraint *grovev1alpha1.TopologyConstraint) {
		if constraint != nil {
			name, constrained = cmp.Or(name, constraint.TopologyName), true
		}
	}
	template := &pcs.Spec.Template
	look(template.TopologyConstraint)
	for i := range template.PodCliqueScalingGroups {
		look(template.PodCliqueScalingGroups[i].TopologyConstraint)
	}
	for i := range template.Cliques {
		look(template.Cliques[i].TopologyConstraint)
	}
	return name, constrained
}

// SchedulerOf is the scheduler of a set: all its pods have the same.
func SchedulerOf(pcs *grovev1alpha1.PodCliqueSet) string {
	for i := range pcs.Spec.Template.Cliques {
		if name := pcs.Spec.Template.Cliques[i].Spec.PodSpec.SchedulerName; name != "" {
			return name
		}
	}
	return corev1.DefaultSchedulerName
}

// GangPlacement is where a gang and its parts are placed, by keys of node labels.
type GangPlacement struct {
	// Name is the topology by its scheduler's name; empty when there is no constraint.
	Name string
	// Gang places all pods.
	Gang *schedulerv1alpha1.TopologyConstraint
	// Groups place the pods of one PodClique, by its name.
	Groups map[string]*schedulerv1alpha1.TopologyConstraint
	// Configs place the copies of scaling groups that are in a base gang.
	Configs []schedulerv1alpha1.TopologyConstraintGroupConfig
}

// PlaceGang translates the constraints of a set into those of one of its gangs, of which the
// members are given. The base gang is placed as its set is, and in it each copy of a scaling
// group as the group is; a scaled gang is such a copy. A domain that the topology lacks is
// left out, for nothing is held up by it. What is said about parts of a base gang of which
// others are scaled to 0 is not for schedulers that know no parts: they would take a part for
// all of it, and hold the others to that when they come back.
func PlaceGang(pcs *grovev1alpha1.PodCliqueSet, topology Topology, members []ExpectedClique) GangPlacement {
	if topology.Off || topology.Binding == nil || len(members) == 0 {
		return GangPlacement{}
	}
	levels := levels(topology.Binding.Spec.Levels)
	set := levels.place(pcs.Spec.Template.TopologyConstraint).within(anywhere())
	out, whole := GangPlacement{}, set
	if first := members[0]; first.Group != nil && first.Gang != first.BaseGang {
		whole = levels.place(first.Group.TopologyConstraint).within(set)
	}
	out.Gang = levels.constraint(whole)
	if !topology.Support.Parts && len(members) < sizeOfGang(pcs, members[0]) {
		members = nil
	}
	configs := map[string]int{}
	for _, member := range members {
		outer := whole
		if member.Group != nil && member.Gang == member.BaseGang {
			own := levels.place(member.Group.TopologyConstraint)
			outer = own.within(set)
			if constraint := levels.constraint(own.inside(set)); constraint != nil {
				name := naming.Copy(pcs.Name, member.Replica, member.Group.Name, member.Copy)
				i, known := configs[name]
				if !known {
					i, configs[name] = len(out.Configs), len(out.Configs)
					out.Configs = append(out.Configs, schedulerv1alpha1.TopologyConstraintGroupConfig{Name: name, TopologyConstraint: constraint})
				}
				out.Configs[i].PodGroupNames = append(out.Configs[i].PodGroupNames, member.Name)
			}
		}
		if constraint := levels.constraint(levels.place(member.Template.TopologyConstraint).inside(outer)); constraint != nil {
			if out.Groups == nil {
				out.Groups = map[string]*schedulerv1alpha1.TopologyConstraint{}
			}
			out.Groups[member.Name] = constraint
		}
	}
	if out.Gang != nil || out.Groups != nil || out.Configs != nil {
		out.Name = topologyOfScheduler(topology.Binding, SchedulerOf(pcs))
	}
	return out
}

// sizeOfGang is how many PodCliques are in a gang that a clique is in, none of them being scaled
// to 0.
func sizeOfGang(pcs *grovev1alpha1.PodCliqueSet, member ExpectedClique) int {
	switch {
	case member.Gang == member.BaseGang:
		return sizesOfBaseGangs(pcs)(member.Template.Name)
	case IsStaged(pcs):
		return 1
	}
	return len(member.Group.CliqueNames)
}

// Apply makes a gang be placed so. Its groups are those of the members.
func (p GangPlacement) Apply(spec *schedulerv1alpha1.PodGangSpec) {
	spec.TopologyConstraint, spec.TopologyConstraintGroupConfigs = p.Gang, p.Configs
	for i := range spec.PodGroups {
		spec.PodGroups[i].TopologyConstraint = p.Groups[spec.PodGroups[i].Name]
	}
}

// PlacementOf is how a gang is placed that exists, of the groups that it is to have. It is for
// schedulers that know no parts, so that these are left out when others are scaled to 0.
func PlacementOf(podGang *schedulerv1alpha1.PodGang, groups []schedulerv1alpha1.PodGangPodGroup) GangPlacement {
	out := GangPlacement{Name: podGang.Annotations[labels.TopologyName], Gang: podGang.Spec.TopologyConstraint, Groups: map[string]*schedulerv1alpha1.TopologyConstraint{}}
	if len(groups) < len(podGang.Spec.PodGroups) {
		return out
	}
	for i := range podGang.Spec.PodGroups {
		out.Groups[podGang.Spec.PodGroups[i].Name] = podGang.Spec.PodGroups[i].TopologyConstraint
	}
	has := func(name string) bool {
		return slices.ContainsFunc(groups, func(group schedulerv1alpha1.PodGangPodGroup) bool { return group.Name == name })
	}
	for _, config := range podGang.Spec.TopologyConstraintGroupConfigs {
		config.PodGroupNames = slices.DeleteFunc(slices.Clone(config.PodGroupNames), func(name string) bool { return !has(name) })
		if len(config.PodGroupNames) > 0 {
			out.Configs = append(out.Configs, config)
		}
	}
	return out
}

// topologyOfScheduler is the name by which a scheduler knows a topology: that which the
// binding refers to, or that which is made of it.
func topologyOfScheduler(binding *grovev1alpha1.ClusterTopologyBinding, scheduler string) string {
	for _, ref := range binding.Spec.SchedulerTopologyBindings {
		if ref.SchedulerName == scheduler {
			return ref.TopologyReference
		}
	}
	return binding.Name
}

// levels are those of a topology, from broad to narrow.
type levels []grovev1alpha1.TopologyLevel

// place is where pods are packed, by the index of a level. None is -1: broader than all.
type place struct {
	required, preferred int
}

func anywhere() place { return place{required: -1, preferred: -1} }

// place is what a constraint asks for, of what the topology has.
func (l levels) place(constraint *grovev1alpha1.TopologyConstraint) place {
	required, preferred := domainsOf(constraint)
	return place{required: l.index(required), preferred: l.index(preferred)}
}

func (l levels) index(domain string) int {
	return slices.IndexFunc(l, func(level grovev1alpha1.TopologyLevel) bool { return domain != "" && level.Domain == domain })
}

// domainsOf are the domains of a constraint; packDomain is the former spelling of required.
func domainsOf(constraint *grovev1alpha1.TopologyConstraint) (required, preferred string) {
	if constraint == nil {
		return "", ""
	}
	if constraint.Pack != nil {
		required, preferred = constraint.Pack.Required, constraint.Pack.Preferred
	}
	return cmp.Or(required, constraint.PackDomain), preferred //nolint:staticcheck // sets that were stored with it keep it
}

// within is what holds for pods that are placed so inside of another place: the narrower of
// what is required, and the nearer of what is preferred.
func (p place) within(outer place) place {
	out := place{required: max(p.required, outer.required), preferred: p.preferred}
	if out.preferred < 0 {
		out.preferred = outer.preferred
	}
	if out.preferred < out.required {
		out.preferred = -1
	}
	return out
}

// inside is what there is to say about a part beside what is said about the whole: nothing
// that is broader.
func (p place) inside(outer place) place {
	if p.required < outer.required {
		p.required = -1
	}
	if p.preferred < max(p.required, outer.required) {
		p.preferred = -1
	}
	return p
}

// constraint is a place by the keys of node labels, nil when it is anywhere.
func (l levels) constraint(p place) *schedulerv1alpha1.TopologyConstraint {
	if p == anywhere() {
		return nil
	}
	key := func(level int) *string {
		if level < 0 {
			return nil
		}
		return ptr.To(l[level].Key)
	}
	return &schedulerv1alpha1.TopologyConstraint{PackConstraint: &schedulerv1alpha1.TopologyPackConstraint{Required: key(p.required), Preferred: key(p.preferred)}}
}

// RequiredOfAll is the key of the node label whose value all pods of a gang have to share, for
// schedulers that know one for a gang; empty when there is none. What is said about a part
// that is all of the gang counts, and is narrower.
func RequiredOfAll(spec *schedulerv1alpha1.PodGangSpec) string {
	key := requiredBy(spec.TopologyConstraint)
	for i := range spec.TopologyConstraintGroupConfigs {
		if config := &spec.TopologyConstraintGroupConfigs[i]; len(config.PodGroupNames) == len(spec.PodGroups) {
			key = cmp.Or(requiredBy(config.TopologyConstraint), key)
		}
	}
	if len(spec.PodGroups) == 1 {
		key = cmp.Or(requiredBy(spec.PodGroups[0].TopologyConstraint), key)
	}
	return key
}

func requiredBy(constraint *schedulerv1alpha1.TopologyConstraint) string {
	if constraint == nil || constraint.PackConstraint == nil {
		return ""
	}
	return ptr.Deref(constraint.PackConstraint.Required, "")
}
