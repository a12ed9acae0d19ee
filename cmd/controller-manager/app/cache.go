package app

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// cacheOptions keep in memory what the controllers use: of pods, Services, ConfigMaps,
// autoscalers and ResourceClaims those that carry our label, and of a pod only what a decision
// reads. The scheduler's groups are not named here: the cache asks the cluster for every kind that
// is, and one that does not schedule gangs does not know them. ResourceClaims are where the cluster
// serves them.
func cacheOptions(resourceClaims bool) crcache.Options {
	ours := apilabels.SelectorFromSet(apilabels.Set{labels.ManagedBy: labels.ManagedByValue})
	options := crcache.Options{
		DefaultTransform: crcache.TransformStripManagedFields(),
		ByObject: map[client.Object]crcache.ByObject{
			&corev1.Pod{}:     {Label: ours, Transform: stripPod},
			&corev1.Service{}: {Label: ours},
			// One that somebody else made is not seen, and is found when ours cannot be made.
			&corev1.ConfigMap{}:                      {Label: ours},
			&autoscalingv2.HorizontalPodAutoscaler{}: {Label: ours},
			&corev1.Node{}:                           {Transform: stripNode},
		},
	}
	if resourceClaims {
		// A cluster has as many as it has pods with devices.
		options.ByObject[&resourcev1.ResourceClaim{}] = crcache.ByObject{Label: ours}
	}
	return options
}

var _ cache.TransformFunc = stripPod

// stripPod drops what no decision reads, most of a pod by size.
func stripPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:                       pod.Name,
			Namespace:                  pod.Namespace,
			UID:                        pod.UID,
			ResourceVersion:            pod.ResourceVersion,
			Labels:                     ourLabels(pod.Labels),
			Annotations:                groupOf(pod.Annotations),
			OwnerReferences:            pod.OwnerReferences,
			CreationTimestamp:          pod.CreationTimestamp,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
			Finalizers:                 pod.Finalizers,
		},
		Spec: corev1.PodSpec{
			NodeName:        pod.Spec.NodeName,
			SchedulingGates: pod.Spec.SchedulingGates,
			SchedulingGroup: pod.Spec.SchedulingGroup,
		},
		Status: corev1.PodStatus{
			Phase:                 pod.Status.Phase,
			Reason:                pod.Status.Reason,
			Conditions:            readConditions(pod.Status.Conditions),
			InitContainerStatuses: containerStates(pod.Status.InitContainerStatuses),
			ContainerStatuses:     containerStates(pod.Status.ContainerStatuses),
		},
	}, nil
}

// stripNode keeps of a node that it is there, whether it is out of service, and since when
// it has been ready, or not. A heartbeat changes nothing of it.
func stripNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	out := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints},
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			out.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	return out, nil
}

func ourLabels(all map[string]string) map[string]string {
	out := make(map[string]string, 7)
	if labels.IsManaged(all) {
		// The constant takes no memory of its own.
		out[labels.ManagedBy] = labels.ManagedByValue
	}
	for _, key := range []string{labels.PartOf, labels.PodClique, labels.PodIndex, labels.PodGang, labels.RestartAttempt, labels.PodTemplateHash} {
		if value, ok := all[key]; ok {
			out[key] = value
		}
	}
	return out
}

// groupOf is what says which group of KAI a pod has joined: back ends ask, and else take it for a pod
// of no group.
func groupOf(annotations map[string]string) map[string]string {
	group, given := annotations[podgrouper.PodGroupAnnotation]
	if !given {
		return nil
	}
	return map[string]string{podgrouper.PodGroupAnnotation: group}
}

// readConditions are whether a pod is ready, and why it has no node.
func readConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, condition := range conditions {
		switch {
		case condition.Type == corev1.PodReady:
			out = append(out, corev1.PodCondition{Type: condition.Type, Status: condition.Status, Reason: condition.Reason})
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse:
			out = append(out, corev1.PodCondition{Type: condition.Type, Status: condition.Status, Reason: condition.Reason, Message: condition.Message})
		}
	}
	return out
}

func containerStates(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, 0, len(statuses))
	for _, status := range statuses {
		kept := corev1.ContainerStatus{Name: status.Name, Ready: status.Ready, State: corev1.ContainerState{Running: status.State.Running, Terminated: exitOf(status.State.Terminated)}}
		if waiting := status.State.Waiting; waiting != nil {
			// A container that waits to be started once more says with what it ended.
			kept.State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting.Reason}
			kept.LastTerminationState.Terminated = exitOf(status.LastTerminationState.Terminated)
		}
		out = append(out, kept)
	}
	return out
}

func exitOf(t *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	if t == nil {
		return nil
	}
	return &corev1.ContainerStateTerminated{ExitCode: t.ExitCode, Reason: t.Reason, FinishedAt: t.FinishedAt}
}

// isServed says whether a discovery answer lists a resource.
func isServed(list *metav1.APIResourceList, err error, resource string) bool {
	if err != nil || list == nil {
		return false
	}
	for _, r := range list.APIResources {
		if r.Name == resource {
			return true
		}
	}
	return false
}
