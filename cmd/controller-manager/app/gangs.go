package app

import (
	"context"
	"sync"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
)

// nativeGangs says whether the cluster schedules gangs itself (D23). It is asked once: the
// webhook and the controllers must not disagree.
type nativeGangs struct {
	client discovery.DiscoveryInterface

	mu            sync.Mutex
	asked, answer bool
}

// served waits for the answer of the API server, as long as ctx does not end.
func (n *nativeGangs) served(ctx context.Context) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asked {
		return n.answer
	}
	answer := serves(ctx, n.client, schedulingv1beta1.SchemeGroupVersion, "podgroups")
	if ctx.Err() != nil {
		return false
	}
	n.asked, n.answer = true, answer
	if !answer {
		klog.InfoS("The cluster does not schedule gangs: pods are placed one by one. Kubernetes 1.37 with the feature gate GenericWorkload and the API scheduling.k8s.io/v1beta1 is needed")
	}
	return answer
}
