package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// A clique that rested at size 0 and is wanted again may take longer than the delay to be
// Ready, as may one that is new: its siblings run on. That holds for a standalone clique,
// whose breach would be its replica's, and for a member, whose breach would be its copy's.
// Once it is available again, the next loss is a breach.
func TestACliqueThatWasIdleIsNotTerminatedWhileItStarts(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const slow = "        annotations: {kwok.copse.dev/never-ready: \"true\"}"
	manifest := serving(1, "    terminationDelay: 1s", "")
	for _, name := range []string{"router", "worker"} {
		manifest = strings.Replace(manifest, "- name: "+name+"\n", "- name: "+name+"\n"+slow+"\n", 1)
	}
	ns.Apply(manifest)
	ns.WaitForPods(servingPods, time.Minute, isRunning)
	ns.Kubectl("annotate", "pods", "--all", "kwok.copse.dev/never-ready-")
	ns.WaitForPods(servingPods, time.Minute, inAttempt("0"))
	idle := []string{"llm-0-router", "llm-0-decode-2-worker"}
	for _, clique := range idle {
		waitWasAvailable(ns, clique)
		ns.Kubectl("scale", "pclq", clique, "--replicas=0")
	}
	ns.WaitForPods(0, time.Minute, func(pod *corev1.Pod) bool { return isOf(pod, idle) })
	siblings := all(t, ns, "llm-0-")

	for _, clique := range idle {
		ns.Kubectl("scale", "pclq", clique, "--replicas=2")
	}
	ns.WaitForPods(4, time.Minute, func(pod *corev1.Pod) bool { return isOf(pod, idle) && isRunning(pod) })
	ns.Never(5*time.Second, func(context.Context) error {
		for _, clique := range idle {
			status := ns.PodClique(clique).Status
			if meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached) || status.ObservedAttempt != 0 {
				return fmt.Errorf("%s is breached, or made anew: attempt %d, %+v", clique, status.ObservedAttempt, status.Conditions)
			}
		}
		if n := survivors(t, ns, siblings); n != servingPods-4 {
			return fmt.Errorf("%d of %d siblings are left", n, servingPods-4)
		}
		return nil
	})
	for _, clique := range idle {
		letReady(ns, clique, "")
	}
	ns.WaitForPods(servingPods, time.Minute, inAttempt("0"))
	ns.Describes("llm", untouched("no * MinAvailableBreached: *", "Phase: Running", "Available Replicas: 1")...)

	why := unready(t, ns, "llm-0-router")
	ns.Describes("llm", "Warning MinAvailableBreached: "+why, "Warning ReplicaTerminated: replica 0 is made anew (attempt 1): "+why+", for *s")
}

func isOf(pod *corev1.Pod, cliques []string) bool {
	return slices.Contains(cliques, pod.Labels[labels.PodClique])
}
