package gang

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

func ofAll(name string) grovev1alpha1.ResourceSharingSpec {
	return grovev1alpha1.ResourceSharingSpec{Name: name, Scope: grovev1alpha1.ResourceSharingScopeAllReplicas}
}

func ofEach(name string) grovev1alpha1.ResourceSharingSpec {
	return grovev1alpha1.ResourceSharingSpec{Name: name, Scope: grovev1alpha1.ResourceSharingScopePerReplica}
}

func setShares(filter *grovev1alpha1.PCSResourceSharingFilter, specs ...grovev1alpha1.ResourceSharingSpec) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		for _, spec := range specs {
			pcs.Spec.Template.ResourceSharing = append(pcs.Spec.Template.ResourceSharing, grovev1alpha1.PCSResourceSharingSpec{ResourceSharingSpec: spec, Filter: filter})
		}
	}
}

func groupShares(filter *grovev1alpha1.PCSGResourceSharingFilter, specs ...grovev1alpha1.ResourceSharingSpec) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		group := &pcs.Spec.Template.PodCliqueScalingGroups[0]
		for _, spec := range specs {
			group.ResourceSharing = append(group.ResourceSharing, grovev1alpha1.PCSGResourceSharingSpec{ResourceSharingSpec: spec, Filter: filter})
		}
	}
}

func cliqueShares(index int, specs ...grovev1alpha1.ResourceSharingSpec) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.Template.Cliques[index].ResourceSharing = specs }
}

func ownTemplate(names ...string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		for _, name := range names {
			pcs.Spec.Template.ResourceClaimTemplates = append(pcs.Spec.Template.ResourceClaimTemplates, grovev1alpha1.ResourceClaimTemplateConfig{Name: name})
		}
	}
}

// sharing is a set of a router, and of two copies of a group of a leader and two workers.
func sharing(options ...setOption) *grovev1alpha1.PodCliqueSet {
	shape := []setOption{replicas(2), template("router", 2, 1), template("leader", 1, 1), template("worker", 2, 1), group("decode", 2, 1, "leader", "worker")}
	return inferenceSet(append(shape, options...)...)
}

func TestExpectedClaims(t *testing.T) {
	tests := map[string]struct {
		set     *grovev1alpha1.PodCliqueSet
		replica int32
		want    []string
	}{
		"a set that shares nothing":      {set: sharing(ownTemplate("gpu"))},
		"of the set, for all":            {set: sharing(setShares(nil, ofAll("gpu"))), want: []string{"set-all-gpu set-wide"}},
		"which are the first replica's":  {set: sharing(setShares(nil, ofAll("gpu"))), replica: 1},
		"of the set, for each":           {set: sharing(setShares(nil, ofEach("gpu"))), replica: 1, want: []string{"set-1-gpu"}},
		"of the set, twice":              {set: sharing(setShares(nil, ofAll("gpu"), ofEach("nic"))), want: []string{"set-all-gpu set-wide", "set-0-nic"}},
		"a filter makes no claim less":   {set: sharing(setShares(&grovev1alpha1.PCSResourceSharingFilter{ChildCliqueNames: []string{"router"}}, ofEach("gpu"))), want: []string{"set-0-gpu"}},
		"of a group, for all":            {set: sharing(groupShares(nil, ofAll("gpu"))), want: []string{"set-0-decode-all-gpu of set-0-decode"}},
		"of a group, for each":           {set: sharing(groupShares(nil, ofEach("gpu"))), want: []string{"set-0-decode-0-gpu of set-0-decode copy 0", "set-0-decode-1-gpu of set-0-decode copy 1"}},
		"of a clique, for all":           {set: sharing(cliqueShares(0, ofAll("gpu"))), replica: 1, want: []string{"set-1-router-all-gpu of set-1-router"}},
		"of a clique, for each":          {set: sharing(cliqueShares(0, ofEach("gpu"))), want: []string{"set-0-router-0-gpu of set-0-router pod 0", "set-0-router-1-gpu of set-0-router pod 1", "set-0-router-2-gpu of set-0-router pod 2"}},
		"of a member, for all of a copy": {set: sharing(cliqueShares(2, ofAll("gpu"))), want: []string{"set-0-decode-0-worker-all-gpu of set-0-decode set-0-decode-0-worker copy 0", "set-0-decode-1-worker-all-gpu of set-0-decode set-0-decode-1-worker copy 1"}},
		"of a member, for each": {set: sharing(cliqueShares(1, ofEach("gpu"))), want: []string{
			"set-0-decode-0-leader-0-gpu of set-0-decode set-0-decode-0-leader copy 0 pod 0", "set-0-decode-1-leader-0-gpu of set-0-decode set-0-decode-1-leader copy 1 pod 0",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			// The router has been scaled out.
			size := func(e ExpectedClique) int32 {
				return e.Template.Spec.Replicas + map[string]int32{"router": 1}[e.Template.Name]
			}
			var got []string
			for _, claim := range ExpectedClaims(tc.set, tc.replica, TemplateSizes, size) {
				text := claim.Name
				if claim.IsSetWide {
					text += " set-wide"
				}
				if claim.Group+claim.Clique != "" {
					text += " of"
				}
				for _, owner := range []string{claim.Group, claim.Clique} {
					if owner != "" {
						text += " " + owner
					}
				}
				if claim.Copy >= 0 {
					text += fmt.Sprintf(" copy %d", claim.Copy)
				}
				if claim.Pod >= 0 {
					text += fmt.Sprintf(" pod %d", claim.Pod)
				}
				got = append(got, text)
			}
			expect(t, "claims", tc.want, got)
		})
	}
}

