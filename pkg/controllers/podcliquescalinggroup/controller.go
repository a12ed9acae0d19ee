// Package podcliquescalinggroup writes the status of PodCliqueScalingGroups and takes
// their members along when one is deleted. The members are made by the replica controller.
package podcliquescalinggroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/confirm"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/controllers/internal/live"
	"github.com/copse-dev/copse/pkg/controllers/internal/pace"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/metrics"
	"github.com/copse-dev/copse/pkg/naming"
)

// Reconciler writes the status of scaling groups.
type Reconciler struct {
	Client client.Client
	// Cache is the client's cache without its waiting for own writes: for event handlers,
	// which must not block.
	Cache    client.Reader
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.Clock
	Metrics  *metrics.Metrics
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
	pcs, err := r.setOf(ctx, group)
	if err != nil || pcs == nil {
		return reconcile.Result{}, err
	}
	now := r.Clock.Now()
	snapshot := snapshotOf(pcs, group, members.Items)
	if snapshot.Gate, err = r.gateOf(ctx, pcs, group); err != nil {
		return reconcile.Result{}, err
	}
	decision := gang.DecideGroup(snapshot, now)
	if !decision.Changed {
		return reconcile.Result{RequeueAfter: pace.Until(decision.Next, now)}, nil
	}
	if decision.Recycled {
		if ok, err := r.confirm(ctx, pcs, group, decision, now); err != nil || !ok {
			return reconcile.Result{}, err
		}
	}
	updated := group.DeepCopy()
	updated.Status = decision.Status
	if err := r.Client.Status().Update(ctx, updated); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write the status: %w", err)
	}
	for _, e := range decision.Events {
		r.Metrics.Decision(e.Reason)
		r.Recorder.Eventf(pcs, group, e.Type, e.Reason, e.Reason, "%s", e.Message)
	}
	return reconcile.Result{RequeueAfter: pace.Until(decision.Next, now)}, nil
}

// confirm looks past the cache before copies are recycled: at the set, which may have
// begun another attempt, and at the breaches.
func (r *Reconciler) confirm(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, group *grovev1alpha1.PodCliqueScalingGroup, decision gang.GroupDecision, now time.Time) (bool, error) {
	current, err := live.Set(ctx, r.Live, client.ObjectKeyFromObject(pcs), pcs.UID)
	if err != nil || current == nil {
		return false, err
	}
	replica, _ := labels.ParseIndex(group.Labels[labels.ReplicaIndex])
	if gang.ParentOf(current) != gang.ParentActive || gang.ReplicaAttempt(current, replica) != gang.ReplicaAttempt(pcs, replica) {
		return false, nil
	}
	return confirm.Breaches(ctx, r.Live, decision.Confirm, now)
}

func snapshotOf(pcs *grovev1alpha1.PodCliqueSet, group *grovev1alpha1.PodCliqueScalingGroup, members []grovev1alpha1.PodClique) gang.GroupSnapshot {
	replica, _ := labels.ParseIndex(group.Labels[labels.ReplicaIndex])
	return gang.GroupSnapshot{
		Group: group, Cliques: members,
		SetAttempt:       gang.ReplicaAttempt(pcs, replica),
		Parent:           gang.ParentOf(pcs),
		TerminationDelay: gang.GroupTerminationDelay(pcs, group),
		Turn:             gang.TurnOfGroup(pcs, replica, members),
	}
}

// gateOf is the gate of the group's replica, nil when there is none.
func (r *Reconciler) gateOf(ctx context.Context, pcs *grovev1alpha1.PodCliqueSet, group *grovev1alpha1.PodCliqueScalingGroup) (*grovev1alpha1.StartGate, error) {
	replica, _ := labels.ParseIndex(group.Labels[labels.ReplicaIndex])
	gate := &grovev1alpha1.StartGate{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: group.Namespace, Name: naming.Replica(pcs.Name, replica)}, gate)
	if err != nil || !metav1.IsControlledBy(gate, pcs) {
		return nil, client.IgnoreNotFound(err)
	}
	return gate, nil
}

// setOf is the set that a group belongs to, nil when there is none any more.
func (r *Reconciler) setOf(ctx context.Context, group *grovev1alpha1.PodCliqueScalingGroup) (*grovev1alpha1.PodCliqueSet, error) {
	ref := metav1.GetControllerOfNoCopy(group)
	if ref == nil || ref.Kind != "PodCliqueSet" || ref.APIVersion != grovev1alpha1.SchemeGroupVersion.String() {
		return nil, nil
	}
	pcs := &grovev1alpha1.PodCliqueSet{}
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: group.Namespace, Name: ref.Name}, pcs); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if pcs.UID != ref.UID {
		return nil, nil
	}
	return pcs, nil
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
