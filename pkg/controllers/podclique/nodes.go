package podclique

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/copse-dev/copse/pkg/controllers/internal/index"
)

// deadNodes are those of the named nodes on which no container runs any more, each with
// what is known of it. That a node is gone is for a live read to say (D19).
func (r *Reconciler) deadNodes(ctx context.Context, names []string) (map[string]string, error) {
	dead := map[string]string{}
	for _, name := range names {
		node := &corev1.Node{}
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, node)
		if apierrors.IsNotFound(err) {
			err = r.Live.Get(ctx, client.ObjectKey{Name: name}, node)
		}
		switch {
		case apierrors.IsNotFound(err):
			dead[name] = "is gone"
		case err != nil:
			return nil, fmt.Errorf("read node %s: %w", name, err)
		case isOutOfService(node):
			dead[name] = "is out of service"
		}
	}
	return dead, nil
}

// isOutOfService says that somebody has declared that the node is shut down.
func isOutOfService(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeOutOfService {
			return true
		}
	}
	return false
}

// nodeDied lets through nodes as they go, or are declared to be out of service.
func nodeDied() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		CreateFunc: func(event.TypedCreateEvent[*corev1.Node]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			return !isOutOfService(e.ObjectOld) && isOutOfService(e.ObjectNew)
		},
	}
}

// cliquesOfNode are the cliques that wait for pods on a node to go.
func (r *Reconciler) cliquesOfNode(ctx context.Context, node *corev1.Node) []reconcile.Request {
	var pods corev1.PodList
	if err := r.Cache.List(ctx, &pods, index.TerminatingOn(node.Name)...); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		if owner := metav1.GetControllerOfNoCopy(&pods.Items[i]); owner != nil {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: pods.Items[i].Namespace, Name: owner.Name}})
		}
	}
	return requests
}
