package validation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

// packed is a constraint; empty parts are left out.
func packed(topology, required, preferred string) *grove.TopologyConstraint {
	constraint := &grove.TopologyConstraint{TopologyName: topology}
	if required != "" || preferred != "" {
		constraint.Pack = &grove.TopologyPackConstraint{Required: required, Preferred: preferred}
	}
	return constraint
}

func setTopology(constraint *grove.TopologyConstraint) func(*grove.PodCliqueSet) {
	return func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.TopologyConstraint = constraint }
}

func cliqueTopology(i int, constraint *grove.TopologyConstraint) func(*grove.PodCliqueSet) {
	return clique(i, func(c *grove.PodCliqueTemplateSpec) { c.TopologyConstraint = constraint })
}

func groupTopology(i int, constraint *grove.TopologyConstraint) func(*grove.PodCliqueSet) {
	return group(i, func(g *grove.PodCliqueScalingGroupConfig) { g.TopologyConstraint = constraint })
}

func TestValidateTopology(t *testing.T) {
	const (
		set      = "spec.template.topologyConstraint"
		inGroup0 = group0 + ".topologyConstraint"
		inClique = clique1 + ".topologyConstraint"
	)
	decode := withGroup("decode", "worker")
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"required":                                 {tweak: setTopology(packed("gpu", "rack", ""))},
		"preferred":                                {tweak: setTopology(packed("gpu", "", "rack"))},
		"broad to narrow on three levels":          {tweak: all(decode, setTopology(packed("gpu", "zone", "rack")), groupTopology(0, packed("", "block", "")), cliqueTopology(1, packed("", "rack", "host")))},
		"the same domain on three levels":          {tweak: all(decode, setTopology(packed("gpu", "rack", "")), groupTopology(0, packed("gpu", "rack", "")), cliqueTopology(1, packed("gpu", "rack", "")))},
		"a topology for those inside":              {tweak: all(setTopology(packed("gpu", "", "")), cliqueTopology(1, packed("", "rack", "")))},
		"a topology of the group":                  {tweak: all(decode, groupTopology(0, packed("gpu", "", "")), cliqueTopology(1, packed("", "rack", "")))},
		"topologyName may have dots":               {tweak: setTopology(packed("gpu.v2", "rack", ""))},
		"topologyName is a valid name":             {tweak: setTopology(packed("GPU", "rack", "")), want: field.ErrorList{invalid(set + ".topologyName")}},
		"topologyName has at most 253 characters":  {tweak: setTopology(packed(strings.Repeat("a", 254), "rack", "")), want: field.ErrorList{tooLong(set + ".topologyName")}},
		"an empty constraint":                      {tweak: setTopology(&grove.TopologyConstraint{}), want: field.ErrorList{required(set + ".pack")}},
		"required or preferred is required":        {tweak: setTopology(&grove.TopologyConstraint{TopologyName: "gpu", Pack: &grove.TopologyPackConstraint{}}), want: field.ErrorList{required(set + ".pack")}},
		"required is a DNS label":                  {tweak: setTopology(packed("gpu", "a/b", "")), want: field.ErrorList{invalid(set + ".pack.required")}},
		"preferred is a DNS label":                 {tweak: setTopology(packed("gpu", "", "Rack")), want: field.ErrorList{invalid(set + ".pack.preferred")}},
		"topologyName is required":                 {tweak: setTopology(packed("", "rack", "")), want: field.ErrorList{required(set + ".topologyName")}},
		"topologyName of another group is no help": {tweak: all(withGroup("decode", "router"), groupTopology(0, packed("gpu", "rack", "")), cliqueTopology(1, packed("", "rack", ""))), want: field.ErrorList{required(inClique + ".topologyName")}},
		"a set has one topology":                   {tweak: all(setTopology(packed("gpu", "zone", "")), cliqueTopology(1, packed("cpu", "rack", ""))), want: field.ErrorList{invalid(inClique + ".topologyName")}},
		"two cliques have one topology":            {tweak: all(cliqueTopology(0, packed("gpu", "rack", "")), cliqueTopology(1, packed("cpu", "rack", ""))), want: field.ErrorList{invalid(inClique + ".topologyName")}},
		"packDomain is not for new constraints":    {tweak: setTopology(&grove.TopologyConstraint{TopologyName: "gpu", PackDomain: "rack"}), want: field.ErrorList{forbidden(set + ".packDomain")}},
		"packDomain beside pack":                   {tweak: setTopology(&grove.TopologyConstraint{TopologyName: "gpu", PackDomain: "rack", Pack: &grove.TopologyPackConstraint{Required: "rack"}}), want: field.ErrorList{forbidden(set + ".packDomain")}},

		// What the set itself says of the order of domains.
		"a clique is not around its set": {
			tweak: all(decode, setTopology(packed("gpu", "rack", "")), groupTopology(0, packed("", "zone", "")), cliqueTopology(1, packed("", "rack", ""))),
			want:  field.ErrorList{invalid(inClique + ".pack.required")},
		},
		"preferred is not around preferred": {
			tweak: all(decode, setTopology(packed("gpu", "", "rack")), groupTopology(0, packed("", "", "zone")), cliqueTopology(1, packed("", "", "rack"))),
			want:  field.ErrorList{invalid(inClique + ".pack.preferred")},
		},
		"two groups that contradict each other": {
			tweak: all(withGroup("prefill", "router"), decode,
				groupTopology(0, packed("gpu", "zone", "")), cliqueTopology(0, packed("", "rack", "")),
				groupTopology(1, packed("gpu", "rack", "")), cliqueTopology(1, packed("", "zone", ""))),
			want: field.ErrorList{invalid(inClique + ".pack.required")},
		},
		"a clique outside a group does not contradict it": {
			tweak: all(withGroup("prefill", "router"), groupTopology(0, packed("gpu", "zone", "")), cliqueTopology(0, packed("", "rack", "")), cliqueTopology(1, packed("gpu", "zone", ""))),
		},
		"required and preferred are looked at apart": {tweak: all(setTopology(packed("gpu", "zone", "rack")), cliqueTopology(1, packed("", "rack", "zone")))},
		"a constraint around without a domain":       {tweak: all(decode, setTopology(packed("gpu", "zone", "")), groupTopology(0, packed("gpu", "", "")), cliqueTopology(1, packed("", "rack", "")))},
		"a group around with a preference alone":     {tweak: all(decode, groupTopology(0, packed("gpu", "", "zone")), cliqueTopology(1, packed("", "rack", "")))},
		"a name of the group's own":                  {tweak: all(decode, groupTopology(0, packed("", "rack", ""))), want: field.ErrorList{required(inGroup0 + ".topologyName")}},
	})
}

