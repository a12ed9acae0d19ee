package rest

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Refusals is told of each move of a status that is refused.
type Refusals interface {
	StatusRefused(resource, field string)
}

// observedStrategy tells of what a strategy refuses.
type observedStrategy struct {
	StatusStrategy
	resource string
	refusals Refusals
}

// ValidateUpdate checks a move of the status.
func (s observedStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := s.StatusStrategy.ValidateUpdate(ctx, obj, old)
	if len(errs) > 0 {
		s.refusals.StatusRefused(s.resource, withoutIndexes(errs[0].Field))
	}
	return errs
}

// withoutIndexes leaves of a path what the type of an object says, so that there are only
// so many paths.
func withoutIndexes(path string) string {
	var out strings.Builder
	depth := 0
	for _, r := range path {
		switch {
		case r == '[':
			depth++
		case r == ']' && depth > 0:
			depth--
		case depth == 0:
			out.WriteRune(r)
		}
	}
	return out.String()
}
