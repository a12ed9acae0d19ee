package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/controllers/internal/live"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
)

// observeClaims reads the claims of a replica and the templates for them. A set that shares
// nothing has none, now and later.
func (r *Reconciler) observeClaims(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) error {
	if !r.ResourceClaims || !gang.SharesResources(pcs) {
		return nil
	}
	var claims resourcev1.ResourceClaimList
	if err := r.Client.List(ctx, &claims, index.OwnedByReplica(pcs.Namespace, pcs.UID, replica)...); err != nil {
		return fmt.Errorf("list ResourceClaims: %w", err)
	}
	for i := range claims.Items {
		have.claims[claims.Items[i].Name] = &claims.Items[i]
	}
	if err := r.observeSetWideClaims(ctx, pcs, replica, have); err != nil {
		return err
	}
	for _, key := range gang.OtherTemplates(pcs) {
		template := &resourcev1.ResourceClaimTemplate{}
		if err := r.Client.Get(ctx, key, template); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read ResourceClaimTemplate %s: %w", key, err)
		} else if err == nil {
			have.claimTemplates[key] = template
		}
	}
	return nil
}

// observeSetWideClaims reads the claims that all replicas share, for the first of them, whose
// they are.
func (r *Reconciler) observeSetWideClaims(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) error {
	if replica != 0 || len(pcs.Spec.Template.ResourceSharing) == 0 {
		return nil
	}
	var claims resourcev1.ResourceClaimList
	if err := r.Client.List(ctx, &claims, index.OwnedByNoReplica(pcs.Namespace, pcs.UID)...); err != nil {
		return fmt.Errorf("list ResourceClaims of all replicas: %w", err)
	}
	wanted := map[string]bool{}
	for _, claim := range gang.ExpectedClaims(pcs, replica, noCopies, noPods) {
		wanted[claim.Name] = claim.IsSetWide
	}
	for i := range claims.Items {
		// One whose label somebody took is not the first replica's to remove.
		if claim := &claims.Items[i]; wanted[claim.Name] {
			have.claims[claim.Name] = claim
		}
	}
	return nil
}

func noCopies(int32, *grovev1alpha1.PodCliqueScalingGroupConfig) int32 { return 0 }

func noPods(gang.ExpectedClique) int32 { return 0 }

// planClaims makes the claims of what there is, and removes those of what has been scaled in,
// once no pod uses them. What a claim asks for is never changed: the API does not allow it, and
// devices that pods use stay theirs.
func planClaims(p *plan, pcs *grovev1alpha1.PodCliqueSet, replica int32, have observed) {
	if !have.servesClaims {
		return
	}
	// Of a scaling group or clique that is not there one does not know what it has.
	isKnown := groupsExist(pcs, replica, have)
	expected := gang.ExpectedClaims(pcs, replica, func(_ int32, config *grovev1alpha1.PodCliqueScalingGroupConfig) int32 {
		return sizeOf(have.groups[desiredScalingGroup(pcs, replica, config).Name])
	}, func(expected gang.ExpectedClique) int32 {
		clique := have.cliques[expected.Name]
		if clique == nil {
			isKnown = false
			return 0
		}
		return clique.Spec.Replicas
	})
	wanted := make(map[string]bool, len(expected))
	for i := range expected {
		claim := &expected[i]
		wanted[claim.Name] = true
		owner, exists := ownerOfClaim(claim, have)
		template := claimTemplate(pcs, claim.Template, have)
		if !exists || template == nil {
			continue
		}
		want := desiredClaim(pcs, replica, claim, template, owner)
		if existing := have.claims[claim.Name]; existing == nil {
			p.create = append(p.create, want)
		} else if updated := withLabels(existing, want.Labels); updated != nil {
			p.update = append(p.update, updated)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have.claims)) {
		if claim := have.claims[name]; isKnown && !wanted[name] && len(claim.Status.ReservedFor) == 0 {
			p.removeOne(claim)
		}
	}
}

// ownerOfClaim is the clique or scaling group that asks for a claim, nil for the set itself. One
// that does not exist, or goes, has no claims made for it.
func ownerOfClaim(claim *gang.SharedClaim, have observed) (owner client.Object, exists bool) {
	switch {
	case claim.Clique != "":
		clique := have.cliques[claim.Clique]
		return clique, clique != nil && clique.DeletionTimestamp == nil
	case claim.Group != "":
		group := have.groups[claim.Group]
		return group, group != nil && group.DeletionTimestamp == nil
	}
	return nil, true
}

