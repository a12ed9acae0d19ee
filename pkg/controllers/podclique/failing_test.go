package podclique

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods that end as their set fails, as waiters of a barrier that has expired do, are there to
// be read, whichever comes first (D12).
func TestAPodThatEndsWhileItsDeletionIsOnItsWayStays(t *testing.T) {
	for phase, stays := range map[corev1.PodPhase]bool{corev1.PodFailed: true, "": false} {
		c := &cluster{t: t, objects: []client.Object{newSet(failing), newClique(allMade), newPod(0, nil), newPod(1, nil), newPod(2, nil)}}
		c.meanwhile = func(server client.Client, obj client.Object) {
			pod := &corev1.Pod{}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(obj), pod); err != nil {
				t.Error(err)
			}
			if pod.Status.Phase = phase; phase != "" && pod.Name == podName(1) {
				if err := server.Update(t.Context(), pod); err != nil {
					t.Error(err)
				}
			}
		}
		r := c.reconciler()
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Error(err)
		}
		pods := &corev1.PodList{}
		if err := c.client.List(t.Context(), pods); err != nil {
			t.Fatal(err)
		}
		if (len(pods.Items) == 1) != stays {
			t.Errorf("%d pods are left, of which one has ended: %t", len(pods.Items), stays)
		}
	}
}
