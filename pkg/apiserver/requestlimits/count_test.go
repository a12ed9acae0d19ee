package requestlimits

import (
	"fmt"
	"strings"
	"testing"
)

// list is a JSON list of n equal values.
func list(n int, value string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(value+",", n), ",") + "]"
}

// dict is a JSON object of n different keys.
func dict(n int) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprintf(`"k%d":0`, i)
	}
	return "{" + strings.Join(entries, ",") + "}"
}

func TestTooManyValuesAreToldWithTheirPath(t *testing.T) {
	const half = maxEntries / 2
	deep := strings.Repeat(`{"a":`, maxPath+4) + list(maxEntries+1, "0") + strings.Repeat("}", maxPath+4)
	for name, tc := range map[string]struct {
		body string
		yaml bool
		want string
	}{
		"a list at the limit":                {body: list(maxEntries, "0")},
		"a list beyond it":                   {body: `{"a":{"b":[1,` + list(maxEntries+1, "{}") + `]}}`, want: "a.b[1]: Too many: 20001: must have at most 20000 items"},
		"a map at the limit":                 {body: dict(maxEntries)},
		"a map beyond it":                    {body: `{"x":1,"metadata":{"labels":` + dict(maxEntries+1) + `}}`, want: "metadata.labels: Too many: 20001"},
		"many lists within the limits":       {body: list(9, list(half, "0"))},
		"too many values in many lists":      {body: list(11, list(half, "0")), want: "body: Too many: 100001: must have at most 100000 items"},
		"values that are lists":              {body: list(4, list(half, "[]")) + ""},
		"lists in lists in lists":            {body: strings.Repeat("[", maxValues+1), want: "body: Too many"},
		"cliques at the limit":               {body: `{"spec":{"template":{"cliques":` + list(256, "{}") + `}}}`},
		"cliques beyond it":                  {body: `{"metadata":{"a":[]},"spec":{"template":{"cliques":` + list(257, "{}") + `}}}`, want: "spec.template.cliques: Too many: 257: must have at most 256 items"},
		"scaling groups beyond it":           {body: `{"spec":{"template":{"podCliqueScalingGroups":` + list(257, "{}") + `}}}`, want: "spec.template.podCliqueScalingGroups: Too many: 257"},
		"cliques of something else":          {body: `{"status":{"template":{"cliques":` + list(257, "{}") + `}}}`},
		"a patch of JSON operations":         {body: `[{"op":"add","path":"/spec","value":` + list(maxEntries+1, "0") + `}]`, want: "[0].value: Too many: 20001"},
		"a long text":                        {body: `{"args":["` + strings.Repeat(`,[{\n`, 1<<18) + `"]}`},
		"an empty key":                       {body: `{"":` + list(maxEntries+1, "0") + `}`, want: `"": Too many: 20001`},
		"a deep path is cut":                 {body: deep, want: strings.TrimSuffix(strings.Repeat("a.", maxPath), ".") + ": Too many"},
		"not JSON":                           {body: `{"a":` + strings.Repeat("?", 1<<17)},
		"nothing":                            {body: ""},
		"JSON where YAML may be":             {body: `  {"a":` + list(maxEntries+1, "0") + "}", yaml: true, want: "a: Too many: 20001"},
		"a long line of YAML":                {body: "a: " + strings.Repeat("b", 1<<20), yaml: true},
		"YAML of many lines":                 {body: "a:\n" + strings.Repeat("- {}\n", maxEntries), yaml: true, want: "more than 20000 lines, commas and brackets in YAML: send it as JSON"},
		"YAML of many commas":                {body: "a: " + list(maxEntries+2, "0"), yaml: true, want: "in YAML"},
		"YAML of many brackets":              {body: "a: " + strings.Repeat("[", maxEntries+1), yaml: true, want: "in YAML"},
		"YAML of many maps":                  {body: "a: " + strings.Repeat("{", maxEntries+1), yaml: true, want: "in YAML"},
		"the same that is not said to be so": {body: "a: " + strings.Repeat("{", maxEntries+1)},
	} {
		t.Run(name, func(t *testing.T) {
			err := check([]byte(tc.body), tc.yaml)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%v, wanted %q", err, tc.want)
			}
		})
	}
}
