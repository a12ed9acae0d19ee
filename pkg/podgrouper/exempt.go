package podgrouper

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/copse-dev/copse/pkg/podgrouper/owners"
)

// BackEnd is what places the pods of a scheduler's name in groups.
type BackEnd string

const (
	// Native is the scheduler of Kubernetes, which takes pods into groups at their creation.
	Native BackEnd = "native"
	// KAI is the KAI scheduler.
	KAI BackEnd = "kai"
)

// Exemption is why a pod is in no group.
type Exemption string

const (
	// MirrorPod: the kubelet runs it, whatever a scheduler does.
	MirrorPod Exemption = "MirrorPod"
	// SystemNamespace: the cluster needs it, or the grouper does.
	SystemNamespace Exemption = "SystemNamespace"
	// OtherScheduler: its scheduler takes no groups from us.
	OtherScheduler Exemption = "OtherScheduler"
	// DaemonSetPod: it is meant for one node, and waits for no other pod.
	DaemonSetPod Exemption = "DaemonSet"
	// PodCliqueSetPod: it is made as a member of its gang.
	PodCliqueSetPod Exemption = "PodCliqueSet"
	// OptedOut: its user does not want it.
	OptedOut Exemption = "OptedOut"
	// GroupedByHand: its user has put it into a group.
	GroupedByHand Exemption = "GroupedByHand"
)

// BackEnd is what places a pod in groups; empty when its scheduler takes none from us.
func (g *Grouper) BackEnd(pod *corev1.Pod) BackEnd {
	return g.options.Schedulers[cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)]
}

// exempt says why a pod is in no group, if it is not.
func (g *Grouper) exempt(pod *corev1.Pod, chain owners.Chain) Exemption {
	backEnd := g.BackEnd(pod)
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case mirror || chain.MirrorPod:
		return MirrorPod
	case pod.Namespace == metav1.NamespaceSystem || g.options.ExemptNamespaces.Has(pod.Namespace):
		return SystemNamespace
	case backEnd == "":
		return OtherScheduler
	case ownedBy(pod, chain, func(kind schema.GroupKind) bool { return kind == schema.GroupKind{Group: "apps", Kind: "DaemonSet"} }):
		return DaemonSetPod
	case backEnd == Native && ownedBy(pod, chain, func(kind schema.GroupKind) bool { return kind.Group == "grove.io" }):
		return PodCliqueSetPod
	case optedOut(pod, chain):
		return OptedOut
	case groupOf(pod) != "" && !grouped(pod):
		return GroupedByHand
	}
	return ""
}

// ownedBy looks at the references of the pod as well as at its owners, which may be
// unreadable.
func ownedBy(pod *corev1.Pod, chain owners.Chain, is func(schema.GroupKind) bool) bool {
	for _, ref := range pod.OwnerReferences {
		if is(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()) {
			return true
		}
	}
	for _, owner := range chain.Owners {
		if is(kindOf(owner)) {
			return true
		}
	}
	return false
}

func optedOut(pod *corev1.Pod, chain owners.Chain) bool {
	if pod.Annotations[SkipAnnotation] == "true" {
		return true
	}
	// On a pod that we have grouped, KAI's word is ours: it keeps KAI's own grouper away.
	if pod.Annotations[KAISkipAnnotation] == "true" && !grouped(pod) {
		return true
	}
	for _, owner := range chain.Owners {
		if owner.Annotations[SkipAnnotation] == "true" || owner.Annotations[KAISkipAnnotation] == "true" {
			return true
		}
	}
	return false
}

// groupOf is the name of the group that a pod is in already.
func groupOf(pod *corev1.Pod) string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return *group.PodGroupName
	}
	return pod.Annotations[PodGroupAnnotation]
}

// grouped says whether it was the pod grouper that put a pod into its group.
func grouped(pod *corev1.Pod) bool {
	return pod.Annotations[GroupedByAnnotation] == GroupedByValue
}
