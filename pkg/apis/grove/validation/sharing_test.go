package validation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove"
)

func shared(name string, tweaks ...func(*grove.ResourceSharingSpec)) grove.ResourceSharingSpec {
	spec := grove.ResourceSharingSpec{Name: name, Scope: grove.ResourceSharingScopePerReplica}
	all(tweaks...)(&spec)
	return spec
}

func inNamespace(namespace string) func(*grove.ResourceSharingSpec) {
	return func(s *grove.ResourceSharingSpec) { s.Namespace = namespace }
}

func TestValidateResources(t *testing.T) {
	const sharing0 = "spec.template.resourceSharing[0]"
	claims := func(claims ...grove.ResourceClaimTemplateConfig) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) { pcs.Spec.Template.ResourceClaimTemplates = claims }
	}
	set := func(filter *grove.PCSResourceSharingFilter, specs ...grove.ResourceSharingSpec) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) {
			for _, spec := range specs {
				pcs.Spec.Template.ResourceSharing = append(pcs.Spec.Template.ResourceSharing, grove.PCSResourceSharingSpec{ResourceSharingSpec: spec, Filter: filter})
			}
		}
	}
	ofGroup := func(filter *grove.PCSGResourceSharingFilter, specs ...grove.ResourceSharingSpec) func(*grove.PodCliqueSet) {
		return all(withGroup("decode", "worker"), group(0, func(g *grove.PodCliqueScalingGroupConfig) {
			for _, spec := range specs {
				g.ResourceSharing = append(g.ResourceSharing, grove.PCSGResourceSharingSpec{ResourceSharingSpec: spec, Filter: filter})
			}
		}))
	}
	ofClique := func(specs ...grove.ResourceSharingSpec) func(*grove.PodCliqueSet) {
		return clique(1, func(c *grove.PodCliqueTemplateSpec) { c.ResourceSharing = specs })
	}
	noRequest := mkClaim("claim")
	noRequest.TemplateSpec.Spec.Devices.Requests = nil
	filter := func(cliques, groups []string) *grove.PCSResourceSharingFilter {
		return &grove.PCSResourceSharingFilter{ChildCliqueNames: cliques, ChildScalingGroupNames: groups}
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"claim templates":                      {tweak: claims(mkClaim("a"), mkClaim("b"))},
		"name of a claim template is required": {tweak: claims(mkClaim("")), want: field.ErrorList{required("spec.template.resourceClaimTemplates[0].name")}},
		"names of claim templates are unique":  {tweak: claims(mkClaim("a"), mkClaim("a")), want: field.ErrorList{duplicate("spec.template.resourceClaimTemplates[1].name")}},
		"a claim has a device request":         {tweak: claims(noRequest), want: field.ErrorList{required("spec.template.resourceClaimTemplates[0].templateSpec.spec.devices.requests")}},

		"sharing of the set":                             {tweak: all(claims(mkClaim("a")), set(nil, shared("a"), shared("other")))},
		"scope AllReplicas":                              {tweak: set(nil, shared("a", func(s *grove.ResourceSharingSpec) { s.Scope = grove.ResourceSharingScopeAllReplicas }))},
		"scope is known":                                 {tweak: set(nil, shared("a", func(s *grove.ResourceSharingSpec) { s.Scope = "" })), want: field.ErrorList{unsupported(sharing0 + ".scope")}},
		"name is required":                               {tweak: set(nil, shared("")), want: field.ErrorList{required(sharing0 + ".name")}},
		"name is that of an object":                      {tweak: set(nil, shared("A")), want: field.ErrorList{invalid(sharing0 + ".name")}},
		"name has at most 253 characters":                {tweak: set(nil, shared(strings.Repeat("a", 254))), want: field.ErrorList{tooLong(sharing0 + ".name")}},
		"a template is shared once":                      {tweak: set(nil, shared("a"), shared("a")), want: field.ErrorList{duplicate("spec.template.resourceSharing[1].name")}},
		"two names are missing":                          {tweak: set(nil, shared(""), shared("")), want: field.ErrorList{required(sharing0 + ".name"), required("spec.template.resourceSharing[1].name")}},
		"another namespace":                              {tweak: set(nil, shared("a", inNamespace("shared")))},
		"namespace is valid":                             {tweak: set(nil, shared("a", inNamespace("a.b"))), want: field.ErrorList{invalid(sharing0 + ".namespace")}},
		"a template of the set's own is in no namespace": {tweak: all(claims(mkClaim("a")), set(nil, shared("a", inNamespace("ns")))), want: field.ErrorList{forbidden(sharing0 + ".namespace")}},

		"filter of cliques and groups": {tweak: all(withGroup("decode", "worker"), set(filter([]string{"router"}, []string{"decode"}), shared("a")))},
		"filter of cliques":            {tweak: set(filter([]string{"router", "worker"}, nil), shared("a"))},
		"a filter names something":     {tweak: set(filter(nil, nil), shared("a")), want: field.ErrorList{required(sharing0 + ".filter")}},
		"a filter names known cliques": {tweak: set(filter([]string{"router", "nobody"}, nil), shared("a")), want: field.ErrorList{notFound(sharing0 + ".filter.childCliqueNames[1]")}},
		"a filter names known groups":  {tweak: set(filter(nil, []string{"decode"}), shared("a")), want: field.ErrorList{notFound(sharing0 + ".filter.childScalingGroupNames[0]")}},
		"a filter names a clique once": {tweak: set(filter([]string{"router", "router"}, nil), shared("a")), want: field.ErrorList{duplicate(sharing0 + ".filter.childCliqueNames[1]")}},

		"sharing of a clique":                       {tweak: ofClique(shared("a"), shared("b"))},
		"sharing of a clique has a scope":           {tweak: ofClique(shared("a", func(s *grove.ResourceSharingSpec) { s.Scope = "All" })), want: field.ErrorList{unsupported(clique1 + ".resourceSharing[0].scope")}},
		"a template is shared once in a clique":     {tweak: ofClique(shared("a"), shared("a")), want: field.ErrorList{duplicate(clique1 + ".resourceSharing[1].name")}},
		"a template is shared by set and clique":    {tweak: all(set(nil, shared("a")), ofClique(shared("a")))},
		"sharing of a group":                        {tweak: ofGroup(&grove.PCSGResourceSharingFilter{ChildCliqueNames: []string{"worker"}}, shared("a"))},
		"sharing of a group without a filter":       {tweak: ofGroup(nil, shared("a"))},
		"sharing of a group has a name":             {tweak: ofGroup(nil, shared("")), want: field.ErrorList{required(group0 + ".resourceSharing[0].name")}},
		"a filter of a group names something":       {tweak: ofGroup(&grove.PCSGResourceSharingFilter{}, shared("a")), want: field.ErrorList{required(group0 + ".resourceSharing[0].filter")}},
		"a filter of a group names its own cliques": {tweak: ofGroup(&grove.PCSGResourceSharingFilter{ChildCliqueNames: []string{"router"}}, shared("a")), want: field.ErrorList{notFound(group0 + ".resourceSharing[0].filter.childCliqueNames[0]")}},
	})
}