// What a pod uses is what is made for it: each name is one of those that its replica has.
func TestClaimsOfAPod(t *testing.T) {
	cliques := func(names ...string) *grovev1alpha1.PCSResourceSharingFilter {
		return &grovev1alpha1.PCSResourceSharingFilter{ChildCliqueNames: names}
	}
	groups := &grovev1alpha1.PCSResourceSharingFilter{ChildScalingGroupNames: []string{"decode"}}
	workers := &grovev1alpha1.PCSGResourceSharingFilter{ChildCliqueNames: []string{"worker"}}
	tests := map[string]struct {
		set            *grovev1alpha1.PodCliqueSet
		router, worker []string
	}{
		"nothing": {set: sharing()},
		"of the set": {
			set: sharing(setShares(nil, ofAll("gpu"), ofEach("nic"))), router: []string{"set-all-gpu", "set-1-nic"}, worker: []string{"set-all-gpu", "set-1-nic"},
		},
		"of the set, for a clique":              {set: sharing(setShares(cliques("router"), ofAll("gpu"))), router: []string{"set-all-gpu"}},
		"of the set, for a clique in the group": {set: sharing(setShares(cliques("worker"), ofAll("gpu"))), worker: []string{"set-all-gpu"}},
		"of the set, for another":               {set: sharing(setShares(cliques("leader"), ofAll("gpu")))},
		"of the set, for the group":             {set: sharing(setShares(groups, ofAll("gpu"))), worker: []string{"set-all-gpu"}},
		"of the group":                          {set: sharing(groupShares(nil, ofAll("gpu"), ofEach("nic"))), worker: []string{"set-1-decode-all-gpu", "set-1-decode-1-nic"}},
		"of the group, for a clique":            {set: sharing(groupShares(workers, ofEach("gpu"))), worker: []string{"set-1-decode-1-gpu"}},
		"of the group, for another":             {set: sharing(groupShares(&grovev1alpha1.PCSGResourceSharingFilter{ChildCliqueNames: []string{"leader"}}, ofEach("gpu")))},
		"of the clique":                         {set: sharing(cliqueShares(0, ofAll("gpu"), ofEach("nic"))), router: []string{"set-1-router-all-gpu", "set-1-router-1-nic"}},
		"of a member":                           {set: sharing(cliqueShares(2, ofAll("gpu"), ofEach("nic"))), worker: []string{"set-1-decode-1-worker-all-gpu", "set-1-decode-1-worker-1-nic"}},
		"from all levels": {
			set:    sharing(cliqueShares(2, ofEach("a")), groupShares(nil, ofEach("b")), setShares(nil, ofEach("c"))),
			router: []string{"set-1-c"}, worker: []string{"set-1-c", "set-1-decode-1-b", "set-1-decode-1-worker-1-a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			router, worker := &grovev1alpha1.PodClique{}, &grovev1alpha1.PodClique{}
			router.Name, router.Labels = "set-1-router", map[string]string{labels.ReplicaIndex: "1"}
			worker.Name = "set-1-decode-1-worker"
			worker.Labels = map[string]string{labels.ReplicaIndex: "1", labels.ScalingGroup: "set-1-decode", labels.ScalingGroupReplicaIndex: "1"}
			expect(t, "router", tc.router, ClaimsOf(tc.set, router).Of(1))
			expect(t, "worker", tc.worker, ClaimsOf(tc.set, worker).Of(1))
			var made []string
			for replica := range int32(2) {
				for _, claim := range ExpectedClaims(tc.set, replica, TemplateSizes, func(e ExpectedClique) int32 { return e.Template.Spec.Replicas }) {
					made = append(made, claim.Name)
				}
			}
			for _, claim := range append(tc.router, tc.worker...) {
				if !slices.Contains(made, claim) {
					t.Errorf("%s is used, and not made", claim)
				}
			}
		})
	}
}

func TestClaimTemplates(t *testing.T) {
	elsewhere := ofAll("nic")
	elsewhere.Namespace = "shared"
	pcs := sharing(ownTemplate("gpu"), setShares(nil, ofAll("gpu"), elsewhere), groupShares(nil, ofEach("fabric"), ofEach("gpu")), cliqueShares(0, ofAll("fabric")), cliqueShares(1, ofAll("nic")))
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	expect(t, "objects, each once", []types.NamespacedName{key("shared", "nic"), key("ns", "fabric"), key("ns", "nic")}, OtherTemplates(pcs))
	own, other := ClaimTemplate(pcs, &pcs.Spec.Template.ResourceSharing[0].ResourceSharingSpec)
	// One of the set's own is taken though an object has its name as well.
	expect(t, "own", true, own == &pcs.Spec.Template.ResourceClaimTemplates[0].TemplateSpec)
	expect(t, "and no object", key("", ""), other)
}

