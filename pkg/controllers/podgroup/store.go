package podgroup

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	schedulerac "github.com/copse-dev/copse/pkg/generated/applyconfiguration/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/desired"
)

// store is where PodGroups are: in our API, or for KAI's pods in KAI's, whose PodGroups have
// the same fields.
type store interface {
	// get returns nil when there is no such PodGroup.
	get(ctx context.Context, key types.NamespacedName) (*schedulerv1alpha1.PodGroup, error)
	// apply returns the PodGroup as it is then.
	apply(ctx context.Context, wanted *schedulerac.PodGroupApplyConfiguration) (*schedulerv1alpha1.PodGroup, error)
}

// storeFor is where a group is; nil when that is KAI's API and there is none. A PodGroup that
// somebody made by hand is in ours, whoever places its pods.
func (r *Reconciler) storeFor(ctx context.Context, s *state) (store, error) {
	own := &ownStore{client: r.Client}
	if s.backEnd != podgrouper.KAI {
		return own, nil
	}
	if !r.kai.isServed() {
		return nil, nil
	}
	group, err := own.get(ctx, s.key)
	if err != nil {
		return nil, err
	}
	// Groups of KAI's own grouper are nothing to us, and not worth a read.
	if (group != nil && !podgrouper.IsMade(group)) || !slices.ContainsFunc(s.members, pods.IsGrouped) {
		return own, nil
	}
	return &kaiStore{client: r.Writer, live: r.Live}, nil
}

type ownStore struct {
	client client.Client
}

func (s *ownStore) get(ctx context.Context, key types.NamespacedName) (*schedulerv1alpha1.PodGroup, error) {
	return getOwn(ctx, s.client, key)
}

func getOwn(ctx context.Context, reader client.Reader, key types.NamespacedName) (*schedulerv1alpha1.PodGroup, error) {
	group := &schedulerv1alpha1.PodGroup{}
	err := reader.Get(ctx, key, group)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read PodGroup %s: %w", key.Name, err)
	}
	return group, nil
}

func (s *ownStore) apply(ctx context.Context, wanted *schedulerac.PodGroupApplyConfiguration) (*schedulerv1alpha1.PodGroup, error) {
	if err := s.client.Apply(ctx, wanted, client.FieldOwner(desired.FieldManager), client.ForceOwnership); err != nil {
		return nil, err
	}
	// The cache has it: reads wait for own writes. One that is deleted meanwhile comes with
	// an event.
	return s.get(ctx, types.NamespacedName{Namespace: *wanted.Namespace, Name: *wanted.Name})
}
