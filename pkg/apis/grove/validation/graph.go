package validation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// graph holds directed edges between names, and where in an object each was given.
type graph map[string][]edge

type edge struct {
	to   string
	path *field.Path
}

// cycle is a list of names, each of which leads to the next, and the last to the first.
// path is where the edge was given that closes it.
type cycle struct {
	names []string
	path  *field.Path
}

// cycles finds, from each name in order, the edges that lead back to where they come from.
func (g graph) cycles(names []string) []cycle {
	var found []cycle
	done := sets.New[string]()
	var way []string
	var visit func(name string)
	visit = func(name string) {
		way = append(way, name)
		for _, next := range g[name] {
			if from := slices.Index(way, next.to); from >= 0 {
				found = append(found, cycle{names: slices.Clone(way[from:]), path: next.path})
			} else if !done.Has(next.to) {
				visit(next.to)
			}
		}
		way = way[:len(way)-1]
		done.Insert(name)
	}
	for _, name := range names {
		if !done.Has(name) {
			visit(name)
		}
	}
	return found
}

// from returns the names that a name leads to, over any number of edges.
func (g graph) from(name string) sets.Set[string] {
	reached := sets.New[string]()
	next := []string{name}
	for len(next) > 0 {
		last := next[len(next)-1]
		next = next[:len(next)-1]
		for _, e := range g[last] {
			if !reached.Has(e.to) {
				reached.Insert(e.to)
				next = append(next, e.to)
			}
		}
	}
	return reached
}

// isExplicit says that startsAfter is what orders the cliques.
func isExplicit(template *grove.PodCliqueSetTemplateSpec) bool {
	return ptr.Deref(template.StartupType, grove.CliqueStartupTypeAnyOrder) == grove.CliqueStartupTypeExplicit
}

// startsAfter is the graph of which clique waits for which. It leaves out what is no edge
// between two cliques.
func startsAfter(template *grove.PodCliqueSetTemplateSpec, path *field.Path) graph {
	known := cliqueNames(template)
	g := graph{}
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		for j, name := range clique.Spec.StartsAfter {
			if known.Has(name) && name != clique.Name {
				g[clique.Name] = append(g[clique.Name], edge{name, path.Child("cliques").Index(i).Child("spec", "startsAfter").Index(j)})
			}
		}
	}
	return g
}

func cliqueNames(template *grove.PodCliqueSetTemplateSpec) sets.Set[string] {
	names := make(sets.Set[string], len(template.Cliques))
	for i := range template.Cliques {
		names.Insert(template.Cliques[i].Name)
	}
	return names
}

// validateStartsAfter checks that the cliques can start one after the other (D20). With
// another startup type nothing acts on the lists, as in Grove; a warning says so, and they
// need only be such as the PodCliques that carry them may have.
func validateStartsAfter(template *grove.PodCliqueSetTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	known, acts := cliqueNames(template), isExplicit(template)
	names := make([]string, 0, len(template.Cliques))
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		names = append(names, clique.Name)
		listPath := path.Child("cliques").Index(i).Child("spec", "startsAfter")
		errs = append(errs, validateNames(clique.Spec.StartsAfter, listPath)...)
		for j, name := range clique.Spec.StartsAfter {
			switch {
			case !acts || name == "":
			case name == clique.Name:
				errs = append(errs, field.Invalid(listPath.Index(j), name, "a clique cannot start after itself"))
			case !known.Has(name):
				errs = append(errs, field.NotFound(listPath.Index(j), name))
			}
		}
	}
	if !acts {
		return errs
	}
	for _, c := range startsAfter(template, path).cycles(names) {
		errs = append(errs, field.Invalid(c.path, c.names[0], "the cliques "+strings.Join(c.names, ", ")+" wait for each other: none of them would start"))
	}
	return errs
}

// validateNames checks a list of names that are DNS labels, each there once.
func validateNames(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, name := range names {
		errs = append(errs, fields.UniqueName(name, seen, path.Index(i))...)
	}
	return errs
}
