// Package live reads past the cache. Two etcds are behind the controllers, and either
// cache may be ahead of the other: what is about to be made or deleted is checked
// against the set as it is, and what is final follows a list of the pods that there are (D11).
package live

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// Set reads a set. It returns nil when there is none with this name and UID.
func Set(ctx context.Context, reader client.Reader, key types.NamespacedName, uid types.UID) (*grovev1alpha1.PodCliqueSet, error) {
	pcs := &grovev1alpha1.PodCliqueSet{}
	if err := reader.Get(ctx, key, pcs); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read PodCliqueSet %s: %w", key.Name, err)
	}
	if pcs.UID != uid {
		return nil, nil
	}
	return pcs, nil
}

// IsCurrent says that a clique is as a cache shows it: one that has gone, is another by now
// or has another size has an event on its way. A size from the past would take away what is
// needed (D11).
func IsCurrent(ctx context.Context, reader client.Reader, cached *grovev1alpha1.PodClique) (bool, error) {
	current := &grovev1alpha1.PodClique{}
	if err := reader.Get(ctx, client.ObjectKeyFromObject(cached), current); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read PodClique %s: %w", cached.Name, err)
	}
	return current.UID == cached.UID && current.Generation == cached.Generation, nil
}

// CliquePods lists the pods that a clique controls. The label narrows what the server
// sends; the owner decides.
func CliquePods(ctx context.Context, reader client.Reader, clique *grovev1alpha1.PodClique) ([]corev1.Pod, error) {
	pods, err := list(ctx, reader, clique.Namespace, client.MatchingLabels{labels.PodClique: clique.Name})
	if err != nil {
		return nil, err
	}
	return controlledBy(pods, func(uid types.UID) bool { return uid == clique.UID }), nil
}

// CliquePod reads one pod that a clique controls, whatever its labels. It returns nil when there
// is none with this name and UID.
func CliquePod(ctx context.Context, reader client.Reader, clique *grovev1alpha1.PodClique, name string, uid types.UID) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := reader.Get(ctx, types.NamespacedName{Namespace: clique.Namespace, Name: name}, pod); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read pod %s: %w", name, err)
	}
	if pod.UID != uid || !metav1.IsControlledBy(pod, clique) {
		return nil, nil
	}
	return pod, nil
}

// Cliques lists the cliques that a set owns.
func Cliques(ctx context.Context, reader client.Reader, pcs *grovev1alpha1.PodCliqueSet) ([]grovev1alpha1.PodClique, error) {
	cliques := &grovev1alpha1.PodCliqueList{}
	if err := reader.List(ctx, cliques, client.InNamespace(pcs.Namespace), client.MatchingLabels{labels.PartOf: pcs.Name, labels.ManagedBy: labels.ManagedByValue}); err != nil {
		return nil, fmt.Errorf("list cliques live: %w", err)
	}
	return slices.DeleteFunc(cliques.Items, func(clique grovev1alpha1.PodClique) bool {
		return !slices.ContainsFunc(clique.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == pcs.UID })
	}), nil
}

// SetPods lists the cliques of a set and the pods that they control, those of cliques
// included that no cache shows yet.
func SetPods(ctx context.Context, reader client.Reader, pcs *grovev1alpha1.PodCliqueSet) ([]grovev1alpha1.PodClique, []corev1.Pod, error) {
	cliques, err := Cliques(ctx, reader, pcs)
	if err != nil {
		return nil, nil, err
	}
	pods, err := list(ctx, reader, pcs.Namespace, ofSet(pcs))
	if err != nil {
		return nil, nil, err
	}
	ours := make(map[types.UID]bool, len(cliques))
	for i := range cliques {
		ours[cliques[i].UID] = true
	}
	return cliques, controlledBy(pods, func(uid types.UID) bool { return ours[uid] }), nil
}

// ReplicaPods lists the pods that carry the labels of a replica of a set. Who owns them is
// for the caller to check.
func ReplicaPods(ctx context.Context, reader client.Reader, pcs *grovev1alpha1.PodCliqueSet, replica string) ([]corev1.Pod, error) {
	selector := ofSet(pcs)
	selector[labels.ReplicaIndex] = replica
	return list(ctx, reader, pcs.Namespace, selector)
}

// ofSet narrows what the server sends; the owner decides. It does not go by the label by which
// the cache knows pods: those that have lost it are the ones that only a live list shows.
func ofSet(pcs *grovev1alpha1.PodCliqueSet) client.MatchingLabels {
	return client.MatchingLabels{labels.PartOf: pcs.Name}
}

func list(ctx context.Context, reader client.Reader, namespace string, selector client.MatchingLabels) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(namespace), selector); err != nil {
		return nil, fmt.Errorf("list pods live: %w", err)
	}
	return pods.Items, nil
}

func controlledBy(pods []corev1.Pod, isOurs func(types.UID) bool) []corev1.Pod {
	var out []corev1.Pod
	for i := range pods {
		if ref := metav1.GetControllerOf(&pods[i]); ref != nil && isOurs(ref.UID) {
			out = append(out, pods[i])
		}
	}
	return out
}
