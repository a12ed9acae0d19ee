package gang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// Which ResourceClaims the pods of a set share (docs/resource-sharing.md). A set, a scaling
// group and a clique ask for them, each for all its replicas or for each by itself.

// SharedClaim is a ResourceClaim that a replica of a set wants.
type SharedClaim struct {
	// Name of the claim.
	Name string
	// Template says what it is made from.
	Template *grovev1alpha1.ResourceSharingSpec
	// IsSetWide says that the pods of all replicas of the set share it.
	IsSetWide bool
	// Group is the PodCliqueScalingGroup that asks for it, or that the PodClique which does is
	// in, and Clique the PodClique; empty when there is none.
	Group, Clique string
	// Copy and Pod are the indexes of the copy and of the pod that it is for, -1 for all.
	Copy, Pod int32
}

// SharesResources says that a set asks for ResourceClaims. It does so for ever, or never.
func SharesResources(pcs *grovev1alpha1.PodCliqueSet) bool {
	template := &pcs.Spec.Template
	return len(template.ResourceSharing) > 0 ||
		slices.ContainsFunc(template.Cliques, func(c grovev1alpha1.PodCliqueTemplateSpec) bool { return len(c.ResourceSharing) > 0 }) ||
		slices.ContainsFunc(template.PodCliqueScalingGroups, func(g grovev1alpha1.PodCliqueScalingGroupConfig) bool { return len(g.ResourceSharing) > 0 })
}

// ClaimTemplate is what a claim is made from: one of the set's own templates, or else the
// ResourceClaimTemplate with a name.
func ClaimTemplate(pcs *grovev1alpha1.PodCliqueSet, sharing *grovev1alpha1.ResourceSharingSpec) (own *resourcev1.ResourceClaimTemplateSpec, other types.NamespacedName) {
	for i := range pcs.Spec.Template.ResourceClaimTemplates {
		if template := &pcs.Spec.Template.ResourceClaimTemplates[i]; template.Name == sharing.Name {
			return &template.TemplateSpec, types.NamespacedName{}
		}
	}
	return nil, types.NamespacedName{Namespace: cmp.Or(sharing.Namespace, pcs.Namespace), Name: sharing.Name}
}

// OtherTemplates are the ResourceClaimTemplates that a set refers to, each once.
func OtherTemplates(pcs *grovev1alpha1.PodCliqueSet) []types.NamespacedName {
	var out []types.NamespacedName
	add := func(sharing *grovev1alpha1.ResourceSharingSpec) {
		if own, other := ClaimTemplate(pcs, sharing); own == nil && !slices.Contains(out, other) {
			out = append(out, other)
		}
	}
	template := &pcs.Spec.Template
	for i := range template.ResourceSharing {
		add(&template.ResourceSharing[i].ResourceSharingSpec)
	}
	for i := range template.PodCliqueScalingGroups {
		for j := range template.PodCliqueScalingGroups[i].ResourceSharing {
			add(&template.PodCliqueScalingGroups[i].ResourceSharing[j].ResourceSharingSpec)
		}
	}
	for i := range template.Cliques {
		for j := range template.Cliques[i].ResourceSharing {
			add(&template.Cliques[i].ResourceSharing[j])
		}
	}
	return out
}

