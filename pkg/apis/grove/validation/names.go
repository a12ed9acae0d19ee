package validation

import (
	"fmt"
	"regexp"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/naming"
)

// validateNameBudget checks that the longest generated name, a pod's host name, stays
// a DNS label at the largest indexes that the spec and its scale configurations allow (D17).
func validateNameBudget(set string, spec *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	lastReplica := lastIndex(spec.Replicas)
	groupOf := map[string]*grove.PodCliqueScalingGroupConfig{}
	for i := range spec.Template.PodCliqueScalingGroups {
		group := &spec.Template.PodCliqueScalingGroups[i]
		for _, name := range group.CliqueNames {
			groupOf[name] = group
		}
	}
	for i := range spec.Template.Cliques {
		clique := &spec.Template.Cliques[i]
		if len(clique.Name) > utilvalidation.DNS1123LabelMaxLength || len(set) > utilvalidation.DNS1123LabelMaxLength {
			continue
		}
		lastPod := lastIndex(largest(clique.Spec.Replicas, clique.Spec.AutoScalingConfig))
		name := naming.StandaloneClique(set, lastReplica, clique.Name)
		if group := groupOf[clique.Name]; group != nil {
			lastCopy := lastIndex(largest(ptr.Deref(group.Replicas, 1), group.ScaleConfig))
			name = naming.MemberClique(set, lastReplica, group.Name, lastCopy, clique.Name)
		}
		if hostname := naming.Hostname(name, lastPod); len(hostname) > utilvalidation.DNS1123LabelMaxLength {
			errs = append(errs, field.Invalid(path.Child("cliques").Index(i).Child("name"), clique.Name,
				fmt.Sprintf("a host name would be %q, %d characters of at most %d: shorten the name of the set, the scaling group or the clique",
					hostname, len(hostname), utilvalidation.DNS1123LabelMaxLength)))
		}
	}
	return errs
}

func lastIndex(replicas int32) int32 {
	return max(replicas-1, 0)
}

func largest(replicas int32, scale *grove.AutoScalingConfig) int32 {
	if scale == nil {
		return replicas
	}
	return max(replicas, scale.MaxReplicas)
}

// validateNamesApart checks that no two cliques of a set lead to PodCliques of one name:
// a standalone clique "decode-0-worker" is the first copy of clique "worker" in scaling
// group "decode" (D17).
//
// In a staged set each clique has gangs of its own, so the same holds for those: the first
// clique may be in a scaling group as well.
func validateNamesApart(template *grove.PodCliqueSetTemplateSpec, staged bool, path *field.Path) field.ErrorList {
	groupOf := map[string]string{}
	for _, group := range template.PodCliqueScalingGroups {
		for _, name := range group.CliqueNames {
			groupOf[name] = group.Name
		}
	}
	var errs field.ErrorList
	for i := range template.Cliques {
		name := template.Cliques[i].Name
		for j := range template.Cliques {
			member := template.Cliques[j].Name
			group := groupOf[member]
			if group != "" && staged && groupOf[name] != "" && canBeCopyOf("", name, group, member) {
				errs = append(errs, field.Invalid(path.Child("cliques").Index(i).Child("name"), name,
					fmt.Sprintf("with startupPolicy InOrder its gang can have the name of one of clique %q in scaling group %q: rename one of them", member, group)))
			}
			if group != "" && group != groupOf[name] && canBeCopyOf(groupOf[name], name, group, member) {
				errs = append(errs, field.Invalid(path.Child("cliques").Index(i).Child("name"), name,
					fmt.Sprintf("its PodClique can have the name of one of clique %q in scaling group %q: rename one of them", member, group)))
			}
		}
	}
	return errs
}

// canBeCopyOf says whether a clique, of a scaling group or standalone, can have the
// name <group>-<number>-<member>. For a clique of a group the comparison is made from
// the group with the shorter name, so that each pair is told of once.
func canBeCopyOf(ownGroup, clique, group, member string) bool {
	if ownGroup == "" {
		rest, found := strings.CutPrefix(clique, group+"-")
		return found && isNumbered(rest, member)
	}
	// <own>-<number>-<clique> is <group>-<number>-<member>, where group goes on after own.
	rest, found := strings.CutPrefix(group, ownGroup+"-")
	if !found {
		return false
	}
	number, tail, more := strings.Cut(rest, "-")
	if !onlyDigits.MatchString(number) {
		return false
	}
	if !more {
		return isNumbered(clique, member)
	}
	after, found := strings.CutPrefix(clique, tail+"-")
	return found && isNumbered(after, member)
}

var onlyDigits = regexp.MustCompile(`^[0-9]+$`)

// isNumbered says whether text is <number>-<name>.
func isNumbered(text, name string) bool {
	number, rest, found := strings.Cut(text, "-")
	return found && rest == name && onlyDigits.MatchString(number)
}
