package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// Updates where the nodes have no room to spare.

// packed is an inference set whose pods ask for one unit each: in each replica two of a
// clique, and as many copies of two in a scaling group.
func packed(name, units, image string, replicas, copies int) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: %[1]s}
spec:
  replicas: %[4]d
  template:
    cliques:
      - name: router
        spec:
          replicas: 2
          podSpec: &pod
            tolerations: [{key: %[2]s, operator: Exists}]
            containers: [{name: main, image: "example.com/%[3]s", resources: {limits: {%[2]s: 1}}}]
      - {name: server, spec: {replicas: 2, podSpec: *pod}}
    podCliqueScalingGroups:
      - {name: decode, cliqueNames: [server], replicas: %[5]d, minAvailable: 1}
`, name, units, image, replicas, copies)
}

// placedOf is whether all pods of a clique, or none of them, have a node.
func placedOf(ctx context.Context, ns *framework.Namespace, clique string) (placed, all int, err error) {
	pods, err := ns.Pods(ctx)
	for i := range pods {
		if pods[i].Labels["grove.io/podclique"] == clique {
			all++
			if pods[i].Spec.NodeName != "" {
				placed++
			}
		}
	}
	return placed, all, err
}

// A pod that is updated takes the room of the one that it replaces, and a copy that of its
// predecessor. One that has no room is away as well: the update waits until that is over, and
// says so.
func TestAnUpdateNeedsNoMoreRoomThanItsPodsHave(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const units = "example.com/packed"
	addNode(t, "packed-1", units, "8")
	ns.Apply(packed("llm", units, "server:1", 1, 3))
	ns.WaitForPods(8, time.Minute, framework.IsReady)
	ns.Apply(packed("llm", units, "server:2", 1, 3))
	waitUpdated(ns, "llm")
	ns.WaitForPods(8, time.Minute, framework.IsReady)

	ns.Kubectl("scale", "pcsg/llm-0-decode", "--replicas=4")
	ns.WaitForPods(10, time.Minute, func(*corev1.Pod) bool { return true })
	ns.Apply(packed("llm", units, "server:3", 1, 3))
	ns.Eventually(time.Minute, func(context.Context) error {
		const want = "llm-0-decode has 3 of 4 copies available, and 1 may be away"
		condition := meta.FindStatusCondition(ns.Set("llm").Status.Conditions, grovev1alpha1.ConditionTypeUpdatePending)
		if condition == nil || !strings.HasSuffix(condition.Message, want) {
			return fmt.Errorf("the set says %v, want %s", condition, want)
		}
		return nil
	})
	// The routers follow all the same, and so does the copy that has no room: it loses nothing.
	ns.Eventually(time.Minute, func(context.Context) error {
		if got := imagesOf(t, ns); got["server:3"] != 4 || got["server:2"] != 6 {
			return fmt.Errorf("images are %v", got)
		}
		return nil
	})
	if placed, all, err := placedOf(t.Context(), ns, "llm-0-decode-3-server"); err != nil || placed != 0 || all != 2 {
		t.Errorf("%d of %d pods of the copy that has no room have a node: %v", placed, all, err)
	}
	ns.Kubectl("scale", "pcsg/llm-0-decode", "--replicas=3")
	waitUpdated(ns, "llm")
	ns.WaitForPods(8, time.Minute, func(pod *corev1.Pod) bool {
		return framework.IsReady(pod) && pod.Spec.Containers[0].Image == "example.com/server:3"
	})
}

// A replica that waits for room is updated first, and does not hold up the one that serves.
func TestAReplicaWithoutRoomIsUpdatedFirst(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	const units = "example.com/crowded"
	addNode(t, "crowded-1", units, "4")
	ns.Apply(packed("llm", units, "server:1", 2, 1))
	ns.Eventually(time.Minute, func(ctx context.Context) error {
		if set := ns.Set("llm"); set.Status.AvailableReplicas != 1 {
			return fmt.Errorf("%d replicas are available", set.Status.AvailableReplicas)
		}
		return nil
	})
	pods := ns.WaitForPods(8, time.Minute, func(*corev1.Pod) bool { return true })
	serves, waits := "0", "1"
	for i := range pods {
		if pods[i].Spec.NodeName == "" && pods[i].Labels["grove.io/podcliqueset-replica-index"] == "0" {
			serves, waits = "1", "0"
		}
	}
	ns.Apply(packed("llm", units, "server:2", 2, 1))
	// By the images of each revision, the one that waits has all new pods before the other has one.
	first := ""
	ns.Eventually(2*time.Minute, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err != nil {
			return err
		}
		updated := map[string]int{}
		for i := range pods {
			if pods[i].Spec.Containers[0].Image == "example.com/server:2" {
				updated[pods[i].Labels["grove.io/podcliqueset-replica-index"]]++
			}
		}
		for _, replica := range []string{serves, waits} {
			if first == "" && updated[replica] > 0 {
				first = replica
			}
		}
		if updated[serves] != 4 || updated[waits] != 4 {
			return fmt.Errorf("updated pods by replica: %v", updated)
		}
		return nil
	})
	if first != waits {
		t.Errorf("replica %s was updated first, which serves; replica %s waits for room", first, waits)
	}
	waitUpdated(ns, "llm")
	addNode(t, "crowded-2", units, "4")
	ns.WaitForPods(8, time.Minute, framework.IsReady)
}
