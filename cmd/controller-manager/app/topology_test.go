package app

import (
	"context"
	"errors"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingclient "k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"
)

// podGroups answers a creation.
type podGroups struct {
	schedulingclient.PodGroupInterface
	create func(*schedulingv1beta1.PodGroup) (*schedulingv1beta1.PodGroup, error)
	asked  int
	dryRun []string
}

func (p *podGroups) Create(_ context.Context, group *schedulingv1beta1.PodGroup, options metav1.CreateOptions) (*schedulingv1beta1.PodGroup, error) {
	p.asked++
	p.dryRun = options.DryRun
	return p.create(group)
}

func TestWhetherGroupsHaveATopologyIsTriedOut(t *testing.T) {
	resource := schedulingv1beta1.Resource("podgroups")
	tests := map[string]struct {
		create func(*schedulingv1beta1.PodGroup) (*schedulingv1beta1.PodGroup, error)
		want   bool
	}{
		"they keep it": {func(group *schedulingv1beta1.PodGroup) (*schedulingv1beta1.PodGroup, error) { return group, nil }, true},
		"it is dropped": {func(group *schedulingv1beta1.PodGroup) (*schedulingv1beta1.PodGroup, error) {
			group.Spec.SchedulingConstraints = nil
			return group, nil
		}, false},
		"it may not be asked": {func(*schedulingv1beta1.PodGroup) (*schedulingv1beta1.PodGroup, error) {
			return nil, apierrors.NewForbidden(resource, "x", errors.New("no"))
		}, false},
		"the namespace is not there": {func(*schedulingv1beta1.PodGroup) (*schedulingv1beta1.PodGroup, error) {
			return nil, apierrors.NewNotFound(resource, "x")
		}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			groups := &podGroups{create: tc.create}
			expect(t, "they have", tc.want, keepsTopology(t.Context(), groups))
			expect(t, "asked", 1, groups.asked)
			expect(t, "nothing is made", []string{metav1.DryRunAll}, groups.dryRun)
		})
	}
	t.Run("a server that does not answer is asked again", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		groups := &podGroups{create: func(*schedulingv1beta1.PodGroup) (*schedulingv1beta1.PodGroup, error) {
			cancel()
			return nil, errors.New("no answer")
		}}
		expect(t, "they have", false, keepsTopology(ctx, groups))
		expect(t, "the wait ended with its context", true, ctx.Err() != nil)
	})
}

func TestKAITopologiesAreLookedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		served map[string][]string
		want   bool
	}{
		"they are served":      {map[string][]string{"kai.scheduler/v1alpha1": {"topologies"}}, true},
		"the group has others": {map[string][]string{"kai.scheduler/v1alpha1": {"bindrequests"}}, false},
		"KAI's groups are not": {map[string][]string{"scheduling.run.ai/v2alpha2": {"podgroups"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, "served", tc.want, servedKAITopologies(t.Context(), &fakeDiscovery{served: tc.served}))
		})
	}
}
