package validation

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func TestValidateStartGate(t *testing.T) {
	testCreate(t, mkStartGate, ValidateStartGate, map[string]createCase[grove.StartGate]{
		"valid": {},
		"nil everything": {
			tweak: func(g *grove.StartGate) { *g = grove.StartGate{} },
			want:  field.ErrorList{required("metadata.name"), required("metadata.namespace")},
		},
		"name is a DNS label, without dots": {
			tweak: func(g *grove.StartGate) { g.Name = "llm.v2" },
			want:  field.ErrorList{invalid("metadata.name")},
		},
		"namespace is required": {
			tweak: func(g *grove.StartGate) { g.Namespace = "" },
			want:  field.ErrorList{required("metadata.namespace")},
		},
	})
}

func TestValidateStartGateUpdate(t *testing.T) {
	testUpdate(t, mkStartGate, ValidateStartGateUpdate, map[string]updateCase[grove.StartGate]{
		"labels may change": {tweak: func(g *grove.StartGate) { g.Labels = map[string]string{"a": "b"} }},
		"metadata is checked": {
			tweak: func(g *grove.StartGate) { g.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
	})
}

func TestValidateStartGateStatusUpdate(t *testing.T) {
	const gate0 = "status.cliques[0]"
	entry := func(tweak func(*grove.StartGateClique)) func(*grove.StartGate) {
		return func(g *grove.StartGate) { tweak(&g.Status.Cliques[0]) }
	}
	open := entry(func(c *grove.StartGateClique) { c.Open = true })
	closed := entry(func(c *grove.StartGateClique) { c.Open = false })
	expired := entry(func(c *grove.StartGateClique) { c.Expired = true })
	firstStarted := func(seconds int64) func(*grove.StartGate) {
		return entry(func(c *grove.StartGateClique) { c.FirstStarted = at(seconds) })
	}
	attempt := func(n int32) func(*grove.StartGate) {
		return entry(func(c *grove.StartGateClique) { c.Attempt = n })
	}
	testUpdate(t, mkStartGate, ValidateStartGateStatusUpdate, map[string]updateCase[grove.StartGate]{
		"nothing changes": {},
		"metadata is checked": {
			tweak: func(g *grove.StartGate) { g.ResourceVersion = "" },
			want:  field.ErrorList{invalid("metadata.resourceVersion")},
		},
		"a gate opens":                              {tweak: open},
		"a gate expires":                            {tweak: expired},
		"a gate stays open":                         {before: open},
		"a gate stays expired":                      {before: expired},
		"a gate closes with a new attempt":          {before: open, tweak: all(closed, attempt(2))},
		"an expired gate is new with a new attempt": {before: expired, tweak: all(attempt(2), entry(func(c *grove.StartGateClique) { c.Expired = false }))},
		"a gate that has expired opens in a new attempt": {
			before: expired,
			tweak:  all(attempt(2), open, entry(func(c *grove.StartGateClique) { c.Expired = false })),
		},
		"a clique comes": {tweak: func(g *grove.StartGate) {
			g.Status.Cliques = append(g.Status.Cliques, grove.StartGateClique{Name: "llm-0-leader", Open: true})
		}},
		"a clique goes with its scale-in": {tweak: func(g *grove.StartGate) { g.Status.Cliques = nil }},
		"a clique has a name":             {tweak: entry(func(c *grove.StartGateClique) { c.Name = "" }), want: field.ErrorList{required(gate0 + ".name")}},
		"open and expired exclude each other": {
			tweak: all(open, expired),
			want:  field.ErrorList{invalid(gate0 + ".expired")},
		},
		"a new clique is not open and expired": {
			before: func(g *grove.StartGate) { g.Status.Cliques = nil },
			tweak: func(g *grove.StartGate) {
				g.Status.Cliques = []grove.StartGateClique{{Name: "llm-0-worker", Open: true, Expired: true}}
			},
			want: field.ErrorList{invalid(gate0 + ".expired")},
		},
		"an open gate does not close within an attempt": {
			before: open,
			tweak:  closed,
			want:   field.ErrorList{invalid(gate0 + ".open")},
		},
		"an open gate does not expire": {
			before: open,
			tweak:  all(closed, expired),
			want:   field.ErrorList{invalid(gate0 + ".open")},
		},
		"an expired gate stays so within an attempt": {
			before: expired,
			tweak:  entry(func(c *grove.StartGateClique) { c.Expired = false }),
			want:   field.ErrorList{invalid(gate0 + ".expired")},
		},
		"an expired gate does not open": {
			before: expired,
			tweak:  entry(func(c *grove.StartGateClique) { c.Open, c.Expired = true, false }),
			want:   field.ErrorList{invalid(gate0 + ".expired")},
		},
		"the first pod starts":                      {tweak: firstStarted(100)},
		"a pod starts first again in a new attempt": {before: firstStarted(100), tweak: all(attempt(2), firstStarted(200))},
		"firstStarted is written once": {
			before: firstStarted(100),
			tweak:  firstStarted(101),
			want:   field.ErrorList{invalid(gate0 + ".firstStarted")},
		},
		"firstStarted is not dropped": {
			before: firstStarted(100),
			tweak:  entry(func(c *grove.StartGateClique) { c.FirstStarted = nil }),
			want:   field.ErrorList{invalid(gate0 + ".firstStarted")},
		},
		"attempt does not fall": {
			tweak: attempt(0),
			want:  field.ErrorList{invalid(gate0 + ".attempt")},
		},
		"attempt of a new clique is not negative": {
			before: func(g *grove.StartGate) { g.Status.Cliques = nil },
			tweak: func(g *grove.StartGate) {
				g.Status.Cliques = []grove.StartGateClique{{Name: "llm-0-worker", Attempt: -1}}
			},
			want: field.ErrorList{invalid(gate0 + ".attempt")},
		},
		"entries are compared by name": {
			before: open,
			tweak: func(g *grove.StartGate) {
				worker := g.Status.Cliques[0]
				worker.Open = false
				g.Status.Cliques = []grove.StartGateClique{{Name: "llm-0-leader"}, worker}
			},
			want: field.ErrorList{invalid("status.cliques[1].open")},
		},
		"an open gate is not hidden behind a second entry": {
			before: open,
			tweak: func(g *grove.StartGate) {
				g.Status.Cliques = append(g.Status.Cliques, grove.StartGateClique{Name: "llm-0-worker", Attempt: 2})
			},
			want: field.ErrorList{duplicate("status.cliques[1].name")},
		},
	})
}
