package podcliqueset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
)

// topologyWarnings compares the topology constraints of a set with the levels of the
// topology that they name. A set may be there before its topology, so nothing is refused.
func (s *Strategy) topologyWarnings(ctx context.Context, pcs *grove.PodCliqueSet) []string {
	name, path := topologyOf(&pcs.Spec.Template)
	if name == "" || s.topologies == nil {
		return nil
	}
	// What is in the cache is fresh enough for a warning; a topology that comes with the set may
	// not be in it yet.
	obj, err := s.topologies.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		obj, err = s.topologies.Get(ctx, name, &metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return []string{fmt.Sprintf("%s: there is no ClusterTopologyBinding %q", path, name)}
	}
	binding, ok := obj.(*grove.ClusterTopologyBinding)
	if err != nil || !ok {
		return nil
	}
	check := levelCheck{name: name}
	for _, level := range binding.Spec.Levels {
		check.levels = append(check.levels, level.Domain)
	}
	check.template(&pcs.Spec.Template, field.NewPath("spec", "template"))
	return check.warnings
}

// untoldTopology tells of topology constraints that the set's scheduler is not told, whatever
// the cluster has switched on.
func untoldTopology(pcs *grove.PodCliqueSet) []string {
	if path := constraintOf(&pcs.Spec.Template); path == nil {
		return nil
	}
	set := &grovev1alpha1.PodCliqueSet{}
	if err := grovev1alpha1.Convert_grove_PodCliqueSet_To_v1alpha1_PodCliqueSet(pcs.DeepCopy(), set, nil); err != nil {
		return nil
	}
	scheduler := gang.SchedulerOf(set)
	var out []string
	switch {
	case !isToldOfGangs(scheduler):
		out = append(out, fmt.Sprintf("%s: scheduler %q is told of no topology, unless the controller-manager takes it for KAI: pods are placed freely", constraintOf(&pcs.Spec.Template), scheduler))
	case scheduler == corev1.DefaultSchedulerName:
		for _, untold := range gang.Untold(set) {
			why := "kube-scheduler places whole gangs, and is not told of parts of them"
			if untold.Preferred {
				why = "kube-scheduler knows no preferences, and is told what is required alone"
			}
			out = append(out, fmt.Sprintf("%s: nothing acts on it: %s", untold.Path, why))
		}
	}
	return out
}

// constraintOf is where the first constraint of a template is; nil when there is none.
func constraintOf(template *grove.PodCliqueSetTemplateSpec) *field.Path {
	path := field.NewPath("spec", "template")
	if template.TopologyConstraint != nil {
		return path.Child("topologyConstraint")
	}
	for i := range template.PodCliqueScalingGroups {
		if template.PodCliqueScalingGroups[i].TopologyConstraint != nil {
			return path.Child("podCliqueScalingGroups").Index(i).Child("topologyConstraint")
		}
	}
	for i := range template.Cliques {
		if template.Cliques[i].TopologyConstraint != nil {
			return path.Child("cliques").Index(i).Child("topologyConstraint")
		}
	}
	return nil
}

// topologyOf is the topology that a set names, and where: a valid set names one.
func topologyOf(template *grove.PodCliqueSetTemplateSpec) (string, *field.Path) {
	path := field.NewPath("spec", "template")
	named := func(constraint *grove.TopologyConstraint) bool {
		return constraint != nil && constraint.TopologyName != ""
	}
	if named(template.TopologyConstraint) {
		return template.TopologyConstraint.TopologyName, path.Child("topologyConstraint", "topologyName")
	}
	for i := range template.PodCliqueScalingGroups {
		if constraint := template.PodCliqueScalingGroups[i].TopologyConstraint; named(constraint) {
			return constraint.TopologyName, path.Child("podCliqueScalingGroups").Index(i).Child("topologyConstraint", "topologyName")
		}
	}
	for i := range template.Cliques {
		if constraint := template.Cliques[i].TopologyConstraint; named(constraint) {
			return constraint.TopologyName, path.Child("cliques").Index(i).Child("topologyConstraint", "topologyName")
		}
	}
	return "", nil
}

// levelCheck compares constraints with levels, which are domains from broad to narrow.
type levelCheck struct {
	name     string
	levels   []string
	warnings []string
}

// bound is the narrowest level so far that pods are packed into; -1 is none.
type bound struct {
	required, preferred int
}

func (c *levelCheck) template(template *grove.PodCliqueSetTemplateSpec, path *field.Path) {
	set := c.constraint(template.TopologyConstraint, bound{-1, -1}, path)
	within := map[string]bound{}
	for i := range template.PodCliqueScalingGroups {
		group := &template.PodCliqueScalingGroups[i]
		inner := c.constraint(group.TopologyConstraint, set, path.Child("podCliqueScalingGroups").Index(i))
		for _, name := range group.CliqueNames {
			within[name] = inner
		}
	}
	for i := range template.Cliques {
		outer, member := within[template.Cliques[i].Name]
		if !member {
			outer = set
		}
		c.constraint(template.Cliques[i].TopologyConstraint, outer, path.Child("cliques").Index(i))
	}
}

// constraint checks one constraint against what is around it, and returns what that is
// for those inside.
func (c *levelCheck) constraint(constraint *grove.TopologyConstraint, outer bound, path *field.Path) bound {
	if constraint == nil || constraint.Pack == nil {
		return outer
	}
	packPath := path.Child("topologyConstraint", "pack")
	inner := bound{
		required:  c.level(constraint.Pack.Required, outer.required, packPath.Child("required")),
		preferred: c.level(constraint.Pack.Preferred, outer.preferred, packPath.Child("preferred")),
	}
	if constraint.Pack.Preferred != "" && constraint.Pack.Required != "" && inner.preferred >= 0 && inner.preferred < inner.required {
		c.warn(packPath.Child("preferred"), fmt.Sprintf("%q is broader than required, %q, and so says nothing", constraint.Pack.Preferred, constraint.Pack.Required))
	}
	return inner
}

func (c *levelCheck) level(domain string, outer int, path *field.Path) int {
	if domain == "" {
		return outer
	}
	level := slices.Index(c.levels, domain)
	if level < 0 {
		c.warn(path, fmt.Sprintf("%q is no level of ClusterTopologyBinding %q, which has %s", domain, c.name, strings.Join(c.levels, ", ")))
		return outer
	}
	if level < outer {
		c.warn(path, fmt.Sprintf("%q is broader than %q, which a constraint around it asks for", domain, c.levels[outer]))
	}
	return level
}

func (c *levelCheck) warn(path *field.Path, text string) {
	c.warnings = append(c.warnings, fmt.Sprintf("%s: %s", path, text))
}