func TestMissingClaimsAreToldOf(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "gpu"}
	missing := ClaimSnapshot{MissingTemplates: map[types.NamespacedName]bool{key: true}}
	const message = "ResourceClaimTemplate ns/gpu does not exist: pods wait for the claims that are made from it"
	before := func(reason, message string) setOption {
		return func(pcs *grovev1alpha1.PodCliqueSet) {
			pcs.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeResourceClaimsMissing, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: at(-time.Hour)}}
		}
	}
	tests := map[string]struct {
		set    *grovev1alpha1.PodCliqueSet
		claims ClaimSnapshot
		want   string
		events []Event
	}{
		"nothing is missing": {set: sharing(setShares(nil, ofEach("gpu")))},
		"a template is missing": {
			set: sharing(setShares(nil, ofEach("gpu"))), claims: missing, want: grovev1alpha1.ReasonResourceClaimTemplateNotFound,
			events: []Event{{corev1.EventTypeWarning, grovev1alpha1.ReasonResourceClaimTemplateNotFound, message}},
		},
		"that is no news": {
			set: sharing(setShares(nil, ofEach("gpu")), before(grovev1alpha1.ReasonResourceClaimTemplateNotFound, message)), claims: missing, want: grovev1alpha1.ReasonResourceClaimTemplateNotFound,
		},
		"its claims exist": {
			set: sharing(setShares(nil, ofEach("gpu"))), claims: ClaimSnapshot{MissingTemplates: missing.MissingTemplates, Existing: map[string]bool{"set-0-gpu": true, "set-1-gpu": true}},
		},
		"one of its claims does not": {
			set: sharing(setShares(nil, ofEach("gpu"))), claims: ClaimSnapshot{MissingTemplates: missing.MissingTemplates, Existing: map[string]bool{"set-0-gpu": true}},
			want:   grovev1alpha1.ReasonResourceClaimTemplateNotFound,
			events: []Event{{corev1.EventTypeWarning, grovev1alpha1.ReasonResourceClaimTemplateNotFound, message}},
		},
		"the set has its own":     {set: sharing(ownTemplate("gpu"), setShares(nil, ofEach("gpu"))), claims: missing},
		"no replica wants it":     {set: sharing(setShares(nil, ofEach("gpu")), replicas(0)), claims: missing},
		"it has come":             {set: sharing(setShares(nil, ofEach("gpu")), before(grovev1alpha1.ReasonResourceClaimTemplateNotFound, message))},
		"the set has ended":       {set: sharing(setShares(nil, ofEach("gpu")), phase(grovev1alpha1.PodCliqueSetFailed)), claims: missing},
		"none are served":         {set: sharing(cliqueShares(0, ofEach("gpu"))), claims: ClaimSnapshot{AreUnserved: true}, want: grovev1alpha1.ReasonResourceClaimsNotServed, events: []Event{{corev1.EventTypeWarning, grovev1alpha1.ReasonResourceClaimsNotServed, "the cluster does not serve ResourceClaims of resource.k8s.io/v1: pods that share them are never scheduled"}}},
		"none are served, or due": {set: sharing(), claims: ClaimSnapshot{AreUnserved: true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, have{})
			s.Claims = tc.claims
			decision := DecideSet(s, now)
			got := ""
			if c := meta.FindStatusCondition(decision.Status.Conditions, grovev1alpha1.ConditionTypeResourceClaimsMissing); c != nil {
				expect(t, "status", metav1.ConditionTrue, c.Status)
				got = c.Reason
			}
			expect(t, "reason", tc.want, got)
			expect(t, "events", tc.events, decision.Events)
		})
	}
}

// What is written differs for each allocation, and is written once.
func TestAllocationsThatTheSchedulerMayHaveMissed(t *testing.T) {
	claim := func(seen string, allocated bool, pods ...types.UID) *resourcev1.ResourceClaim {
		out := &resourcev1.ResourceClaim{}
		if seen != "" {
			out.Annotations = map[string]string{labels.AllocationSeen: seen}
		}
		if allocated {
			out.Status.Allocation = &resourcev1.AllocationResult{}
		}
		for _, pod := range pods {
			out.Status.ReservedFor = append(out.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{UID: pod})
		}
		return out
	}
	goes := claim("", true, "a")
	goes.DeletionTimestamp = ptr.To(metav1.Now())
	tests := map[string]struct {
		claim *resourcev1.ResourceClaim
		want  string
	}{
		"not allocated":              {claim("", false), ""},
		"allocated for nobody":       {claim("", true), ""},
		"no longer allocated":        {claim("", false, "a"), ""},
		"allocated":                  {claim("", true, "a", "b"), "a"},
		"seen":                       {claim("a", true, "a", "b", "c"), ""},
		"allocated once more":        {claim("a", true, "d"), "d"},
		"allocated, and it is to go": {goes, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "to write", tc.want, UnseenAllocation(tc.claim)) })
	}
}
