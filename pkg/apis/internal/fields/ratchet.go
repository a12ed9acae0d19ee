package fields

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Untouched returns of found what is not wrong with the old object in the same way: a
// rule that was tightened refuses neither an object that it finds, nor a change of
// something else in it. An error is known by what it says of which value, not by where in
// a list it is, so that cliques may be moved; and it excuses one of its like, so that
// there are never more of them than before.
func Untouched(found field.ErrorList, old func() field.ErrorList) field.ErrorList {
	if len(found) == 0 {
		return nil
	}
	excused := map[string]int{}
	for _, err := range old() {
		excused[saying(err)]++
	}
	return slices.DeleteFunc(found, func(err *field.Error) bool {
		excused[saying(err)]--
		return excused[saying(err)] >= 0
	})
}

// saying is an error without the indexes of its path.
func saying(err *field.Error) string {
	path := make([]byte, 0, len(err.Field))
	depth := 0
	for _, c := range []byte(err.Field) {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		default:
			if depth == 0 {
				path = append(path, c)
			}
		}
	}
	return string(path) + ": " + err.ErrorBody()
}
