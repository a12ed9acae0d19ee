package fields

import (
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Fields is an object, or a part of one. Reading never fails: what is wrong is collected,
// and Err tells it at the end, all at once.
type Fields struct {
	values map[string]any
	path   *field.Path
	errs   *field.ErrorList
}

// Of reads an object; nil reads as one without any fields.
func Of(obj *unstructured.Unstructured) Fields {
	f := Fields{errs: &field.ErrorList{}}
	if obj != nil {
		f.values = obj.Object
	}
	return f
}

// Err is what was wrong with the fields that were read of the whole object.
func (f Fields) Err() error {
	return f.errs.ToAggregate()
}

// Exists says whether the part is there at all.
func (f Fields) Exists() bool {
	return f.values != nil
}

// Path of a field below this part.
func (f Fields) Path(names ...string) *field.Path {
	path := f.path
	for _, name := range names {
		if path == nil {
			path = field.NewPath(name)
		} else {
			path = path.Child(name)
		}
	}
	return path
}

// Report adds a mistake that the caller found.
func (f Fields) Report(err *field.Error) {
	*f.errs = append(*f.errs, err)
}

// At is the part below this one.
func (f Fields) At(names ...string) Fields {
	at := f
	for _, name := range names {
		at = at.child(name)
	}
	return at
}

func (f Fields) child(name string) Fields {
	below := Fields{path: f.Path(name), errs: f.errs}
	value, ok := f.values[name]
	if !ok || value == nil {
		return below
	}
	values, ok := value.(map[string]any)
	if !ok {
		f.Report(field.TypeInvalid(below.path, value, "must be an object"))
		return below
	}
	below.values = values
	return below
}

// Keys are the names of the fields of this part, in order.
func (f Fields) Keys() []string {
	return slices.Sorted(maps.Keys(f.values))
}

// List is a list of objects below this part.
func (f Fields) List(names ...string) []Fields {
	value, path := f.value(names)
	if value == nil {
		return nil
	}
	items, ok := value.([]any)
	if !ok {
		f.Report(field.TypeInvalid(path, value, "must be a list"))
		return nil
	}
	out := make([]Fields, len(items))
	for i, item := range items {
		out[i] = Fields{path: path.Index(i), errs: f.errs}
		values, ok := item.(map[string]any)
		if !ok {
			f.Report(field.TypeInvalid(path.Index(i), item, "must be an object"))
			continue
		}
		out[i].values = values
	}
	return out
}

// String is a text below this part; empty when it is not there.
func (f Fields) String(names ...string) string {
	value, path := f.value(names)
	if value == nil {
		return ""
	}
	text, ok := value.(string)
	if !ok {
		f.Report(field.TypeInvalid(path, value, "must be a string"))
	}
	return text
}

// True says whether a switch below this part is on.
func (f Fields) True(names ...string) bool {
	value, path := f.value(names)
	if value == nil {
		return false
	}
	on, ok := value.(bool)
	if !ok {
		f.Report(field.TypeInvalid(path, value, "must be true or false"))
	}
	return on
}

// Strings is a map of texts below this part, such as annotations.
func (f Fields) Strings(names ...string) map[string]string {
	at := f.At(names...)
	out := make(map[string]string, len(at.values))
	for _, key := range at.Keys() {
		text, ok := at.values[key].(string)
		if !ok {
			f.Report(field.TypeInvalid(at.path.Key(key), at.values[key], "must be a string"))
			continue
		}
		out[key] = text
	}
	return out
}

// Count is a number of pods, or of groups of pods; nil when it is not there. It fits into
// an int32, so that a product of two fits into the int64.
func (f Fields) Count(names ...string) *int64 {
	value, path := f.value(names)
	var count int64
	switch number := value.(type) {
	case nil:
		return nil
	case int64:
		count = number
	case float64:
		// How a number arrives depends on who decoded it.
		if number != math.Trunc(number) || math.Abs(number) > math.MaxInt32 {
			f.Report(field.TypeInvalid(path, value, "must be a whole number from 0 to 2147483647"))
			return nil
		}
		count = int64(number)
	default:
		f.Report(field.TypeInvalid(path, value, "must be a whole number"))
		return nil
	}
	if count < 0 || count > math.MaxInt32 {
		f.Report(field.Invalid(path, value, "must be a whole number from 0 to 2147483647"))
		return nil
	}
	return &count
}

// value is the field at the end of names, and its path; nil when it is not there.
func (f Fields) value(names []string) (any, *field.Path) {
	last := len(names) - 1
	at := f.At(names[:last]...)
	return at.values[names[last]], at.Path(names[last])
}
