package gang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// setTopology tells whether the topology constraints of a set are followed. Nothing waits for
// those that are not.
func setTopology(s SetSnapshot, replicas []replicaState, status *grovev1alpha1.PodCliqueSetStatus, now time.Time) {
	name, constrained := TopologyName(s.Set)
	if !constrained {
		meta.RemoveStatusCondition(&status.Conditions, grovev1alpha1.ConditionTypeTopologyLevelsUnavailable)
		return
	}
	value, reason, message := topologyState(s.Set, s.Topology, name)
	if behind := gangsBehind(s, replicas); len(behind) > 0 {
		message += "; PodGangs that are placed by other constraints until their next attempt: " + firstOf(behind)
	}
	setCondition(&status.Conditions, s.Set.Generation, now, grovev1alpha1.ConditionTypeTopologyLevelsUnavailable, value, reason, message)
}

func topologyState(pcs *grovev1alpha1.PodCliqueSet, topology Topology, name string) (value metav1.ConditionStatus, reason, message string) {
	const freely = ": pods are placed without the constraints"
	switch {
	case topology.Off:
		return metav1.ConditionUnknown, grovev1alpha1.ReasonTopologyDisabled, "the controller-manager runs with --topology-aware-scheduling=false" + freely
	case !topology.Support.Gangs:
		return metav1.ConditionUnknown, grovev1alpha1.ReasonTopologyDisabled, topology.Support.Lacks + freely
	case name == "":
		return metav1.ConditionUnknown, grovev1alpha1.ReasonTopologyNameMissing, "no constraint names a ClusterTopologyBinding" + freely
	case topology.Binding == nil:
		return metav1.ConditionUnknown, grovev1alpha1.ReasonClusterTopologyNotFound, fmt.Sprintf("there is no ClusterTopologyBinding %q", name) + freely
	}
	levels := levels(topology.Binding.Spec.Levels)
	var missing []string
	for _, c := range constraintsOf(pcs) {
		for _, domain := range []string{c.required, c.preferred} {
			if domain != "" && levels.index(domain) < 0 && !slices.Contains(missing, domain) {
				missing = append(missing, domain)
			}
		}
	}
	if len(missing) > 0 {
		return metav1.ConditionTrue, grovev1alpha1.ReasonTopologyLevelsUnavailable,
			fmt.Sprintf("ClusterTopologyBinding %q lacks the levels %s: pods are placed without these", name, strings.Join(missing, ", "))
	}
	message = fmt.Sprintf("all levels are in ClusterTopologyBinding %q", name)
	if untold := Untold(pcs); len(untold) > 0 && !topology.Support.Parts {
		message += fmt.Sprintf("; the scheduler knows one level for a whole gang, which is required, and is not told %s", firstOf(untoldPaths(untold)))
	}
	return metav1.ConditionFalse, grovev1alpha1.ReasonAllTopologyLevelsAvailable, message
}

// gangsBehind are the gangs of schedulers that do not change their mind, which are placed by
// constraints that have changed since.
func gangsBehind(s SetSnapshot, replicas []replicaState) []string {
	if !s.Topology.Support.Fixed || !s.Topology.Support.Gangs {
		return nil
	}
	members := map[string][]ExpectedClique{}
	for _, replica := range replicas {
		for _, clique := range replica.cliques {
			members[clique.Gang] = append(members[clique.Gang], clique.ExpectedClique)
		}
	}
	var behind []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		podGang := s.Gangs[name]
		if podGang == nil {
			continue
		}
		want := podGang.Spec.DeepCopy()
		PlaceGang(s.Set, s.Topology, members[name]).Apply(want)
		if RequiredOfAll(want) != RequiredOfAll(&podGang.Spec) {
			behind = append(behind, name)
		}
	}
	return behind
}

// constraintAt is a constraint of a set, and where it is.
type constraintAt struct {
	path                *field.Path
	required, preferred string
	// outer is what is required by the constraint around it.
	outer string
	// whole says that what it is about is all of the gang that it is in.
	whole bool
}

// constraintsOf are the constraints of a set: its own, those of its groups, those of its
// cliques.
func constraintsOf(pcs *grovev1alpha1.PodCliqueSet) []constraintAt {
	template, path := &pcs.Spec.Template, field.NewPath("spec", "template")
	var out []constraintAt
	// add returns what is required of those inside.
	add := func(constraint *grovev1alpha1.TopologyConstraint, path *field.Path, outer string, whole bool) string {
		if constraint == nil {
			return outer
		}
		required, preferred := domainsOf(constraint)
		out = append(out, constraintAt{path.Child("topologyConstraint"), required, preferred, outer, whole})
		if required == "" {
			return outer
		}
		return required
	}
	set, sizeOf := add(template.TopologyConstraint, path, "", true), sizesOfBaseGangs(pcs)
	outer := map[string]string{}
	for i := range template.PodCliqueScalingGroups {
		group := &template.PodCliqueScalingGroups[i]
		members := len(group.CliqueNames)
		if IsStaged(pcs) {
			members = 1
		}
		whole := len(group.CliqueNames) > 0 && sizeOf(group.CliqueNames[0]) == members
		inner := add(group.TopologyConstraint, path.Child("podCliqueScalingGroups").Index(i), set, whole)
		for _, name := range group.CliqueNames {
			outer[name] = inner
		}
	}
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		around, member := outer[clique.Name]
		if !member {
			around = set
		}
		add(clique.TopologyConstraint, path.Child("cliques").Index(i), around, sizeOf(clique.Name) == 1)
	}
	return out
}

// sizesOfBaseGangs tell how many PodCliques are in the base gang of a clique: those of the
// whole replica, or of its stage.
func sizesOfBaseGangs(pcs *grovev1alpha1.PodCliqueSet) func(clique string) int {
	copies, all := map[string]int{}, 0
	for i := range pcs.Spec.Template.PodCliqueScalingGroups {
		group := &pcs.Spec.Template.PodCliqueScalingGroups[i]
		for _, name := range group.CliqueNames {
			copies[name] = int(ptr.Deref(group.MinAvailable, 1))
		}
	}
	of := func(clique string) int {
		if n, member := copies[clique]; member {
			return n
		}
		return 1
	}
	if IsStaged(pcs) {
		return of
	}
	for i := range pcs.Spec.Template.Cliques {
		all += of(pcs.Spec.Template.Cliques[i].Name)
	}
	return func(string) int { return all }
}

// UntoldConstraint is a domain that a scheduler which knows one required level for each gang
// is not told of.
type UntoldConstraint struct {
	Path   *field.Path
	Domain string
	// Preferred says that it would be told if it were required.
	Preferred bool
}

// Untold are the domains of a set's constraints that a scheduler which knows one required
// level for each gang is not told of: those that are preferred, and those of a part of a gang.
func Untold(pcs *grovev1alpha1.PodCliqueSet) []UntoldConstraint {
	var out []UntoldConstraint
	for _, c := range constraintsOf(pcs) {
		if c.required != "" && c.required != c.outer && !c.whole {
			out = append(out, UntoldConstraint{Path: c.path.Child("pack", "required"), Domain: c.required})
		}
		if c.preferred != "" {
			out = append(out, UntoldConstraint{Path: c.path.Child("pack", "preferred"), Domain: c.preferred, Preferred: true})
		}
	}
	return out
}

func untoldPaths(untold []UntoldConstraint) []string {
	out := make([]string, 0, len(untold))
	for _, c := range untold {
		out = append(out, fmt.Sprintf("%s (%s)", c.Path, c.Domain))
	}
	return out
}
