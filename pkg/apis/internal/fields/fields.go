package fields

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Label checks a DNS label. A value that is too long is not repeated in the error.
func Label(value string, path *field.Path) field.ErrorList {
	if len(value) > utilvalidation.DNS1123LabelMaxLength {
		return field.ErrorList{field.TooLong(path, "", utilvalidation.DNS1123LabelMaxLength)}
	}
	var errs field.ErrorList
	for _, msg := range utilvalidation.IsDNS1123Label(value) {
		errs = append(errs, field.Invalid(path, value, msg).WithOrigin("format=k8s-short-name"))
	}
	return errs
}

// Subdomain checks the name of an object, where there is one.
func Subdomain(value string, path *field.Path) field.ErrorList {
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

// LabelKey checks the key of a node label.
func LabelKey(key string, path *field.Path) field.ErrorList {
	if most := utilvalidation.DNS1123SubdomainMaxLength + 1 + utilvalidation.LabelValueMaxLength; len(key) > most {
		return field.ErrorList{field.TooLong(path, "", most)}
	}
	var errs field.ErrorList
	for _, msg := range utilvalidation.IsQualifiedName(key) {
		errs = append(errs, field.Invalid(path, key, msg).WithOrigin("format=k8s-label-key"))
	}
	return errs
}

// UniqueName checks a DNS label that is given, and is not in seen, which it adds it to.
func UniqueName(name string, seen sets.Set[string], path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a name of lower case letters, digits and dashes")}
	}
	errs := Label(name, path)
	if len(errs) > 0 {
		return errs
	}
	if seen.Has(name) {
		errs = append(errs, field.Duplicate(path, name))
	}
	seen.Insert(name)
	return errs
}

// Enum checks that a value is one of those that there are.
func Enum[T ~string](value T, path *field.Path, supported ...T) field.ErrorList {
	for _, s := range supported {
		if value == s {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}

// NotNegative checks a count.
func NotNegative(value int32, path *field.Path) field.ErrorList {
	if value < 0 {
		return field.ErrorList{field.Invalid(path, value, "must be 0 or more").WithOrigin("minimum")}
	}
	return nil
}

// Immutable checks that a value is semantically that of the old object.
func Immutable[T any](value, old T, path *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "field is immutable").WithOrigin("immutable")}
}
