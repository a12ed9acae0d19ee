package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// anyIndex stands for an index in the form of a name.
const anyIndex = "#"

// claimForm is what the names of the claims of one entry of resourceSharing are like, without the
// name of the set: the words between dashes.
type claimForm struct {
	words []string
	// sharing is the entry, list what it is an entry of, and path where it is.
	sharing    *grove.ResourceSharingSpec
	list, path *field.Path
	// usedBy says whether the pods of a clique use the claims.
	usedBy func(clique string) bool
}

// validateClaimNames checks that no two entries of resourceSharing lead to claims of one name, and
// that the pods which use them give no claim of their own that name: template "worker-0-gpu" for
// each replica of the set is template "gpu" for each pod of clique "worker".
func validateClaimNames(set string, template *grove.PodCliqueSetTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	byShape := map[string][]claimForm{}
	for _, form := range claimForms(template, path) {
		key := shapeOf(form.words)
		for _, other := range byShape[key] {
			// That a list names a template twice is told already.
			isTwice := form.list == other.list && form.sharing.Name == other.sharing.Name
			if !isTwice && canBeSame(form.words, other.words) {
				errs = append(errs, field.Invalid(form.path.Child("name"), form.sharing.Name,
					fmt.Sprintf("a claim of it can have the name of one of %s: give the template another name", other.path)))
				break
			}
		}
		byShape[key] = append(byShape[key], form)
	}
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		for j, claim := range clique.Spec.PodSpec.ResourceClaims {
			rest, found := strings.CutPrefix(claim.Name, set+"-")
			if set == "" || !found {
				continue
			}
			words := strings.Split(rest, "-")
			for _, form := range byShape[shapeOf(words)] {
				if form.usedBy(clique.Name) && canBeSame(words, form.words) {
					errs = append(errs, field.Invalid(path.Child("cliques").Index(i).Child("spec", "podSpec", "resourceClaims").Index(j).Child("name"), claim.Name,
						fmt.Sprintf("a claim that the pods share by %s can have this name: choose another", form.path)))
					break
				}
			}
		}
	}
	return errs
}

func claimForms(template *grove.PodCliqueSetTemplateSpec, path *field.Path) []claimForm {
	var forms []claimForm
	// owner are the words of the name of what shares, without the set's.
	add := func(sharing *grove.ResourceSharingSpec, list *field.Path, index int, usedBy func(string) bool, owner ...string) {
		scope := anyIndex
		if sharing.Scope == grove.ResourceSharingScopeAllReplicas {
			scope = "all"
		}
		words := slices.Concat(owner, []string{scope}, strings.Split(sharing.Name, "-"))
		forms = append(forms, claimForm{words, sharing, list, list.Index(index), usedBy})
	}
	list := path.Child("resourceSharing")
	for i := range template.ResourceSharing {
		sharing := &template.ResourceSharing[i]
		add(&sharing.ResourceSharingSpec, list, i, func(clique string) bool {
			return sharing.Filter == nil || slices.Contains(sharing.Filter.ChildCliqueNames, clique) ||
				slices.ContainsFunc(sharing.Filter.ChildScalingGroupNames, func(name string) bool {
					group := template.ScalingGroup(name)
					return group != nil && slices.Contains(group.CliqueNames, clique)
				})
		})
	}
	ownersOf := map[string][]string{}
	for i := range template.PodCliqueScalingGroups {
		group := &template.PodCliqueScalingGroups[i]
		owner := append([]string{anyIndex}, strings.Split(group.Name, "-")...)
		for _, name := range group.CliqueNames {
			ownersOf[name] = append(slices.Clone(owner), anyIndex)
		}
		list := path.Child("podCliqueScalingGroups").Index(i).Child("resourceSharing")
		for j := range group.ResourceSharing {
			sharing := &group.ResourceSharing[j]
			add(&sharing.ResourceSharingSpec, list, j, func(clique string) bool {
				return slices.Contains(group.CliqueNames, clique) && (sharing.Filter == nil || slices.Contains(sharing.Filter.ChildCliqueNames, clique))
			}, owner...)
		}
	}
	for i := range template.Cliques {
		clique := &template.Cliques[i]
		owner := ownersOf[clique.Name]
		if owner == nil {
			owner = []string{anyIndex}
		}
		owner = append(slices.Clone(owner), strings.Split(clique.Name, "-")...)
		list := path.Child("cliques").Index(i).Child("resourceSharing")
		for j := range clique.ResourceSharing {
			add(&clique.ResourceSharing[j], list, j, func(name string) bool { return name == clique.Name }, owner...)
		}
	}
	return forms
}

// shapeOf is the same for forms that can be the same: every number may be an index.
func shapeOf(words []string) string {
	shape := slices.Clone(words)
	for i, word := range shape {
		if isIndex(word) {
			shape[i] = anyIndex
		}
	}
	return strings.Join(shape, "-")
}

// canBeSame says that two forms lead to one name for some indexes.
func canBeSame(a, b []string) bool {
	return slices.EqualFunc(a, b, func(a, b string) bool {
		return a == b || (a == anyIndex && isIndex(b)) || (b == anyIndex && isIndex(a))
	})
}

func isIndex(word string) bool {
	return onlyDigits.MatchString(word) && (word == "0" || word[0] != '0')
}
