package podclique

import (
	"context"
	"fmt"
	"time"

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
// what is known of it, and when the next of them counts as dead though nothing happens.
// That a node is gone is for a live read to say (D19).
func (r *Reconciler) deadNodes(ctx context.Context, names []string, now time.Time) (map[string]string, time.Time, error) {
	dead := map[string]string{}
	var next time.Time
	for _, name := range names {
		node := &corev1.Node{}
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, node)
		if apierrors.IsNotFound(err) {
			err = r.Live.Get(ctx, client.ObjectKey{Name: name}, node)
		}
		switch unready := r.deadline(node); {
		case apierrors.IsNotFound(err):
			dead[name] = "is gone"
		case err != nil:
			return nil, time.Time{}, fmt.Errorf("read node %s: %w", name, err)
		case isOutOfService(node):
			dead[name] = "is out of service"
		case unready.IsZero():
		case !unready.After(now):
			dead[name] = fmt.Sprintf("has not been ready for %s", r.UnreadyNodeTimeout)
		case next.IsZero() || unready.Before(next):
			next = unready
		}
	}
	return dead, next, nil
}

// deadline is when a node counts as dead because it has not been ready for so long; zero
// when it is ready, or when that is no reason.
func (r *Reconciler) deadline(node *corev1.Node) time.Time {
	if since := unreadySince(node); r.UnreadyNodeTimeout > 0 && !since.IsZero() {
		return since.Add(r.UnreadyNodeTimeout)
	}
	return time.Time{}
}

// unreadySince is when a node stopped being ready; zero when it is, or has never said.
func unreadySince(node *corev1.Node) time.Time {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
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

// nodeDied lets through nodes as they go, are declared to be out of service, or stop being
// ready.
func nodeDied() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		CreateFunc: func(event.TypedCreateEvent[*corev1.Node]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			return !isOutOfService(e.ObjectOld) && isOutOfService(e.ObjectNew) ||
				unreadySince(e.ObjectOld).IsZero() && !unreadySince(e.ObjectNew).IsZero()
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