// claimTemplate is what a claim is made from, nil when that does not exist yet.
func claimTemplate(pcs *grovev1alpha1.PodCliqueSet, sharing *grovev1alpha1.ResourceSharingSpec, have observed) *resourcev1.ResourceClaimTemplateSpec {
	own, other := gang.ClaimTemplate(pcs, sharing)
	if template := have.claimTemplates[other]; own == nil && template != nil {
		return &template.Spec
	}
	return own
}

// desiredClaim is a claim that pods share. It goes with the clique or scaling group that asks for
// it, which controls it, and is owned by the set as well, by which it is found.
func desiredClaim(pcs *grovev1alpha1.PodCliqueSet, replica int32, claim *gang.SharedClaim, template *resourcev1.ResourceClaimTemplateSpec, owner client.Object) *resourcev1.ResourceClaim {
	own := labels.Managed(claim.Name, pcs.Name, labels.ComponentResourceClaim)
	if !claim.IsSetWide {
		own[labels.ReplicaIndex] = labels.Index(replica)
	}
	for key, value := range map[string]string{labels.ScalingGroup: claim.Group, labels.PodClique: claim.Clique} {
		if value != "" {
			own[key] = value
		}
	}
	for key, value := range map[string]int32{labels.ScalingGroupReplicaIndex: claim.Copy, labels.PodIndex: claim.Pod} {
		if value >= 0 {
			own[key] = labels.Index(value)
		}
	}
	all := maps.Clone(template.Labels)
	// One of ours could make the claim that of another replica, which would remove it.
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, labels.Domain) })
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, own)
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: claim.Name, Namespace: pcs.Namespace, Labels: all, Annotations: maps.Clone(template.Annotations),
			OwnerReferences: ownersOfClaim(pcs, owner),
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

func ownersOfClaim(pcs *grovev1alpha1.PodCliqueSet, owner client.Object) []metav1.OwnerReference {
	set := ownedBySet(pcs)
	kind := ""
	switch owner.(type) {
	case *grovev1alpha1.PodClique:
		kind = "PodClique"
	case *grovev1alpha1.PodCliqueScalingGroup:
		kind = "PodCliqueScalingGroup"
	default:
		return []metav1.OwnerReference{set}
	}
	set.Controller = nil
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, grovev1alpha1.SchemeGroupVersion.WithKind(kind)), set}
}

// seeAllocations has kube-scheduler see what it has allocated (gang.UnseenAllocation). The patch
// asks for no version of the claim: whatever it meets, a newer one is what it is for.
func (r *Reconciler) seeAllocations(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, have observed) error {
	if !r.NativeGangs || gang.SchedulerOf(pcs) != corev1.DefaultSchedulerName {
		return nil
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(have.claims)) {
		claim := have.claims[name]
		first := gang.UnseenAllocation(claim)
		if first == "" {
			continue
		}
		seen := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&seen.ObjectMeta, labels.AllocationSeen, first)
		if err := r.Client.Patch(ctx, seen, client.MergeFrom(claim)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("note that ResourceClaim %s is allocated: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// cliquesAgree says that the cliques whose claims the plan removes are as the cache shows them: a
// size from the past would take the claims of pods that are about to be scheduled (D11).
func (r *Reconciler) cliquesAgree(ctx context.Context, have observed, p plan) (bool, error) {
	shrunk := map[types.UID]bool{}
	for _, obj := range p.remove {
		if claim, ok := obj.(*resourcev1.ResourceClaim); ok {
			shrunk[ptr.Deref(metav1.GetControllerOfNoCopy(claim), metav1.OwnerReference{}).UID] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have.cliques)) {
		cached := have.cliques[name]
		if !shrunk[cached.UID] {
			continue
		}
		current, err := live.IsCurrent(ctx, r.Live, cached)
		if err != nil {
			return false, err
		}
		if !current {
			log.FromContext(ctx).V(1).Info("The cached clique is out of date", "clique", name)
			return false, nil
		}
	}
	return true, nil
}
