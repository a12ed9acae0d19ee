package validation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// isStaged says that the cliques of a set start one after the other, each with a gang of
// its own (D20).
func isStaged(spec *grove.PodCliqueSetSpec) bool {
	return spec.StartupPolicy != nil && spec.StartupPolicy.StartupPolicyOrder == grove.StartupPolicyInOrder
}

// validateStartupPolicy checks seed 003: with InOrder, the rules name every clique but
// the last, each once (D20).
func validateStartupPolicy(spec *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	policy := spec.StartupPolicy
	if policy == nil {
		return nil
	}
	errs := fields.Enum(policy.StartupPolicyOrder, path.Child("startupPolicyOrder"), grove.StartupPolicyAnyOrder, grove.StartupPolicyInOrder)
	cliques := spec.Template.Cliques
	known, seen := cliqueNames(&spec.Template), sets.New[string]()
	for i, rule := range policy.Rules {
		rulePath := path.Child("rules").Index(i)
		errs = append(errs, fields.Enum(rule.WaitForCliquesStatus, rulePath.Child("waitForCliquesStatus"), grove.CliqueStatusReady, grove.CliqueStatusSucceeded)...)
		if rule.WaitForCliquesStatus == grove.CliqueStatusSucceeded && spec.WorkloadType != grove.WorkloadTypeTraining {
			errs = append(errs, field.Invalid(rulePath.Child("waitForCliquesStatus"), rule.WaitForCliquesStatus, "pods of an inference workload never succeed: use Ready, or workloadType Training"))
		}
		targetsPath := rulePath.Child("targetCliques")
		if len(rule.TargetCliques) == 0 {
			errs = append(errs, field.Required(targetsPath, "a rule needs at least one clique"))
		}
		for j, name := range rule.TargetCliques {
			switch {
			case !known.Has(name):
				errs = append(errs, field.NotFound(targetsPath.Index(j), name))
			case seen.Has(name):
				errs = append(errs, field.Duplicate(targetsPath.Index(j), name))
			case name == cliques[len(cliques)-1].Name:
				errs = append(errs, field.Invalid(targetsPath.Index(j), name, "is the last clique: nothing waits for it"))
			}
			seen.Insert(name)
		}
	}
	if policy.StartupPolicyOrder != grove.StartupPolicyInOrder {
		return errs
	}
	for i := 0; i < len(cliques)-1; i++ {
		if !seen.Has(cliques[i].Name) {
			errs = append(errs, field.Required(path.Child("rules"), fmt.Sprintf("no rule names clique %q; every clique but the last needs one", cliques[i].Name)))
		}
	}
	if startupType := spec.Template.StartupType; startupType != nil && *startupType != grove.CliqueStartupTypeAnyOrder {
		errs = append(errs, field.Invalid(path.Child("startupPolicyOrder"), policy.StartupPolicyOrder,
			fmt.Sprintf("excludes cliqueStartupType %s: a set has one order", *startupType)))
	}
	return errs
}

// validateWaiters checks that pods which wait to start can run the container in which they do:
// the API server takes no pod of Windows with it.
func validateWaiters(spec *grove.PodCliqueSetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Template.Cliques {
		clique := &spec.Template.Cliques[i]
		if os := clique.Spec.PodSpec.OS; os != nil && os.Name == corev1.Windows && waitsToStart(spec, i) {
			errs = append(errs, field.Invalid(path.Index(i).Child("spec", "podSpec", "os", "name"), os.Name,
				"pods of the clique wait to start, and do so in a container for Linux: leave it out of groupSchedulingConfig and cliqueStartupType, or use startupPolicy"))
		}
	}
	return errs
}

// waitsToStart says that the containers of a clique of the template are held back.
func waitsToStart(spec *grove.PodCliqueSetSpec, index int) bool {
	clique := &spec.Template.Cliques[index]
	if config := spec.GroupSchedulingConfig; config != nil && (len(config.TargetCliques) == 0 || slices.Contains(config.TargetCliques, clique.Name)) {
		return true
	}
	if isExplicit(&spec.Template) {
		return len(clique.Spec.StartsAfter) > 0
	}
	return index > 0 && ptr.Deref(spec.Template.StartupType, grove.CliqueStartupTypeAnyOrder) == grove.CliqueStartupTypeInOrder
}
