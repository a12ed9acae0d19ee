package podclique

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/internal/index"
	"github.com/copse-dev/copse/pkg/controllers/internal/live"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
)

// replicaOf are the cliques and the scaling groups of a clique's replica, as cached.
func (r *Reconciler) replicaOf(ctx context.Context, o *observation) ([]grovev1alpha1.PodClique, map[string]*grovev1alpha1.PodCliqueScalingGroup, error) {
	clique := o.snapshot.Clique
	replica, _ := labels.ParseIndex(clique.Labels[labels.ReplicaIndex])
	var (
		cliques grovev1alpha1.PodCliqueList
		groups  grovev1alpha1.PodCliqueScalingGroupList
	)
	if err := r.Client.List(ctx, &cliques, index.OwnedByReplica(clique.Namespace, o.set.UID, replica)...); err != nil {
		return nil, nil, fmt.Errorf("list the cliques of the replica: %w", err)
	}
	if err := r.Client.List(ctx, &groups, index.OwnedByReplica(clique.Namespace, o.set.UID, replica)...); err != nil {
		return nil, nil, fmt.Errorf("list the scaling groups of the replica: %w", err)
	}
	byName := make(map[string]*grovev1alpha1.PodCliqueScalingGroup, len(groups.Items))
	for i := range groups.Items {
		byName[groups.Items[i].Name] = &groups.Items[i]
	}
	return cliques.Items, byName, nil
}

// othersDrained says that no old pod is left in the cliques that restart together with
// this one, as their statuses tell (D19).
func (r *Reconciler) othersDrained(ctx context.Context, o *observation) (bool, error) {
	if o.set == nil || !gang.IsBeginning(o.snapshot.Clique) {
		return true, nil
	}
	siblings, groups, err := r.replicaOf(ctx, o)
	if err != nil {
		return false, err
	}
	return gang.Drained(o.snapshot.Clique, siblings, groups, attemptOf(o.set, o.snapshot.Clique)), nil
}

// isInRecordedAttempt says that the clique has been raised to the attempt that is recorded
// for it. The set's was looked at live before; that of a copy of a scaling group is looked
// at here. A pod of an attempt that is over would only have to go again (D11, D20).
func (r *Reconciler) isInRecordedAttempt(ctx context.Context, o *observation) (bool, error) {
	clique := o.snapshot.Clique
	if o.set == nil {
		return true, nil
	}
	groups := map[string]*grovev1alpha1.PodCliqueScalingGroup{}
	if name := clique.Labels[labels.ScalingGroup]; name != "" {
		group := &grovev1alpha1.PodCliqueScalingGroup{}
		if err := r.Live.Get(ctx, client.ObjectKey{Namespace: clique.Namespace, Name: name}, group); err != nil {
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return false, fmt.Errorf("read scaling group %s: %w", name, err)
		}
		groups[name] = group
	}
	return clique.Spec.Attempt >= gang.WantedAttempt(clique, groups, attemptOf(o.set, clique)), nil
}

// mayBeginAttempt lists the pods of the replica live before the first pod of an attempt
// after a restart is made: one of an earlier attempt may be there that no cache shows (D11).
func (r *Reconciler) mayBeginAttempt(ctx context.Context, o *observation) (bool, error) {
	clique := o.snapshot.Clique
	if !gang.IsBeginning(clique) || clique.Status.Replicas > 0 {
		return true, nil
	}
	siblings, groups, err := r.replicaOf(ctx, o)
	if err != nil {
		return false, err
	}
	attempt := attemptOf(o.set, clique)
	together := make(map[types.UID]*grovev1alpha1.PodClique, len(siblings))
	for i := range siblings {
		if sibling := &siblings[i]; gang.RestartTogether(clique, sibling, groups, attempt) {
			together[sibling.UID] = sibling
		}
	}
	pods, err := live.ReplicaPods(ctx, r.Live, o.set, clique.Labels[labels.ReplicaIndex])
	if err != nil {
		return false, err
	}
	for i := range pods {
		owner := metav1.GetControllerOfNoCopy(&pods[i])
		if owner == nil {
			continue
		}
		podAttempt, _ := labels.ParseIndex(pods[i].Labels[labels.RestartAttempt])
		if sibling, ours := together[owner.UID]; ours && podAttempt < gang.WantedAttempt(sibling, groups, attempt) {
			if gang.IsStray(sibling, &pods[i]) {
				// No cache need ever show it, and no count tells when it is gone.
				return false, r.deleteStray(ctx, clique, &pods[i])
			}
			log.FromContext(ctx).V(1).Info("A pod of an earlier attempt is not in the cache yet", "pod", pods[i].Name)
			return false, nil
		}
	}
	return true, nil
}
