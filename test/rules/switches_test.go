package rules

import (
	"strings"
	"testing"
)

// The switches find each form that a rule has, and leave everything else as it is.
func TestSwitches(t *testing.T) {
	const source = `package p

func a(x int) field.ErrorList {
	errs := b(x)
	if x > 0 {
		errs = append(errs, field.Required(nil, ""))
	}
	if x > 1 {
		return field.ErrorList{field.Required(nil, "")}
	}
	if x > 2 {
		return b(x)
	}
	if errs := b(x); len(errs) > 0 {
		return errs
	}
	names := append([]string{}, "a")
	if x > 3 {
		return errs
	}
	return append(errs, b(len(names))...)
}

func other() []string { return append([]string{}, "a") }
`
	text, rules, err := withSwitches("p.go", []byte(source), 7)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"errs := b(x); if off(7) { errs = nil }",
		`if !off(8) { errs = append(errs, field.Required(nil, "")) }`,
		`if off(9) { return nil }; return field.ErrorList{`,
		"if off(10) { return nil }; return b(x)",
		"if errs := b(x); !off(11) && (len(errs) > 0) /* 11 */ {",
		"if off(12) { return errs }; return append(errs, b(len(names))...)",
	}
	for _, part := range want {
		if !strings.Contains(string(text), part) {
			t.Errorf("there is no %q in:\n%s", part, text)
		}
	}
	if len(rules) != len(want) || strings.Count(string(text), "off(") != len(want) {
		t.Errorf("there are %d rules, want %d:\n%s", len(rules), len(want), text)
	}
	if len(rules) > 0 && rules[0].place != "p.go:4" {
		t.Errorf("the first rule is at %s", rules[0].place)
	}
}
