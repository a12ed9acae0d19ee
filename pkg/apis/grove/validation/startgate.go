package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// ValidateStartGate returns what is wrong with a StartGate by itself.
func ValidateStartGate(gate *grove.StartGate) field.ErrorList {
	return apivalidation.ValidateObjectMeta(&gate.ObjectMeta, true, nameIsDNSLabel, field.NewPath("metadata"))
}

// ValidateStartGateUpdate returns what is wrong with changing old into gate.
func ValidateStartGateUpdate(gate, old *grove.StartGate) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(&gate.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
}

// ValidateStartGateStatusUpdate refuses to close a gate within an attempt, to lower an
// attempt, to open a gate that has expired, and to move its deadline (D21).
func ValidateStartGateStatusUpdate(gate, old *grove.StartGate) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&gate.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	before := map[string]grove.StartGateClique{}
	for _, clique := range old.Status.Cliques {
		before[clique.Name] = clique
	}
	seen := sets.New[string]()
	for i, clique := range gate.Status.Cliques {
		path := field.NewPath("status", "cliques").Index(i)
		errs = append(errs, fields.UniqueName(clique.Name, seen, path.Child("name"))...)
		if clique.Open && clique.Expired {
			errs = append(errs, field.Invalid(path.Child("expired"), true, "a gate is either open or expired"))
		}
		was := before[clique.Name]
		errs = append(errs, validateNotFalling(clique.Attempt, was.Attempt, path.Child("attempt"))...)
		if clique.Attempt != was.Attempt {
			continue
		}
		if was.Open && !clique.Open {
			errs = append(errs, field.Invalid(path.Child("open"), false, "an open gate does not close within an attempt"))
		}
		if was.Expired && !clique.Expired {
			errs = append(errs, field.Invalid(path.Child("expired"), false, "an expired gate stays so within an attempt"))
		}
		errs = append(errs, validateWrittenOnce(clique.FirstStarted, was.FirstStarted, path.Child("firstStarted"))...)
	}
	return errs
}
