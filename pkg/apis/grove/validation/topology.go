package validation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// constrained is a topology constraint, and that of what is around it.
type constrained struct {
	constraint *grove.TopologyConstraint
	path       *field.Path
	// around are the constraints of the set and of the scaling group, from near to far.
	around []*constrained
}

// name is the topology that a constraint speaks of: its own, or that around it.
func (c *constrained) name() string {
	if c.constraint.TopologyName != "" {
		return c.constraint.TopologyName
	}
	for _, outer := range c.around {
		if outer.constraint.TopologyName != "" {
			return outer.constraint.TopologyName
		}
	}
	return ""
}

// constraints lists what a template constrains, the set first, then its groups, then its cliques.
func constraints(template *grove.PodCliqueSetTemplateSpec, path *field.Path) []*constrained {
	var all []*constrained
	add := func(constraint *grove.TopologyConstraint, path *field.Path, around []*constrained) []*constrained {
		if constraint == nil {
			return around
		}
		c := &constrained{constraint, path.Child("topologyConstraint"), around}
		all = append(all, c)
		return append([]*constrained{c}, around...)
	}
	set := add(template.TopologyConstraint, path, nil)
	around := map[string][]*constrained{}
	for i := range template.PodCliqueScalingGroups {
		group := &template.PodCliqueScalingGroups[i]
		of := add(group.TopologyConstraint, path.Child("podCliqueScalingGroups").Index(i), set)
		for _, name := range group.CliqueNames {
			around[name] = of
		}
	}
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		of, member := around[clique.Name]
		if !member {
			of = set
		}
		add(clique.TopologyConstraint, path.Child("cliques").Index(i), of)
	}
	return all
}

// validateTopology checks what can be known of topology constraints without the
// ClusterTopologyBinding, whose levels say which domain is in which: a set has one
// topology, and what it says of the order of its domains does not contradict itself.
func validateTopology(template *grove.PodCliqueSetTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	all := constraints(template, path)
	var first *constrained
	for _, c := range all {
		errs = append(errs, validateTopologyConstraint(c)...)
		switch name := c.constraint.TopologyName; {
		case name == "":
		case first == nil:
			first = c
		case name != first.constraint.TopologyName:
			errs = append(errs, field.Invalid(c.path.Child("topologyName"), name, fmt.Sprintf("must be %q, as at %s: a set has one topology", first.constraint.TopologyName, first.path)))
		}
	}
	errs = append(errs, validateNarrowing(all, "required", func(pack *grove.TopologyPackConstraint) string { return pack.Required })...)
	return append(errs, validateNarrowing(all, "preferred", func(pack *grove.TopologyPackConstraint) string { return pack.Preferred })...)
}

func validateTopologyConstraint(c *constrained) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, fields.Subdomain(c.constraint.TopologyName, c.path.Child("topologyName"))...)
	if c.constraint.PackDomain != "" {
		errs = append(errs, field.Forbidden(c.path.Child("packDomain"), "is deprecated: use pack.required"))
	}
	pack, packPath := c.constraint.Pack, c.path.Child("pack")
	switch {
	case pack == nil && c.constraint.PackDomain == "" && c.constraint.TopologyName == "":
		errs = append(errs, field.Required(packPath, "the domain to pack the pods into"))
	case pack == nil:
	case pack.Required == "" && pack.Preferred == "":
		errs = append(errs, field.Required(packPath, "needs required or preferred, the domain to pack the pods into"))
	default:
		errs = append(errs, validateDomain(pack.Required, packPath.Child("required"))...)
		errs = append(errs, validateDomain(pack.Preferred, packPath.Child("preferred"))...)
		if c.name() == "" {
			errs = append(errs, field.Required(c.path.Child("topologyName"), "the ClusterTopologyBinding that has the domains, here or in a constraint around this one"))
		}
	}
	return errs
}

func validateDomain(domain string, path *field.Path) field.ErrorList {
	if domain == "" {
		return nil
	}
	return fields.Label(domain, path)
}

// validateNarrowing checks that the domains can be brought into an order from broad to
// narrow in which none is narrower than one inside it.
func validateNarrowing(all []*constrained, kind string, domainOf func(*grove.TopologyPackConstraint) string) field.ErrorList {
	contains := graph{}
	var domains []string
	for _, c := range all {
		if c.constraint.Pack == nil || domainOf(c.constraint.Pack) == "" {
			continue
		}
		domain := domainOf(c.constraint.Pack)
		domains = append(domains, domain)
		for _, outer := range c.around {
			if outer.constraint.Pack == nil {
				continue
			}
			if broad := domainOf(outer.constraint.Pack); broad != "" && broad != domain {
				contains[broad] = append(contains[broad], edge{domain, c.path.Child("pack", kind)})
			}
		}
	}
	var errs field.ErrorList
	for _, c := range contains.cycles(domains) {
		errs = append(errs, field.Invalid(c.path, c.names[0], "the domains "+strings.Join(c.names, ", ")+" are each inside the one before it, in a circle: a constraint is not narrower than those inside it"))
	}
	return errs
}

// validateTopologyUpdate keeps a constraint, but for two ways to bring one of Grove's
// former spelling up to date: its topology may be named, and packDomain may become
// pack.required.
func validateTopologyUpdate(constraint, old *grove.TopologyConstraint, path *field.Path) field.ErrorList {
	if constraint == nil || old == nil || old.PackDomain == "" {
		return fields.Immutable(constraint, old, path)
	}
	updated := *old
	if updated.TopologyName == "" {
		updated.TopologyName = constraint.TopologyName
	}
	if constraint.PackDomain == "" {
		updated.PackDomain = ""
		updated.Pack = &grove.TopologyPackConstraint{Required: old.PackDomain}
		if old.Pack != nil {
			updated.Pack.Preferred = old.Pack.Preferred
		}
	}
	return fields.Immutable(constraint, &updated, path)
}