// ExpectedClaims are the claims of one replica of a set; those of the whole set are its first
// replica's. cliqueSize is how many pods a PodClique has.
func ExpectedClaims(pcs *grovev1alpha1.PodCliqueSet, replica int32, sizes GroupSizes, cliqueSize func(ExpectedClique) int32) []SharedClaim {
	if !SharesResources(pcs) {
		return nil
	}
	var out []SharedClaim
	template := &pcs.Spec.Template
	for i := range template.ResourceSharing {
		sharing := &template.ResourceSharing[i].ResourceSharingSpec
		if !isPerReplica(sharing) && replica != 0 {
			continue
		}
		name := claimName(pcs.Name, replica, sharing)
		out = append(out, SharedClaim{Name: name, Template: sharing, IsSetWide: !isPerReplica(sharing), Copy: -1, Pod: -1})
	}
	for i := range template.PodCliqueScalingGroups {
		group := &template.PodCliqueScalingGroups[i]
		owner := naming.ScalingGroup(pcs.Name, replica, group.Name)
		for j := range group.ResourceSharing {
			sharing := &group.ResourceSharing[j].ResourceSharingSpec
			for _, index := range replicasOf(sharing, func() int32 { return sizes(replica, group) }) {
				out = append(out, SharedClaim{Name: claimName(owner, index, sharing), Template: sharing, Group: owner, Copy: index, Pod: -1})
			}
		}
	}
	for _, expected := range ExpectedCliques(pcs, replica, sizes) {
		for j := range expected.Template.ResourceSharing {
			sharing := &expected.Template.ResourceSharing[j]
			for _, index := range replicasOf(sharing, func() int32 { return cliqueSize(expected) }) {
				claim := SharedClaim{Name: claimName(expected.Name, index, sharing), Template: sharing, Group: expected.GroupName, Clique: expected.Name, Copy: -1, Pod: index}
				if expected.Group != nil {
					claim.Copy = expected.Copy
				}
				out = append(out, claim)
			}
		}
	}
	return out
}

func isPerReplica(sharing *grovev1alpha1.ResourceSharingSpec) bool {
	return sharing.Scope == grovev1alpha1.ResourceSharingScopePerReplica
}

func claimName(owner string, index int32, sharing *grovev1alpha1.ResourceSharingSpec) string {
	if isPerReplica(sharing) {
		return naming.ReplicaClaim(owner, index, sharing.Name)
	}
	return naming.SharedClaim(owner, sharing.Name)
}

// replicasOf are the indexes that have a claim each, -1 alone for one that all share.
func replicasOf(sharing *grovev1alpha1.ResourceSharingSpec, size func() int32) []int32 {
	if !isPerReplica(sharing) {
		return []int32{-1}
	}
	indexes := make([]int32, 0, max(size(), 0))
	for index := range size() {
		indexes = append(indexes, index)
	}
	return indexes
}

// PodClaims are the claims that the pods of a PodClique use.
type PodClaims struct {
	// Clique is the name of the PodClique.
	Clique string
	// Shared are the claims that come from above it, and Own what it asks for itself.
	Shared []string
	Own    []grovev1alpha1.ResourceSharingSpec
}

// Of are the names of the claims that the pod of an index uses: the set's first, then its
// scaling group's, then its PodClique's.
func (c PodClaims) Of(index int32) []string {
	names := slices.Clone(c.Shared)
	for i := range c.Own {
		names = append(names, claimName(c.Clique, index, &c.Own[i]))
	}
	return names
}

// ClaimsOf are the claims that the pods of a PodClique use.
func ClaimsOf(pcs *grovev1alpha1.PodCliqueSet, clique *grovev1alpha1.PodClique) PodClaims {
	template := TemplateOf(pcs, clique)
	if template == nil || !SharesResources(pcs) {
		return PodClaims{}
	}
	replica, _ := labels.ParseIndex(clique.Labels[labels.ReplicaIndex])
	copyIndex, _ := labels.ParseIndex(clique.Labels[labels.ScalingGroupReplicaIndex])
	group := groupOf(pcs, template.Name)
	out := PodClaims{Clique: clique.Name, Own: template.ResourceSharing}
	for i := range pcs.Spec.Template.ResourceSharing {
		if sharing := &pcs.Spec.Template.ResourceSharing[i]; takesPart(sharing.Filter, template, group) {
			out.Shared = append(out.Shared, claimName(pcs.Name, replica, &sharing.ResourceSharingSpec))
		}
	}
	if group != nil {
		for i := range group.ResourceSharing {
			sharing := &group.ResourceSharing[i]
			if sharing.Filter == nil || slices.Contains(sharing.Filter.ChildCliqueNames, template.Name) {
				out.Shared = append(out.Shared, claimName(naming.ScalingGroup(pcs.Name, replica, group.Name), copyIndex, &sharing.ResourceSharingSpec))
			}
		}
	}
	return out
}

