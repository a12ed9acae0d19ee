package app

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	schedulingclient "k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"
	"k8s.io/klog/v2"

	"github.com/copse-dev/copse/pkg/scheduling/kai"
)

// nativeTopology says whether the groups of the cluster's own scheduler have a topology.
func (s *starter) nativeTopology(ctx context.Context) bool {
	client, err := schedulingclient.NewForConfig(s.config)
	if err != nil {
		klog.ErrorS(err, "Cannot ask whether the groups of the cluster have a topology")
		return false
	}
	return keepsTopology(ctx, client.PodGroups(cmp.Or(s.options.LeaderElectionNamespace, corev1.NamespaceDefault)))
}

// keepsTopology tries it out: an API server whose feature gate TopologyAwareWorkloadScheduling
// is off drops the field and says nothing. One that does not answer is waited for.
func keepsTopology(ctx context.Context, groups schedulingclient.PodGroupInterface) bool {
	keeps := false
	_ = wait.PollUntilContextCancel(ctx, apiPollInterval, true, func(ctx context.Context) (bool, error) {
		made, err := groups.Create(ctx, &schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "copse-preflight-"},
			Spec: schedulingv1beta1.PodGroupSpec{
				SchedulingPolicy:      schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1}},
				SchedulingConstraints: &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: corev1.LabelTopologyZone}}},
			},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			keeps = made.Spec.SchedulingConstraints != nil && len(made.Spec.SchedulingConstraints.Topology) == 1
			return true, nil
		// It has answered, if not with what was asked.
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			klog.ErrorS(err, "Cannot find out whether the groups of the cluster have a topology: gangs are placed without")
			return true, nil
		}
		klog.InfoS("Waiting for the cluster to say whether its groups have a topology", "err", err)
		return false, nil
	})
	if !keeps && ctx.Err() == nil {
		klog.InfoS("The cluster places gangs without regard to topology constraints: the feature gate TopologyAwareWorkloadScheduling of kube-apiserver and kube-scheduler is needed. It is looked for when this program begins to lead, and not again")
	}
	return keeps
}

// servedKAITopologies says whether the cluster serves KAI's topologies.
func servedKAITopologies(ctx context.Context, client discovery.DiscoveryInterface) bool {
	if serves(ctx, client, kai.TopologyGroupVersion, kai.TopologyResource) {
		return true
	}
	if ctx.Err() == nil {
		klog.InfoS("KAI has no topologies in this cluster: its gangs are placed without regard to topology constraints. They are looked for when this program begins to lead, and not again",
			"groupVersion", kai.TopologyGroupVersion)
	}
	return false
}