// A constraint of Grove's former spelling may be brought up to date, and nothing else.
func TestValidateTopologyUpdate(t *testing.T) {
	const set = "spec.template.topologyConstraint"
	old := func(topology string, pack *grove.TopologyPackConstraint) func(*grove.PodCliqueSet) {
		return setTopology(&grove.TopologyConstraint{TopologyName: topology, PackDomain: "rack", Pack: pack})
	}
	preferred := &grove.TopologyPackConstraint{Preferred: "host"}
	testUpdate(t, mkPodCliqueSet, ValidatePodCliqueSetUpdate, map[string]updateCase[grove.PodCliqueSet]{
		"packDomain may stay":                          {before: old("gpu", nil), tweak: func(pcs *grove.PodCliqueSet) { pcs.Spec.Replicas = 2 }},
		"its topology may be named":                    {before: old("", nil), tweak: old("gpu", nil)},
		"its topology is immutable":                    {before: old("gpu", nil), tweak: old("cpu", nil), want: field.ErrorList{invalid(set)}},
		"packDomain may become pack.required":          {before: old("gpu", nil), tweak: setTopology(packed("gpu", "rack", ""))},
		"packDomain and topology at once":              {before: old("", nil), tweak: setTopology(packed("gpu", "rack", ""))},
		"a preference stays":                           {before: old("gpu", preferred), tweak: setTopology(packed("gpu", "rack", "host"))},
		"a preference does not go":                     {before: old("gpu", preferred), tweak: setTopology(packed("gpu", "rack", "")), want: field.ErrorList{invalid(set)}},
		"packDomain does not become another domain":    {before: old("gpu", nil), tweak: setTopology(packed("gpu", "zone", "")), want: field.ErrorList{invalid(set)}},
		"packDomain is immutable":                      {before: old("gpu", nil), tweak: setTopology(&grove.TopologyConstraint{TopologyName: "gpu", PackDomain: "zone"}), want: field.ErrorList{invalid(set)}},
		"packDomain does not go":                       {before: old("gpu", nil), tweak: setTopology(nil), want: field.ErrorList{invalid(set)}},
		"a preference is not added":                    {before: old("gpu", nil), tweak: setTopology(packed("gpu", "rack", "host")), want: field.ErrorList{invalid(set)}},
		"a constraint without packDomain is immutable": {before: setTopology(packed("gpu", "zone", "")), tweak: setTopology(packed("gpu", "rack", "")), want: field.ErrorList{invalid(set)}},
		"topologyName is not added to pack": {
			before: all(setTopology(packed("gpu", "zone", "")), cliqueTopology(0, packed("", "rack", ""))),
			tweak:  cliqueTopology(0, packed("gpu", "rack", "")),
			want:   field.ErrorList{invalid(clique0 + ".topologyConstraint")},
		},
		"packDomain of a clique": {before: cliqueTopology(0, &grove.TopologyConstraint{TopologyName: "gpu", PackDomain: "rack"}), tweak: cliqueTopology(0, packed("gpu", "rack", ""))},
		"packDomain of a group": {
			before: all(withGroup("decode", "worker"), groupTopology(0, &grove.TopologyConstraint{TopologyName: "gpu", PackDomain: "rack"})),
			tweak:  groupTopology(0, packed("gpu", "rack", "")),
		},
	})
}
