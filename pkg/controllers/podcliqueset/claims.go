package podcliqueset

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/gang"
)

// claims reads what may keep the claims of a set from being made. Which there are is looked at
// only when a template is missing.
func (r *Reconciler) claims(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet) (gang.ClaimSnapshot, error) {
	if !gang.SharesResources(pcs) {
		return gang.ClaimSnapshot{}, nil
	}
	if !r.ResourceClaims {
		return gang.ClaimSnapshot{AreUnserved: true}, nil
	}
	out := gang.ClaimSnapshot{MissingTemplates: map[types.NamespacedName]bool{}, Existing: map[string]bool{}}
	for _, key := range gang.OtherTemplates(pcs) {
		err := r.Client.Get(ctx, key, &resourcev1.ResourceClaimTemplate{})
		if client.IgnoreNotFound(err) != nil {
			return out, fmt.Errorf("read ResourceClaimTemplate %s: %w", key, err)
		}
		if apierrors.IsNotFound(err) {
			out.MissingTemplates[key] = true
		}
	}
	if len(out.MissingTemplates) == 0 {
		return out, nil
	}
	var claims resourcev1.ResourceClaimList
	if err := r.Client.List(ctx, &claims, index.OwnedBy(pcs.Namespace, pcs.UID)...); err != nil {
		return out, fmt.Errorf("list ResourceClaims: %w", err)
	}
	for i := range claims.Items {
		out.Existing[claims.Items[i].Name] = true
	}
	return out, nil
}

// setsOfTemplate are the sets that refer to a template.
func (r *Reconciler) setsOfTemplate(ctx context.Context, template *resourcev1.ResourceClaimTemplate) []reconcile.Request {
	var sets grovev1alpha1.PodCliqueSetList
	if err := r.Cache.List(ctx, &sets, index.SharingTemplate(client.ObjectKeyFromObject(template))...); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(sets.Items))
	for i := range sets.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
	}
	return requests
}

// cameOrWent lets through templates that come and go: what one says does not change.
func cameOrWent() predicate.TypedPredicate[*resourcev1.ResourceClaimTemplate] {
	return predicate.TypedFuncs[*resourcev1.ResourceClaimTemplate]{
		UpdateFunc: func(event.TypedUpdateEvent[*resourcev1.ResourceClaimTemplate]) bool { return false },
	}
}
