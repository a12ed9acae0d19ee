package storage

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	internalrest "github.com/copse-dev/copse/pkg/registry/internal/rest"
)

// scalable says that a scaling group scales by copies. sets is where its set is found.
func scalable(sets rest.Getter) internalrest.Scalable[*grove.PodCliqueScalingGroup] {
	return internalrest.Scalable[*grove.PodCliqueScalingGroup]{
		GroupVersion: grovev1alpha1.SchemeGroupVersion,
		Get: func(group *grove.PodCliqueScalingGroup) (int32, int32, string) {
			return group.Spec.Replicas, group.Status.Replicas, labels.FirstPodsOfScalingGroup(group.Name)
		},
		Set: func(group *grove.PodCliqueScalingGroup, replicas int32) { group.Spec.Replicas = replicas },
		Bounds: func(ctx context.Context, group *grove.PodCliqueScalingGroup) (internalrest.Bounds, error) {
			return bounds(ctx, group, sets)
		},
	}
}

// bounds keeps a group at its minimum or more, and within what its autoscaler may do.
// Grove's group has no field for the latter: it is in the set's template.
func bounds(ctx context.Context, group *grove.PodCliqueScalingGroup, sets rest.Getter) (internalrest.Bounds, error) {
	if group.Spec.WorkloadType == grove.WorkloadTypeTraining {
		return internalrest.FixedInTraining(), nil
	}
	b := internalrest.Bounds{
		Min: ptr.Deref(group.Spec.MinAvailable, 0), MinOf: "spec.minAvailable",
		Max: validation.MaxPodsPerSet, MaxOf: "the most pods of a set",
	}
	pcs, err := setOf(ctx, group, sets)
	if err != nil || pcs == nil {
		return b, err
	}
	replica, _ := labels.ParseIndex(group.Labels[labels.ReplicaIndex])
	for i := range pcs.Spec.Template.PodCliqueScalingGroups {
		config := &pcs.Spec.Template.PodCliqueScalingGroups[i]
		if naming.ScalingGroup(pcs.Name, replica, config.Name) == group.Name {
			limit(&b, pcs, replica, config)
		}
	}
	return b, nil
}

// limit lowers the bounds to what the template of a group allows: what its autoscaler may
// do, or as many copies as their pods allow, and no host name that is too long.
func limit(b *internalrest.Bounds, pcs *grove.PodCliqueSet, replica int32, config *grove.PodCliqueScalingGroupConfig) {
	var pods int64
	var members []*grove.PodCliqueTemplateSpec
	for i := range pcs.Spec.Template.Cliques {
		if clique := &pcs.Spec.Template.Cliques[i]; slices.Contains(config.CliqueNames, clique.Name) {
			members = append(members, clique)
			pods += int64(clique.Spec.Replicas)
		}
	}
	switch {
	case config.ScaleConfig != nil:
		b.Max, b.MaxOf = config.ScaleConfig.MaxReplicas, fmt.Sprintf("scaleConfig.maxReplicas of %s in PodCliqueSet %s", config.Name, pcs.Name)
	case pods > 1:
		b.Max, b.MaxOf = int32(validation.MaxPodsPerSet/pods), fmt.Sprintf("%d pods in each copy, of at most %d in a set", pods, validation.MaxPodsPerSet)
	}
	for _, clique := range members {
		b.LimitByHostname(func(index int32) string {
			return naming.Hostname(naming.MemberClique(pcs.Name, replica, config.Name, index, clique.Name), max(clique.Spec.Replicas-1, 0))
		})
	}
}

// setOf returns the set that controls a group, or nil when there is none.
func setOf(ctx context.Context, group *grove.PodCliqueScalingGroup, sets rest.Getter) (*grove.PodCliqueSet, error) {
	owner := metav1.GetControllerOf(group)
	if owner == nil {
		return nil, nil
	}
	obj, err := sets.Get(ctx, owner.Name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pcs, ok := obj.(*grove.PodCliqueSet)
	if !ok || pcs.UID != owner.UID {
		return nil, nil
	}
	return pcs, nil
}
