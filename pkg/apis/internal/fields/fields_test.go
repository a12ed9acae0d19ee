package fields

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestFields(t *testing.T) {
	const (
		invalid     = field.ErrorTypeInvalid
		tooLong     = field.ErrorTypeTooLong
		required    = field.ErrorTypeRequired
		duplicate   = field.ErrorTypeDuplicate
		unsupported = field.ErrorTypeNotSupported
	)
	path := field.NewPath("f")
	long := strings.Repeat("a", 400)
	tests := map[string]struct {
		got  field.ErrorList
		want []field.ErrorType
	}{
		"label":                           {Label("a-1", path), nil},
		"label is one":                    {Label("a.b", path), []field.ErrorType{invalid}},
		"label is given":                  {Label("", path), []field.ErrorType{invalid}},
		"label has at most 63 characters": {Label(long[:64], path), []field.ErrorType{tooLong}},
		"subdomain":                       {Subdomain("a.b", path), nil},
		"subdomain may be absent":         {Subdomain("", path), nil},
		"subdomain is one":                {Subdomain("A", path), []field.ErrorType{invalid}},
		"subdomain has at most 253":       {Subdomain(long[:254], path), []field.ErrorType{tooLong}},
		"label key":                       {LabelKey("example.com/rack", path), nil},
		"label key is one":                {LabelKey("a/b/c", path), []field.ErrorType{invalid}},
		"label key is no longer than one": {LabelKey(long, path), []field.ErrorType{tooLong}},
		"unique name":                     {UniqueName("a", sets.New("b"), path), nil},
		"unique name is given":            {UniqueName("", sets.New[string](), path), []field.ErrorType{required}},
		"unique name is a label":          {UniqueName("A", sets.New("A"), path), []field.ErrorType{invalid}},
		"unique name is unique":           {UniqueName("a", sets.New("a"), path), []field.ErrorType{duplicate}},
		"enum":                            {Enum("a", path, "b", "a"), nil},
		"enum is known":                   {Enum("c", path, "b", "a"), []field.ErrorType{unsupported}},
		"not negative":                    {NotNegative(0, path), nil},
		"negative":                        {NotNegative(-1, path), []field.ErrorType{invalid}},
		"immutable":                       {Immutable([]string{}, nil, path), nil},
		"immutable that changes":          {Immutable("a", "b", path), []field.ErrorType{invalid}},
		"untouched, nothing found":        {Untouched(nil, func() field.ErrorList { t.Error("the old object is looked at"); return nil }), nil},
		"untouched":                       {Untouched(field.ErrorList{field.Invalid(path.Index(1).Child("a"), 1, "x")}, func() field.ErrorList { return field.ErrorList{field.Invalid(path.Index(0).Child("a"), 1, "x")} }), nil},
		"untouched, another value":        {Untouched(field.ErrorList{field.Invalid(path, 1, "x")}, func() field.ErrorList { return field.ErrorList{field.Invalid(path, 2, "x")} }), []field.ErrorType{invalid}},
		"untouched, another field":        {Untouched(field.ErrorList{field.Invalid(path.Child("a"), 1, "x")}, func() field.ErrorList { return field.ErrorList{field.Invalid(path.Child("b"), 1, "x")} }), []field.ErrorType{invalid}},
		"untouched, one more":             {Untouched(field.ErrorList{field.Invalid(path, 1, "x"), field.Invalid(path, 1, "x")}, func() field.ErrorList { return field.ErrorList{field.Invalid(path, 1, "x")} }), []field.ErrorType{invalid}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []field.ErrorType
			for _, err := range tc.got {
				got = append(got, err.Type)
				if err.Type == tooLong && strings.Contains(err.Error(), "aaa") {
					t.Errorf("a value that is too long is repeated: %s", err.Error())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// A name is remembered, so that the next of its like is a duplicate.
func TestUniqueNameRemembers(t *testing.T) {
	seen := sets.New[string]()
	UniqueName("a", seen, nil)
	if !seen.Has("a") {
		t.Error("the name is not remembered")
	}
}
