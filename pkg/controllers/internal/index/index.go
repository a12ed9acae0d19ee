// Package index holds the field indexes of the controllers' cache. Children are found
// by the UID of an owner, never by name or label, so that an object of a deleted
// namesake, or one that somebody labelled, is never taken for ours. By name one finds
// what is not ours, and in the way.
package index

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/scheduling/native"
)

const (
	// ownerUID is every owner of an object.
	ownerUID = "metadata.ownerReferences.uid"
	// ownerReplica is every owner of an object together with the replica it belongs to.
	ownerReplica = "copse.replica"
	// controllerUID is the owner that controls an object.
	controllerUID = native.OwnerIndex
	// controllerClique is the name of the PodClique that controls a pod.
	controllerClique = "copse.controllerClique"
	// claimTemplate is each ResourceClaimTemplate that a set refers to.
	claimTemplate = "copse.claimTemplate"
	// terminatingOn is the node of a pod that is being deleted.
	terminatingOn = "copse.terminatingOn"
)

// Register adds the indexes to a cache. native says whether the cluster serves the
// scheduler's own groups.
func Register(ctx context.Context, indexer client.FieldIndexer, native bool) error {
	for _, obj := range []client.Object{
		&grovev1alpha1.PodClique{}, &grovev1alpha1.PodCliqueScalingGroup{}, &schedulerv1alpha1.PodGang{}, &corev1.Service{}, &grovev1alpha1.StartGate{}, &corev1.ConfigMap{},
		&autoscalingv2.HorizontalPodAutoscaler{},
	} {
		if err := indexer.IndexField(ctx, obj, ownerUID, owners); err != nil {
			return fmt.Errorf("index %T: %w", obj, err)
		}
		if err := indexer.IndexField(ctx, obj, ownerReplica, replicas); err != nil {
			return fmt.Errorf("index %T: %w", obj, err)
		}
	}
	controlled := []client.Object{&corev1.Pod{}}
	if native {
		controlled = append(controlled, &schedulingv1beta1.PodGroup{})
	}
	for _, obj := range controlled {
		if err := RegisterControlled(ctx, indexer, obj); err != nil {
			return err
		}
	}
	if err := indexer.IndexField(ctx, &corev1.Pod{}, terminatingOn, nodeOfTerminating); err != nil {
		return fmt.Errorf("index pods by node: %w", err)
	}
	if err := indexer.IndexField(ctx, &corev1.Pod{}, controllerClique, cliqueName); err != nil {
		return fmt.Errorf("index pods by clique: %w", err)
	}
	return nil
}

// RegisterControlled indexes a kind by the owner that controls an object of it, such as the
// groups of a scheduler that the cluster may or may not have.
func RegisterControlled(ctx context.Context, indexer client.FieldIndexer, obj client.Object) error {
	if err := indexer.IndexField(ctx, obj, controllerUID, controller); err != nil {
		return fmt.Errorf("index %T: %w", obj, err)
	}
	return nil
}

// RegisterClaims adds the indexes for ResourceClaims that pods share, to the cache of a cluster
// that knows them.
func RegisterClaims(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &resourcev1.ResourceClaim{}, ownerUID, owners); err != nil {
		return fmt.Errorf("index ResourceClaims: %w", err)
	}
	if err := indexer.IndexField(ctx, &resourcev1.ResourceClaim{}, ownerReplica, replicas); err != nil {
		return fmt.Errorf("index ResourceClaims by replica: %w", err)
	}
	if err := indexer.IndexField(ctx, &grovev1alpha1.PodCliqueSet{}, claimTemplate, claimTemplates); err != nil {
		return fmt.Errorf("index sets by ResourceClaimTemplate: %w", err)
	}
	return nil
}

// SharingTemplate selects the sets that refer to a ResourceClaimTemplate, of any namespace.
// What it returns is the cache's own and must not be changed.
func SharingTemplate(template types.NamespacedName) []client.ListOption {
	return []client.ListOption{client.MatchingFields{claimTemplate: template.String()}, client.UnsafeDisableDeepCopy}
}

func claimTemplates(obj client.Object) []string {
	pcs, ok := obj.(*grovev1alpha1.PodCliqueSet)
	if !ok {
		return nil
	}
	others := gang.OtherTemplates(pcs)
	keys := make([]string, 0, len(others))
	for _, other := range others {
		keys = append(keys, other.String())
	}
	return keys
}

// OfCliqueNamed selects the pods of all PodCliques that have, or had, a name. What it
// returns is the cache's own and must not be changed.
func OfCliqueNamed(namespace, name string) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingFields{controllerClique: name}, client.UnsafeDisableDeepCopy}
}

func cliqueName(obj client.Object) []string {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil || ref.Kind != "PodClique" || ref.APIVersion != grovev1alpha1.SchemeGroupVersion.String() {
		return nil
	}
	return []string{ref.Name}
}

// TerminatingOn selects the pods that are being deleted on a node. What it returns is the
// cache's own and must not be changed.
func TerminatingOn(node string) []client.ListOption {
	return []client.ListOption{client.MatchingFields{terminatingOn: node}, client.UnsafeDisableDeepCopy}
}

func nodeOfTerminating(obj client.Object) []string {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.DeletionTimestamp == nil || pod.Spec.NodeName == "" {
		return nil
	}
	return []string{pod.Spec.NodeName}
}

// OwnedBy selects objects with an owner, in a namespace.
func OwnedBy(namespace string, uid types.UID) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingFields{ownerUID: string(uid)}}
}

// OwnedByReplica selects the objects of one replica of an owner, in a namespace.
func OwnedByReplica(namespace string, uid types.UID, replica int32) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingFields{ownerReplica: replicaKey(string(uid), labels.Index(replica))}}
}

// OwnedByNoReplica selects the objects of an owner that belong to none of its replicas, in a
// namespace.
func OwnedByNoReplica(namespace string, uid types.UID) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingFields{ownerReplica: replicaKey(string(uid), "")}}
}

// ControlledBy selects objects that an owner controls, in a namespace. What it returns
// is the cache's own and must not be changed.
func ControlledBy(namespace string, uid types.UID) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingFields{controllerUID: string(uid)}, client.UnsafeDisableDeepCopy}
}

func owners(obj client.Object) []string {
	refs := obj.GetOwnerReferences()
	uids := make([]string, 0, len(refs))
	for _, ref := range refs {
		uids = append(uids, string(ref.UID))
	}
	return uids
}

func replicas(obj client.Object) []string {
	keys := owners(obj)
	for i := range keys {
		keys[i] = replicaKey(keys[i], obj.GetLabels()[labels.ReplicaIndex])
	}
	return keys
}

func replicaKey(uid, replica string) string {
	return uid + "/" + replica
}

func controller(obj client.Object) []string {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil {
		return nil
	}
	return []string{string(ref.UID)}
}
