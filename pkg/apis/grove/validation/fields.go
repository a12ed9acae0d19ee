package validation

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// nameIsDNSLabel is the rule for names that become part of host names and Services. A
// generated name has its random part added only later, so a prefix may end in a dash.
func nameIsDNSLabel(name string, prefix bool) []string {
	if prefix && len(name) > 0 && name[len(name)-1] == '-' {
		name = name[:len(name)-1] + "a"
	}
	return utilvalidation.IsDNS1123Label(name)
}

func validateUniqueName(name string, seen sets.Set[string], path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for _, msg := range utilvalidation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, msg).WithOrigin("format=k8s-short-name"))
	}
	if seen.Has(name) {
		errs = append(errs, field.Duplicate(path, name))
	}
	seen.Insert(name)
	return errs
}

func validateEnum[T ~string](value T, path *field.Path, supported ...T) field.ErrorList {
	for _, s := range supported {
		if value == s {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}

func validateNotNegative(value int32, path *field.Path) field.ErrorList {
	if value < 0 {
		return field.ErrorList{field.Invalid(path, value, "must be 0 or more").WithOrigin("minimum")}
	}
	return nil
}

// validateMinAvailable checks that a minimum lies within 1 and replicas.
func validateMinAvailable(minAvailable *int32, replicas int32, path *field.Path) field.ErrorList {
	switch {
	case minAvailable == nil:
		return nil
	case *minAvailable < 1:
		return field.ErrorList{field.Invalid(path, *minAvailable, "must be at least 1").WithOrigin("minimum")}
	case *minAvailable > replicas:
		return field.ErrorList{field.Invalid(path, *minAvailable, fmt.Sprintf("must not be greater than replicas, %d", replicas))}
	}
	return nil
}

func validateAutoScaling(config *grove.AutoScalingConfig, minAvailable *int32, replicas int32, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	lower := replicas
	if config.MinReplicas != nil {
		lower = *config.MinReplicas
		if minAvailable != nil && lower < *minAvailable {
			errs = append(errs, field.Invalid(path.Child("minReplicas"), lower, fmt.Sprintf("must not be less than minAvailable, %d", *minAvailable)))
		}
	}
	if config.MaxReplicas < max(lower, replicas) {
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), config.MaxReplicas, fmt.Sprintf("must not be less than minReplicas and replicas, %d", max(lower, replicas))))
	}
	return errs
}

func validateImmutable[T any](value, old T, path *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "field is immutable").WithOrigin("immutable")}
}
