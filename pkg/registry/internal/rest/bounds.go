package rest

import (
	"fmt"
	"strconv"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds are the sizes that an object can be scaled to: 0, which leaves it idle, or Min
// to Max.
type Bounds struct {
	// Min and Max are the bounds, and MinOf and MaxOf say where they come from. Min is 0
	// for an object that has no minimum.
	Min, Max     int32
	MinOf, MaxOf string
	// Fixed is set for an object that keeps its size, and says why.
	Fixed string
}

// FixedInTraining are the bounds of what belongs to a training workload, which keeps its
// size (D14).
func FixedInTraining() Bounds {
	return Bounds{Fixed: "is immutable in Training"}
}

// LimitByHostname lowers Max to what lets every host name be a DNS label (D17). hostname
// is the longest to which the one with an index leads; it grows with the digits of the index.
func (b *Bounds) LimitByHostname(hostname func(index int32) string) {
	for b.Max > 1 && len(hostname(b.Max-1)) > utilvalidation.DNS1123LabelMaxLength {
		// Up to here the last index has a digit less.
		largest := int32(1)
		for range len(strconv.Itoa(int(b.Max-1))) - 1 {
			largest *= 10
		}
		b.Max, b.MaxOf = largest, fmt.Sprintf("host name %s would have more than %d characters", hostname(largest), utilvalidation.DNS1123LabelMaxLength)
	}
}

func (b Bounds) validate(replicas int32, path *field.Path) field.ErrorList {
	switch {
	case b.Fixed != "":
		return field.ErrorList{field.Forbidden(path, b.Fixed)}
	case replicas > b.Max:
		return field.ErrorList{field.Invalid(path, replicas, b.String()).WithOrigin("maximum")}
	case replicas < 0, replicas != 0 && replicas < b.Min:
		return field.ErrorList{field.Invalid(path, replicas, b.String()).WithOrigin("minimum")}
	}
	return nil
}

// String says what would be right.
func (b Bounds) String() string {
	if b.Min <= 1 {
		return fmt.Sprintf("must be from 0 to %d (%s)", b.Max, b.MaxOf)
	}
	return fmt.Sprintf("must be 0, or from %d (%s) to %d (%s)", b.Min, b.MinOf, b.Max, b.MaxOf)
}