// takesPart says that a clique, by itself or as one of its scaling group, shares what its set
// shares.
func takesPart(filter *grovev1alpha1.PCSResourceSharingFilter, clique *grovev1alpha1.PodCliqueTemplateSpec, group *grovev1alpha1.PodCliqueScalingGroupConfig) bool {
	return filter == nil || slices.Contains(filter.ChildCliqueNames, clique.Name) ||
		(group != nil && slices.Contains(filter.ChildScalingGroupNames, group.Name))
}

// UnseenAllocation is what to write as labels.AllocationSeen on a claim, empty when there is
// nothing to write.
//
// kube-scheduler may lose the allocation of a claim that the pods of one gang share: what it has
// written itself is dropped from its cache when the next pod of the gang runs into a conflict, and
// the event that it would learn of it by has passed (kubernetes/kubernetes#140053). From then on it
// allocates in vain. Any newer version of the claim tells it. Each allocation is for other pods
// first, so that each is written once.
func UnseenAllocation(claim *resourcev1.ResourceClaim) string {
	if claim.DeletionTimestamp != nil || claim.Status.Allocation == nil || len(claim.Status.ReservedFor) == 0 {
		return ""
	}
	first := string(claim.Status.ReservedFor[0].UID)
	if claim.Annotations[labels.AllocationSeen] == first {
		return ""
	}
	return first
}

// ClaimSnapshot is what is known of the claims of a set that shares resources.
type ClaimSnapshot struct {
	// AreUnserved says that the cluster does not know ResourceClaims.
	AreUnserved bool
	// MissingTemplates are the ResourceClaimTemplates that the set refers to and that do not
	// exist. Existing are the claims of the set, looked at when a template is missing.
	MissingTemplates map[types.NamespacedName]bool
	Existing         map[string]bool
}

// setMissingClaims tells of claims that cannot be made.
func setMissingClaims(s SetSnapshot, status *grovev1alpha1.PodCliqueSetStatus, now time.Time) []Event {
	const condition = grovev1alpha1.ConditionTypeResourceClaimsMissing
	reason, message := whyClaimsAreMissing(s)
	if reason == "" || isFinished(status) {
		meta.RemoveStatusCondition(&status.Conditions, condition)
		return nil
	}
	before := meta.FindStatusCondition(s.Set.Status.Conditions, condition)
	setCondition(&status.Conditions, s.Set.Generation, now, condition, metav1.ConditionTrue, reason, message)
	if before != nil && before.Reason == reason && before.Message == message {
		return nil
	}
	return []Event{{corev1.EventTypeWarning, reason, message}}
}

func whyClaimsAreMissing(s SetSnapshot) (reason, message string) {
	switch {
	case !SharesResources(s.Set):
		return "", ""
	case s.Claims.AreUnserved:
		return grovev1alpha1.ReasonResourceClaimsNotServed, "the cluster does not serve ResourceClaims of resource.k8s.io/v1: pods that share them are never scheduled"
	}
	without := map[string]bool{}
	for replica := range s.Set.Spec.Replicas {
		if len(s.Claims.MissingTemplates) == 0 {
			break
		}
		for _, claim := range ExpectedClaims(s.Set, replica, s.sizes, s.cliqueSize) {
			if own, other := ClaimTemplate(s.Set, claim.Template); own == nil && s.Claims.MissingTemplates[other] && !s.Claims.Existing[claim.Name] {
				without[other.String()] = true
			}
		}
	}
	if len(without) == 0 {
		return "", ""
	}
	return grovev1alpha1.ReasonResourceClaimTemplateNotFound,
		fmt.Sprintf("ResourceClaimTemplate %s does not exist: pods wait for the claims that are made from it", firstOf(slices.Sorted(maps.Keys(without))))
}

// cliqueSize is how many pods a clique has, or is to have.
func (s SetSnapshot) cliqueSize(expected ExpectedClique) int32 {
	if clique := s.Cliques[expected.Name]; clique != nil {
		return clique.Spec.Replicas
	}
	return expected.Template.Spec.Replicas
}
