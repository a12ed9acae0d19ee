package podgrouper

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// place writes the owners of a pod as kinds, nearest first; Gang and Pod have rules, Flow is
// passed over.
func TestPlace(t *testing.T) {
	tests := map[string]struct {
		owners string
		rule   string
		owner  string
		below  int
		above  int
	}{
		"no owner":                          {"", "Pod", "", 0, 0},
		"one with a rule":                   {"Gang", "Gang", "Gang", 0, 0},
		"one without":                       {"Other", "Default", "Other", 0, 0},
		"the highest with a rule":           {"Gang Gang", "Gang", "Gang", 1, 0},
		"down the chain to a rule":          {"Gang Other Another", "Gang", "Gang", 0, 2},
		"no rule anywhere":                  {"Other Another", "Default", "Another", 1, 0},
		"passed over":                       {"Gang Flow", "Gang", "Gang", 0, 1},
		"passed over, nothing below":        {"Flow", "Pod", "", 0, 1},
		"passed over with all that's above": {"Other Flow Gang", "Default", "Other", 0, 2},
		"passed over twice":                 {"Gang Flow Flow", "Gang", "Gang", 0, 2},
		"passed over twice, nothing below":  {"Flow Flow", "Pod", "", 0, 2},
		"a pod on top":                      {"Pod", "Pod", "Pod", 0, 0},
		"a pod on top, below the flow":      {"Pod Flow", "Pod", "Pod", 0, 1},
		"a pod below what has no rule":      {"Pod Other", "Default", "Other", 1, 0},
		"a pod below what has one":          {"Other Pod Gang", "Gang", "Gang", 2, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for i, kind := range strings.Fields(tc.owners) {
				owner := w.under(kind, strings.Repeat("x", i+1))
				if kind == "Pod" {
					owner.APIVersion = "v1"
				}
			}
			registry := NewRegistry(w.rules[0], w.rules[1], w.rules[2:]...)
			rule, in := registry.place(w.owners, map[schema.GroupKind]bool{{Group: "example.com", Kind: "Flow"}: true})
			owner := ""
			if in.Owner != nil {
				owner = in.Owner.Kind
			}
			if rule.Name() != tc.rule || owner != tc.owner || len(in.Below) != tc.below || len(in.Above) != tc.above {
				t.Errorf("rule %s, owner %q, %d below, %d above", rule.Name(), owner, len(in.Below), len(in.Above))
			}
		})
	}
}

func TestTheLaterRuleCounts(t *testing.T) {
	first, second := rule{kind: "Gang"}, rule{kind: "Gang", membership: Membership{SubGroup: "second"}}
	w := newWorld()
	w.rules = append(w.rules[:2], first, second)
	w.under("Gang", "gang")
	if id := w.identify(t); id.SubGroup != "second" {
		t.Errorf("got %+v", id)
	}
}
