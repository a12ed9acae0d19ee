// Package pods is the cache in which the pod grouper has all pods of the cluster, stripped
// to what grouping reads. The controllers of PodCliqueSets have a cache of their own pods,
// with other fields.
package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/resource"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/podgrouper"
)

const (
	// groupIndex is the group that a pod's annotation names.
	groupIndex = "copse.group"
	// looseIndex is whether a pod has no group and could be in one.
	looseIndex = "copse.loose"
	isLoose    = "true"
)

// NewCache returns the cache. Of owners and namespaces it has the metadata alone.
func NewCache(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, mapper meta.RESTMapper) (crcache.Cache, error) {
	cache, err := crcache.New(config, crcache.Options{
		Scheme:           scheme,
		Mapper:           mapper,
		DefaultTransform: crcache.TransformStripManagedFields(),
		ByObject:         map[client.Object]crcache.ByObject{&corev1.Pod{}: {Transform: Strip}},
	})
	if err != nil {
		return nil, fmt.Errorf("make the cache of pods: %w", err)
	}
	if err := Index(ctx, cache); err != nil {
		return nil, err
	}
	return cache, nil
}

// Index adds the indexes by which pods are found.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for name, of := range map[string]client.IndexerFunc{groupIndex: groups, looseIndex: loose} {
		if err := indexer.IndexField(ctx, &corev1.Pod{}, name, of); err != nil {
			return fmt.Errorf("index pods by %s: %w", name, err)
		}
	}
	return nil
}

// InGroup selects the pods whose annotation names a group. What it returns is the cache's
// own and must not be changed.
func InGroup(namespace, name string) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingFields{groupIndex: name}, client.UnsafeDisableDeepCopy}
}

// Loose selects the pods of a namespace that name no group, those that have ended included.
// What it returns is the cache's own and must not be changed.
func Loose(namespace string) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingFields{looseIndex: isLoose}, client.UnsafeDisableDeepCopy}
}

// GroupOf is the group that a pod's annotation names; empty when there is none.
func GroupOf(pod *corev1.Pod) string {
	return pod.Annotations[podgrouper.PodGroupAnnotation]
}

// IsGrouped says whether it was the pod grouper that put a pod into its group.
func IsGrouped(pod *corev1.Pod) bool {
	return pod.Annotations[podgrouper.GroupedByAnnotation] == podgrouper.GroupedByValue
}

// IsLoose says whether a pod names no group. One that has ended counts still for the group
// that it would be in.
func IsLoose(pod *corev1.Pod) bool {
	return GroupOf(pod) == "" && pod.Spec.SchedulingGroup == nil
}

// HasEnded says whether a pod is done for good.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Requests are what a stripped pod requests.
func Requests(pod *corev1.Pod) corev1.ResourceList {
	if len(pod.Spec.Containers) == 0 {
		return nil
	}
	return pod.Spec.Containers[0].Resources.Requests
}

func groups(obj client.Object) []string {
	if name := obj.GetAnnotations()[podgrouper.PodGroupAnnotation]; name != "" {
		return []string{name}
	}
	return nil
}

func loose(obj client.Object) []string {
	if pod, ok := obj.(*corev1.Pod); ok && IsLoose(pod) {
		return []string{isLoose}
	}
	return nil
}

// Strip drops what grouping does not read, most of a pod by size. The sum of what its
// containers request is in the first of them.
func Strip(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              pod.Name,
			GenerateName:      pod.GenerateName,
			Namespace:         pod.Namespace,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			Labels:            pod.Labels,
			Annotations:       annotations(pod.Annotations),
			OwnerReferences:   pod.OwnerReferences,
			CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			SchedulerName:     pod.Spec.SchedulerName,
			SchedulingGroup:   pod.Spec.SchedulingGroup,
			SchedulingGates:   pod.Spec.SchedulingGates,
			NodeName:          pod.Spec.NodeName,
			NodeSelector:      pod.Spec.NodeSelector,
			PriorityClassName: pod.Spec.PriorityClassName,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if requests := resource.PodRequests(pod, resource.PodResourcesOptions{}); len(requests) > 0 {
		out.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			out.Status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}}
		}
	}
	return out, nil
}

// annotations without what can be large and is about the object alone.
func annotations(all map[string]string) map[string]string {
	delete(all, corev1.LastAppliedConfigAnnotation)
	return all
}
