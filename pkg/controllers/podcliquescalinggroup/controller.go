// Package podcliquescalinggroup writes the status of PodCliqueScalingGroups and takes
// their members along when one is deleted. The members are made by the replica controller.
package podcliquescalinggroup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
)

// Reconciler writes the status of scaling groups.
type Reconciler struct {
	Client client.Client
	Live   client.Reader
	Clock  clock.Clock
}

// Reconcile writes the status of one scaling group, or lets a deleted one go.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	group := &grovev1alpha1.PodCliqueScalingGroup{}
	if err := r.Client.Get(ctx, req.NamespacedName, group); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var members grovev1alpha1.PodCliqueList
	if err := r.Client.List(ctx, &members, index.OwnedBy(group.Namespace, group.UID)...); err != nil {
		return reconcile.Result{}, fmt.Errorf("list members: %w", err)
	}
	if group.DeletionTimestamp != nil {
		return reconcile.Result{}, r.finalize(ctx, group, members.Items)
	}
	status, changed := gang.DecideGroup(gang.GroupSnapshot{Group: group, Cliques: members.Items}, r.Clock.Now())
	if !changed {
		return reconcile.Result{}, nil
	}
	updated := group.DeepCopy()
	updated.Status = status
	if err := r.Client.Status().Update(ctx, updated); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write the status: %w", err)
	}
	return reconcile.Result{}, nil
}

// finalize deletes the members of a deleted group, unless they are to be orphaned, and
// lets the group go once a live list shows none.
func (r *Reconciler) finalize(ctx context.Context, group *grovev1alpha1.PodCliqueScalingGroup, members []grovev1alpha1.PodClique) error {
	if !controllerutil.ContainsFinalizer(group, labels.PodCliqueScalingGroupFinalizer) {
		return nil
	}
	if !slices.Contains(group.Finalizers, metav1.FinalizerOrphanDependents) {
		if err := r.deleteMembers(ctx, members); err != nil || len(members) > 0 {
			return err
		}
		var current grovev1alpha1.PodCliqueList
		if err := r.Live.List(ctx, &current, client.InNamespace(group.Namespace), client.MatchingLabels{labels.ScalingGroup: group.Name}); err != nil {
			return fmt.Errorf("list members live: %w", err)
		}
		for i := range current.Items {
			if metav1.IsControlledBy(&current.Items[i], group) {
				return fmt.Errorf("member %s of the deleted group is not in the cache yet", current.Items[i].Name)
			}
		}
	}
	patch := client.MergeFromWithOptions(group.DeepCopy(), client.MergeFromWithOptimisticLock{})
	controllerutil.RemoveFinalizer(group, labels.PodCliqueScalingGroupFinalizer)
	if err := r.Client.Patch(ctx, group, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}

func (r *Reconciler) deleteMembers(ctx context.Context, members []grovev1alpha1.PodClique) error {
	var errs []error
	for i := range members {
		member := &members[i]
		if member.DeletionTimestamp != nil {
			continue
		}
		if err := r.Client.Delete(ctx, member, client.Preconditions{UID: &member.UID}); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete member %s: %w", member.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(mgr manager.Manager, options controller.Options) error {
	cache := mgr.GetCache()
	return builder.ControllerManagedBy(mgr).
		Named("podcliquescalinggroup").
		WithOptions(options).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodCliqueScalingGroup{},
			&handler.TypedEnqueueRequestForObject[*grovev1alpha1.PodCliqueScalingGroup]{})).
		WatchesRawSource(source.Kind(cache, &grovev1alpha1.PodClique{},
			handler.TypedEnqueueRequestsFromMapFunc(groupOfClique))).
		Complete(r)
}

func groupOfClique(_ context.Context, clique *grovev1alpha1.PodClique) []reconcile.Request {
	ref := metav1.GetControllerOfNoCopy(clique)
	if ref == nil || ref.Kind != "PodCliqueScalingGroup" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: clique.Namespace, Name: ref.Name}}}
}
