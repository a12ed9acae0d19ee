package validation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/internal/fields"
)

// The status of an object is a state machine (design section 4): the rules of the files
// status_<kind>.go hold against everyone, Copse's own controllers included, so that a
// controller with a stale cache, or two of them, cannot undo a decision.
//
// Some rules are about a move: they compare the old status with the new one. The others
// are about a state: they compare fields of one object, and go through ratchet.

// ratchet returns what rules about a state refuse of obj, without what is wrong with old
// in the same place already: an object that was stored before a rule can still be written.
func ratchet[T any](obj, old *T, rules ...func(*T) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for _, rule := range rules {
		found := rule(obj)
		if len(found) == 0 {
			continue
		}
		known := rule(old)
		errs = append(errs, slices.DeleteFunc(found, func(err *field.Error) bool {
			return slices.ContainsFunc(known, func(k *field.Error) bool { return k.Type == err.Type && k.Field == err.Field })
		})...)
	}
	return errs
}

func validateNotFalling(value, old int32, path *field.Path) field.ErrorList {
	if value < old {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must not fall, it is %d", old))}
	}
	return nil
}

// validateAttemptChange lets an attempt rise by one: what an attempt between would have
// recorded is nowhere.
func validateAttemptChange(value, old int32, path *field.Path) field.ErrorList {
	if value > old && value-1 > old {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must rise by at most 1 in one write, it is %d", old))}
	}
	return validateNotFalling(value, old, path)
}

// validateUniqueIndex checks the key of a list entry. Two entries of one index would let
// an attempt fall: only one of them is compared with the next status.
func validateUniqueIndex(index int32, seen sets.Set[int32], path *field.Path) field.ErrorList {
	errs := fields.NotNegative(index, path)
	if seen.Has(index) {
		errs = append(errs, field.Duplicate(path, index))
	}
	seen.Insert(index)
	return errs
}

func validateCounts(path *field.Path, counts map[string]int32) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		errs = append(errs, fields.NotNegative(counts[name], path.Child(name))...)
	}
	return errs
}

// validateParts checks counts of a part of what whole counts.
func validateParts(path *field.Path, whole string, most int32, parts map[string]int32) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if parts[name] > most {
			errs = append(errs, field.Invalid(path.Child(name), parts[name], fmt.Sprintf("must not be greater than %s, %d", whole, most)))
		}
	}
	return errs
}

func validateWrittenOnce(value, old *metav1.Time, path *field.Path) field.ErrorList {
	if old != nil && !old.Equal(value) {
		return field.ErrorList{field.Invalid(path, timeText(value), "is written once, it is "+timeText(old))}
	}
	return nil
}

// isBefore compares times as they are stored, in whole seconds.
func isBefore(a, b *metav1.Time) bool {
	return a.Unix() < b.Unix()
}

func timeText(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
