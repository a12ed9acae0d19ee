package conditions

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateUpdate returns what is wrong with changing old into conditions: there is one
// condition of each type, so that all readers see the same one, and the time of its
// transition does not go back, so that a delay that runs from it is not cut short.
func ValidateUpdate(conditions, old []metav1.Condition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range conditions {
		condition := &conditions[i]
		if seen.Has(condition.Type) && !hasTwice(old, condition.Type) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("type"), condition.Type))
		}
		seen.Insert(condition.Type)
		before := meta.FindStatusCondition(old, condition.Type)
		if before != nil && condition.LastTransitionTime.Unix() < before.LastTransitionTime.Unix() {
			errs = append(errs, field.Invalid(path.Index(i).Child("lastTransitionTime"), condition.LastTransitionTime.UTC().Format(time.RFC3339),
				fmt.Sprintf("of condition %s must not go back, it is %s", condition.Type, before.LastTransitionTime.UTC().Format(time.RFC3339))))
		}
	}
	return errs
}

// hasTwice says that conditions that were stored before the rule break it already.
func hasTwice(conditions []metav1.Condition, conditionType string) bool {
	n := 0
	for i := range conditions {
		if conditions[i].Type == conditionType {
			n++
		}
	}
	return n > 1
}
