package replica

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// What a replica lacks, and which events it is looked at for, are decided without a server.
// Here is how those get at it who play sets by the thousand.

// Children are what a replica consists of, as its controller sees it.
type Children struct {
	have observed
}

// NewChildren are those of a replica of which nothing exists.
func NewChildren() Children {
	return Children{observed{
		services: map[string]*corev1.Service{}, groups: map[string]*grovev1alpha1.PodCliqueScalingGroup{},
		cliques: map[string]*grovev1alpha1.PodClique{}, gangs: map[string]*schedulerv1alpha1.PodGang{},
		gates: map[string]*grovev1alpha1.StartGate{}, configMaps: map[string]*corev1.ConfigMap{},
		autoscalers: map[string]*autoscalingv2.HorizontalPodAutoscaler{},
		claims:      map[string]*resourcev1.ResourceClaim{}, claimTemplates: map[types.NamespacedName]*resourcev1.ResourceClaimTemplate{},
	}}
}

// Put shows an object, in place of what was there of its kind and name.
func (c Children) Put(obj client.Object) {
	switch obj := obj.(type) {
	case *corev1.Service:
		c.have.services[obj.Name] = obj
	case *grovev1alpha1.PodCliqueScalingGroup:
		c.have.groups[obj.Name] = obj
	case *grovev1alpha1.PodClique:
		c.have.cliques[obj.Name] = obj
	case *schedulerv1alpha1.PodGang:
		c.have.gangs[obj.Name] = obj
	case *grovev1alpha1.StartGate:
		c.have.gates[obj.Name] = obj
	case *corev1.ConfigMap:
		c.have.configMaps[obj.Name] = obj
	case *autoscalingv2.HorizontalPodAutoscaler:
		c.have.autoscalers[obj.Name] = obj
	case *resourcev1.ResourceClaim:
		c.have.claims[obj.Name] = obj
	case *resourcev1.ResourceClaimTemplate:
		c.have.claimTemplates[client.ObjectKeyFromObject(obj)] = obj
	}
}

// Plan is what a pass over the replica writes.
func (c Children) Plan(pcs *grovev1alpha1.PodCliqueSet, replica int32) (create, update, remove []client.Object) {
	p := planReplica(pcs, replica, c.have)
	return p.create, p.update, p.remove
}

// Hears says that a change brings a pass over the replica of an object, or over all
// replicas of a set. before is nil for a new object; gated says that the replica has a
// StartGate.
func Hears(before, after client.Object, gated bool) bool {
	switch after := after.(type) {
	case *grovev1alpha1.PodCliqueSet:
		return letsThrough(setChanged(), before, after)
	case *grovev1alpha1.PodClique:
		return letsThrough(cliqueChanged(), before, after) || (gated && letsThrough(atGateChanged(), before, after))
	case *grovev1alpha1.PodCliqueScalingGroup:
		return letsThrough(groupChanged(), before, after)
	case *schedulerv1alpha1.PodGang:
		return letsThrough(childChanged[*schedulerv1alpha1.PodGang](), before, after)
	case *grovev1alpha1.StartGate:
		return letsThrough(childChanged[*grovev1alpha1.StartGate](), before, after)
	case *corev1.Service:
		return letsThrough(serviceChanged(), before, after)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return letsThrough(autoscalerChanged(), before, after)
	case *resourcev1.ResourceClaim:
		return letsThrough(claimChanged(), before, after)
	case *resourcev1.ResourceClaimTemplate:
		return letsThrough(templateCame(), before, after)
	}
	return true
}

func letsThrough[T client.Object](let predicate.TypedPredicate[T], before client.Object, after T) bool {
	if old, ok := before.(T); ok {
		return let.Update(event.TypedUpdateEvent[T]{ObjectOld: old, ObjectNew: after})
	}
	return let.Create(event.TypedCreateEvent[T]{Object: after})
}
