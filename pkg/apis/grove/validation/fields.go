package validation

import (
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/internal/fields"
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

// validateFabricGroup checks the annotation that asks for a memory fabric between nodes.
func validateFabricGroup(annotations map[string]string, path *field.Path) field.ErrorList {
	group, given := annotations[labels.FabricGroup]
	if !given {
		return nil
	}
	return fields.Label(group, path.Key(labels.FabricGroup))
}

// validateFabricGroupUpdate keeps it, as Grove does: pods that exist are on one fabric.
func validateFabricGroupUpdate(annotations, old map[string]string, path *field.Path) field.ErrorList {
	return fields.Immutable(annotations[labels.FabricGroup], old[labels.FabricGroup], path.Key(labels.FabricGroup))
}
