package validation

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
	described := func(labels, annotations map[string]string) grove.ResourceClaimTemplateConfig {
		claim := mkClaim("claim")
		claim.TemplateSpec.Labels, claim.TemplateSpec.Annotations = labels, annotations
		return claim
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
		"labels of claims are valid": {
			tweak: claims(described(map[string]string{"a": "b c"}, nil)), want: field.ErrorList{invalid("spec.template.resourceClaimTemplates[0].templateSpec.metadata.labels")},
		},
		"annotations of claims are valid": {
			tweak: claims(described(nil, map[string]string{"a/b/c": ""})), want: field.ErrorList{invalid("spec.template.resourceClaimTemplates[0].templateSpec.metadata.annotations")},
		},
		"a claim has a device request": {tweak: claims(noRequest), want: field.ErrorList{required("spec.template.resourceClaimTemplates[0].templateSpec.spec.devices.requests")}},

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

// No claim can have the name of another, nor of one that a pod has of its own.
func TestClaimsHaveNamesOfTheirOwn(t *testing.T) {
	all2 := func(s *grove.ResourceSharingSpec) { s.Scope = grove.ResourceSharingScopeAllReplicas }
	set := func(specs ...grove.ResourceSharingSpec) func(*grove.PodCliqueSet) {
		return func(pcs *grove.PodCliqueSet) {
			for _, spec := range specs {
				pcs.Spec.Template.ResourceSharing = append(pcs.Spec.Template.ResourceSharing, grove.PCSResourceSharingSpec{ResourceSharingSpec: spec})
			}
		}
	}
	routersOnly := func(pcs *grove.PodCliqueSet) {
		pcs.Spec.Template.ResourceSharing[0].Filter = &grove.PCSResourceSharingFilter{ChildCliqueNames: []string{"router"}}
	}
	ofClique := func(specs ...grove.ResourceSharingSpec) func(*grove.PodCliqueSet) {
		return clique(1, func(c *grove.PodCliqueTemplateSpec) { c.ResourceSharing = specs })
	}
	ofGroup := func(specs ...grove.ResourceSharingSpec) func(*grove.PodCliqueSet) {
		return all(withGroup("decode", "worker"), func(pcs *grove.PodCliqueSet) {
			for _, spec := range specs {
				pcs.Spec.Template.PodCliqueScalingGroups[0].ResourceSharing = append(pcs.Spec.Template.PodCliqueScalingGroups[0].ResourceSharing, grove.PCSGResourceSharingSpec{ResourceSharingSpec: spec})
			}
		})
	}
	own := func(name string) func(*grove.PodCliqueSet) {
		return clique(1, func(c *grove.PodCliqueTemplateSpec) {
			c.Spec.PodSpec.ResourceClaims = []corev1.PodResourceClaim{{Name: name}}
		})
	}
	const (
		clique1Sharing, group0Sharing = clique1 + ".resourceSharing[0].name", group0 + ".resourceSharing[0].name"
		ownClaim                      = clique1 + ".spec.podSpec.resourceClaims[0].name"
	)
	name := mkPodCliqueSet().Name
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"a template for each replica is that of each pod": {
			tweak: all(set(shared("worker-0-gpu")), ofClique(shared("gpu"))), want: field.ErrorList{invalid(clique1Sharing)},
		},
		"another index is another name than no index": {tweak: all(set(shared("worker-00-gpu")), ofClique(shared("gpu")))},
		"for all":                          {tweak: all(set(shared("worker-all-gpu")), ofClique(shared("gpu", all2))), want: field.ErrorList{invalid(clique1Sharing)}},
		"for all and for each":             {tweak: all(set(shared("worker-all-gpu")), ofClique(shared("gpu")))},
		"of a group and of a clique in it": {tweak: all(ofGroup(shared("worker-7-gpu")), ofClique(shared("gpu"))), want: field.ErrorList{invalid(clique1Sharing)}},
		"of a set and of a group":          {tweak: all(set(shared("decode-0-gpu")), ofGroup(shared("gpu"))), want: field.ErrorList{invalid(group0Sharing)}},
		"of one list":                      {tweak: set(shared("gpu"), shared("gpu", all2)), want: field.ErrorList{duplicate("spec.template.resourceSharing[1].name")}},

		"a pod's own claim":                   {tweak: all(set(shared("gpu")), own(name+"-3-gpu")), want: field.ErrorList{invalid(ownClaim)}},
		"a pod's own claim of another shape":  {tweak: all(set(shared("gpu")), own(name+"-x-gpu"))},
		"a pod's own claim of another prefix": {tweak: all(set(shared("gpu")), own("other-3-gpu"))},
		"what another clique shares":          {tweak: all(set(shared("gpu")), routersOnly, own(name+"-3-gpu"))},
	})
}

func TestASetSharesOnlySoMuch(t *testing.T) {
	many := func(count int) func(*grove.PodCliqueSet) {
		return clique(1, func(c *grove.PodCliqueTemplateSpec) {
			for i := range count {
				c.ResourceSharing = append(c.ResourceSharing, shared(fmt.Sprintf("t%d", i)))
			}
		})
	}
	testCreate(t, mkPodCliqueSet, ValidatePodCliqueSet, map[string]createCase[grove.PodCliqueSet]{
		"as much as may be": {tweak: many(MaxSharings)},
		"more":              {tweak: many(MaxSharings + 1), want: field.ErrorList{invalid("spec")}},
	})
}
