package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/labels"
)

// nameIsDNSLabel is the rule for names that become part of host names. A generated name
// has its random part added only later, so a prefix may end in a dash.
func nameIsDNSLabel(name string, prefix bool) []string {
	return checkName(name, prefix, utilvalidation.IsDNS1123Label)
}

// nameIsServiceName is the rule for the name of a set, with which the names of its
// Services begin: unlike a label, that is no digit.
func nameIsServiceName(name string, prefix bool) []string {
	return checkName(name, prefix, utilvalidation.IsDNS1035Label)
}

func checkName(name string, prefix bool, check func(string) []string) []string {
	if len(name) > utilvalidation.DNS1123LabelMaxLength {
		return []string{utilvalidation.MaxLenError(utilvalidation.DNS1123LabelMaxLength)}
	}
	if prefix && len(name) > 0 && name[len(name)-1] == '-' {
		name = name[:len(name)-1] + "a"
	}
	return check(name)
}

// validateLabel checks a DNS label. A value that is too long is not repeated in the error.
func validateLabel(value string, path *field.Path) field.ErrorList {
	if len(value) > utilvalidation.DNS1123LabelMaxLength {
		return field.ErrorList{field.TooLong(path, "", utilvalidation.DNS1123LabelMaxLength)}
	}
	var errs field.ErrorList
	for _, msg := range utilvalidation.IsDNS1123Label(value) {
		errs = append(errs, field.Invalid(path, value, msg).WithOrigin("format=k8s-short-name"))
	}
	return errs
}

// validateSubdomain checks the name of an object, where there is one.
func validateSubdomain(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return nil
	}
	if len(value) > utilvalidation.DNS1123SubdomainMaxLength {
		return field.ErrorList{field.TooLong(path, "", utilvalidation.DNS1123SubdomainMaxLength)}
	}
	var errs field.ErrorList
	for _, msg := range utilvalidation.IsDNS1123Subdomain(value) {
		errs = append(errs, field.Invalid(path, value, msg).WithOrigin("format=k8s-long-name"))
	}
	return errs
}

// validateLabelKey checks the key of a node label.
func validateLabelKey(key string, path *field.Path) field.ErrorList {
	if most := utilvalidation.DNS1123SubdomainMaxLength + 1 + utilvalidation.LabelValueMaxLength; len(key) > most {
		return field.ErrorList{field.TooLong(path, "", most)}
	}
	var errs field.ErrorList
	for _, msg := range utilvalidation.IsQualifiedName(key) {
		errs = append(errs, field.Invalid(path, key, msg).WithOrigin("format=k8s-label-key"))
	}
	return errs
}

func validateUniqueName(name string, seen sets.Set[string], path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a name of lower case letters, digits and dashes")}
	}
	errs := validateLabel(name, path)
	if len(errs) > 0 {
		return errs
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

// validateFabricGroup checks the annotation that asks for a memory fabric between nodes.
func validateFabricGroup(annotations map[string]string, path *field.Path) field.ErrorList {
	group, given := annotations[labels.FabricGroup]
	if !given {
		return nil
	}
	return validateLabel(group, path.Key(labels.FabricGroup))
}

// validateFabricGroupUpdate keeps it, as Grove does: pods that exist are on one fabric.
func validateFabricGroupUpdate(annotations, old map[string]string, path *field.Path) field.ErrorList {
	return validateImmutable(annotations[labels.FabricGroup], old[labels.FabricGroup], path.Key(labels.FabricGroup))
}

func validateImmutable[T any](value, old T, path *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "field is immutable").WithOrigin("immutable")}
}
