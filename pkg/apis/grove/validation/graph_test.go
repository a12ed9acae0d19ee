package validation

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func startupType(startupType grove.CliqueStartupType) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.StartupType = ptr.To(startupType) }
}

// explicit makes a set of cliques a, b, c and so on, each of which starts after some.
func explicit(after ...[]string) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) {
		startupType(grove.CliqueStartupTypeExplicit)(pcs)
		pcs.Spec.Template.Cliques = nil
		for i, names := range after {
			c := mkClique(string(rune('a' + i)))
			c.Spec.StartsAfter = names
			pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, c)
		}
	}
}

func TestValidateStartsAfter(t *testing.T) {
	at := func(path string) string { return path + ".spec.startsAfter[0]" }
	const clique2 = "spec.template.cliques[2]"
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"no order":                        {tweak: explicit(nil, nil)},
		"a diamond":                       {tweak: explicit(nil, []string{"a"}, []string{"a"}, []string{"b", "c"})},
		"backwards in the list":           {tweak: explicit([]string{"b"}, []string{"c"}, nil)},
		"a name is required":              {tweak: explicit([]string{""}, nil), want: field.ErrorList{required(at(clique0))}},
		"a clique is known":               {tweak: explicit([]string{"nobody"}, nil), want: field.ErrorList{notFound(at(clique0))}},
		"a clique is named once":          {tweak: explicit(nil, []string{"a", "a"}), want: field.ErrorList{duplicate(clique1 + ".spec.startsAfter[1]")}},
		"not after itself":                {tweak: explicit([]string{"a"}, nil), want: field.ErrorList{invalid(at(clique0))}},
		"a cycle of two":                  {tweak: explicit([]string{"b"}, []string{"a"}), want: field.ErrorList{invalid(at(clique1))}},
		"a cycle of three":                {tweak: explicit([]string{"b"}, []string{"c"}, []string{"a"}), want: field.ErrorList{invalid(at(clique2))}},
		"a cycle behind a way":            {tweak: explicit([]string{"b"}, []string{"c"}, []string{"b"}), want: field.ErrorList{invalid(at(clique2))}},
		"two cycles":                      {tweak: explicit([]string{"b"}, []string{"a"}, []string{"d"}, []string{"c"}), want: field.ErrorList{invalid(at(clique1)), invalid("spec.template.cliques[3].spec.startsAfter[0]")}},
		"a name is a DNS label":           {tweak: all(explicit([]string{"A"}, nil), startupType(grove.CliqueStartupTypeAnyOrder)), want: field.ErrorList{invalid(at(clique0))}},
		"in AnyOrder nothing looks at it": {tweak: all(explicit([]string{"b"}, []string{"a"}), startupType(grove.CliqueStartupTypeAnyOrder))},
		"in InOrder nothing looks at it":  {tweak: all(explicit([]string{"a", "nobody"}, nil), startupType(grove.CliqueStartupTypeInOrder))},
	})
	errs := ValidatePodCliqueSet(mkPodCliqueSet(explicit([]string{"b"}, []string{"c"}, []string{"a"})))
	if want := "the cliques a, b, c wait for each other: none of them would start"; len(errs) != 1 || errs[0].Detail != want {
		t.Errorf("want one error that says %q, got %v", want, errs)
	}
}
