package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/test/framework"
)

// serving is an inference set of a router and a scaling group of a leader and two workers,
// of which two copies of three are needed.
func serving(replicas int, template, group string) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: %d
  template:
%s
    cliques:
      - name: router
        spec:
          replicas: 2
          podSpec:
            containers: [{name: main, image: example.com/router}]
      - name: leader
        spec:
          replicas: 1
          podSpec:
            containers: [{name: main, image: example.com/server}]
      - name: worker
        spec:
          replicas: 2
          podSpec:
            containers: [{name: main, image: example.com/server}]
    podCliqueScalingGroups:
      - name: decode
        cliqueNames: [leader, worker]
        replicas: 3
        minAvailable: 2
%s
`, replicas, template, group)
}

// servingPods are the pods of one replica of serving.
const servingPods = 2 + 3*3

// waitWasAvailable waits until it is on record that a clique was available: one that never
// was is not breached.
func waitWasAvailable(ns *framework.Namespace, clique string) {
	ns.Eventually(30*time.Second, func(ctx context.Context) error {
		current, err := cluster.Copse.GroveV1alpha1().PodCliques(ns.Name).Get(ctx, clique, metav1.GetOptions{})
		if err == nil && !current.Status.WasAvailable {
			err = fmt.Errorf("it is not on record that %s was available", clique)
		}
		return err
	})
}

// unready takes the readiness of a pod of a clique away until the pod is made anew, and returns
// what the clique then tells.
func unready(t *testing.T, ns *framework.Namespace, clique string) string {
	t.Helper()
	waitWasAvailable(ns, clique)
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pod := podOf(t, pods, clique, "0")
	ns.Kubectl("annotate", "pod", pod.Name, "--overwrite", "kwok.copse.dev/never-ready=true")
	size := ns.PodClique(clique).Spec.Replicas
	return below(clique, int(size)-1, int(size), notReady(pod))
}

// survivors counts how many of the pods of before are still there.
func survivors(t *testing.T, ns *framework.Namespace, before map[string]bool) int {
	t.Helper()
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range pods {
		if before[string(pods[i].UID)] && pods[i].DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func all(t *testing.T, ns *framework.Namespace, clique string) map[string]bool {
	t.Helper()
	pods, err := ns.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for uid := range uids(pods, clique) {
		out[string(uid)] = true
	}
	return out
}

// Seed 001, "PodCliqueSet Level Termination": a standalone clique below its minimum for
// longer than the delay takes its whole replica along, and no other.
func TestAStandaloneCliqueTerminatesItsReplica(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(serving(2, "    terminationDelay: 3s", ""))
	ns.WaitForPods(2*servingPods, time.Minute, inAttempt("0"))
	healthy, sick := all(t, ns, "llm-1-"), all(t, ns, "llm-0-")
	began := time.Now()
	why := unready(t, ns, "llm-0-router")
	ns.WaitForPods(servingPods, time.Minute, inAttempt("1"))
	if waited := time.Since(began); waited < 3*time.Second {
		t.Errorf("the termination came after %v", waited)
	}
	if n := survivors(t, ns, healthy); n != servingPods {
		t.Errorf("%d pods of the healthy replica are left", n)
	}
	if n := survivors(t, ns, sick); n != 0 {
		t.Errorf("%d pods of the terminated replica are left", n)
	}
	status := ns.Set("llm").Status
	if status.RestartCount != 0 {
		t.Errorf("restartCount is %d", status.RestartCount)
	}
	ns.Describes("llm", "Warning MinAvailableBreached: "+why, "Warning ReplicaTerminated: replica 0 is made anew (attempt 1): "+why+", for *s",
		"Restarting=False ReplicaRestarted: replica 0, "+why+", for *s", "replica 0: attempt 1, Running",
		"Available Replicas: 2", "Restart Count: 0", "no * ReplicaTerminated: replica 1 *")
}

// Seed 001, "PodCliqueScalingGroup Level Processing": as long as enough copies are left, a
// breached one is recycled alone.
func TestABreachedCopyIsRecycledAlone(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(serving(1, "    terminationDelay: 3s", ""))
	ns.WaitForPods(servingPods, time.Minute, inAttempt("0"))
	before := all(t, ns, "llm-0-")
	// A copy of the base gang: its pods go back into the gang that was scheduled.
	why := unready(t, ns, "llm-0-decode-1-worker")
	ns.WaitForPods(3, time.Minute, inAttempt("1"))
	if n := survivors(t, ns, before); n != servingPods-3 {
		t.Errorf("%d of %d pods are left", n, servingPods)
	}
	if attempt := ns.Kubectl("get", "pcsg", "llm-0-decode", "-o", "jsonpath={.status.replicaAttempts[?(@.index==1)].attempt}"); attempt != "1" {
		t.Errorf("attempt of the copy is %q", attempt)
	}
	if statuses := ns.Set("llm").Status.ReplicaStatuses; len(statuses) > 0 && statuses[0].Attempt != 0 {
		t.Errorf("the replica was terminated: %+v", statuses)
	}
	ns.Describes("llm", "Warning MinAvailableBreached: "+why, "Warning ReplicaTerminated: copy 1 of scaling group llm-0-decode is made anew (attempt 1): "+why+", for *s",
		"Restarting=False ReplicaRestarted: copy 1 of scaling group llm-0-decode is made anew: "+why+", for *s",
		"Available Replicas: 1", "Restart Count: 0", "no * ReplicaTerminated: replica *")
}

// Seed 001, "Two-level protection at PCSG": with too few copies left the group leaves it
// to the set, which terminates the replica.
func TestABreachOfTheGroupIsDelegatedToTheSet(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(serving(1, "    terminationDelay: 3s", ""))
	ns.WaitForPods(servingPods, time.Minute, inAttempt("0"))
	before := all(t, ns, "llm-0-")
	first := unready(t, ns, "llm-0-decode-0-leader")
	second := unready(t, ns, "llm-0-decode-2-worker")
	ns.WaitForPods(servingPods, time.Minute, inAttempt("1"))
	if n := survivors(t, ns, before); n != 0 {
		t.Errorf("%d old pods are left", n)
	}
	if attempts := ns.Kubectl("get", "pcsg", "llm-0-decode", "-o", "jsonpath={.status.replicaAttempts}"); attempts != "" {
		t.Errorf("copies were recycled: %s", attempts)
	}
	const group = "scaling group llm-0-decode: 1 of 3 copies are available, at least 2 are needed: 2 breached, 0 recovering"
	ns.Describes("llm", "Warning MinAvailableBreached: "+first, "Warning MinAvailableBreached: "+second, "Warning MinAvailableBreached: "+group,
		"Warning ReplicaTerminated: replica 0 is made anew (attempt 1): "+group+", for *s; "+first+", for *s",
		"Restarting=False ReplicaRestarted: replica 0, "+group+", for *s; "+first+", for *s", "replica 0: attempt 1, Running",
		"Available Replicas: 1", "no * ReplicaTerminated: copy *")
}

// Seed 001, "PCSG TerminationDelay Override".
func TestAScalingGroupMayHaveItsOwnDelay(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(serving(1, "    terminationDelay: 1h", "        terminationDelay: 2s"))
	ns.WaitForPods(servingPods, time.Minute, inAttempt("0"))
	router := all(t, ns, "llm-0-router")
	routers := unready(t, ns, "llm-0-router")
	why := unready(t, ns, "llm-0-decode-2-leader")
	ns.WaitForPods(3, time.Minute, inAttempt("1"))
	if n := survivors(t, ns, router); n != 2 {
		t.Errorf("the router, whose delay is an hour, has %d pods left", n)
	}
	ns.Describes("llm", "Warning MinAvailableBreached: "+routers, "replica 0: attempt 0, Running, waits for router Ready 1/2", "Available Replicas: 0", "no * ReplicaTerminated: replica *")
	ns.Describes("llm", "Warning MinAvailableBreached: "+why, "Warning ReplicaTerminated: copy 2 of scaling group llm-0-decode is made anew (attempt 1): "+why+", for *s",
		"Restarting=False ReplicaRestarted: copy 2 of scaling group llm-0-decode is made anew: "+why+", for *s")
}

// Seed 001, "Gang Termination Disabled": breaches are told, and nothing is terminated.
func TestNothingIsTerminatedWithoutADelay(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(serving(1, "", ""))
	ns.WaitForPods(servingPods, time.Minute, inAttempt("0"))
	before := all(t, ns, "llm-0-")
	var story []string
	for _, clique := range []string{"llm-0-router", "llm-0-decode-0-leader", "llm-0-decode-1-leader"} {
		story = append(story, "Warning MinAvailableBreached: "+unready(t, ns, clique))
	}
	for _, object := range []string{"pclq/llm-0-router", "pcsg/llm-0-decode"} {
		ns.Eventually(10*time.Second, func(context.Context) error {
			if got := ns.Kubectl("get", object, "-o", `jsonpath={.status.conditions[?(@.type=="MinAvailableBreached")].status}`); got != "True" {
				return fmt.Errorf("MinAvailableBreached of %s is %q", object, got)
			}
			return nil
		})
	}
	ns.Never(3*time.Second, func(context.Context) error {
		if n := survivors(t, ns, before); n != servingPods {
			return fmt.Errorf("%d of %d pods are left", n, servingPods)
		}
		return nil
	})
	if status := ns.Set("llm").Status; status.AvailableReplicas != 0 {
		t.Errorf("availableReplicas is %d", status.AvailableReplicas)
	}
	ns.Describes("llm", untouched(append(story, "Warning MinAvailableBreached: scaling group llm-0-decode: 1 of 3 copies are available, at least 2 are needed: 2 breached, 0 recovering",
		"Phase: Running", "Available Replicas: 0", "replica 0: attempt 0, Running, waits for router Ready 1/2")...)...)
}

// Seed 001, "Never Available": what has never been up is not torn down.
func TestWhatWasNeverAvailableIsNotTerminated(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	manifest := strings.Replace(serving(1, "    terminationDelay: 1s", ""), "- name: router", "- name: router\n        annotations: {kwok.copse.dev/never-ready: \"true\"}", 1)
	ns.Apply(manifest)
	ns.WaitForPods(servingPods-2, time.Minute, inAttempt("0"))
	before := all(t, ns, "llm-0-")
	ns.Never(4*time.Second, func(context.Context) error {
		if n := survivors(t, ns, before); n != servingPods {
			return fmt.Errorf("%d of %d pods are left", n, servingPods)
		}
		return nil
	})
	if reason := ns.Kubectl("get", "pclq", "llm-0-router", "-o", `jsonpath={.status.conditions[?(@.type=="MinAvailableBreached")].reason}`); reason != grovev1alpha1.ReasonNeverAvailable {
		t.Errorf("reason is %q", reason)
	}
	ns.Describes("llm", untouched("Phase: Running", "Available Replicas: 0", "replica 0: attempt 0, Running, waits for router Ready 0/2", "no * MinAvailableBreached: *")...)
}

// A breach that heals within the delay terminates nothing, and the next one has the whole
// delay again.
func TestABreachThatHealsTerminatesNothing(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(serving(1, "    terminationDelay: 3s", ""))
	ns.WaitForPods(servingPods, time.Minute, inAttempt("0"))
	before := all(t, ns, "llm-0-")
	why := unready(t, ns, "llm-0-router")
	ns.Eventually(10*time.Second, func(context.Context) error {
		if got := ns.Kubectl("get", "pclq", "llm-0-router", "-o", `jsonpath={.status.conditions[?(@.type=="MinAvailableBreached")].status}`); got != "True" {
			return fmt.Errorf("breached: %s", got)
		}
		return nil
	})
	ns.Kubectl("annotate", "pods", "--all", "kwok.copse.dev/never-ready-")
	ns.WaitForPods(servingPods, time.Minute, inAttempt("0"))
	ns.Never(5*time.Second, func(context.Context) error {
		if n := survivors(t, ns, before); n != servingPods {
			return fmt.Errorf("%d of %d pods are left", n, servingPods)
		}
		return nil
	})
	ns.Describes("llm", untouched("Warning MinAvailableBreached: "+why, "Normal MinAvailableRestored: llm-0-router: 2 of 2 pods are available, at least 2 are needed, after a breach of *s",
		"Phase: Running", "Available Replicas: 1")...)
}

// A group whose breach heals within the delay is left alone, too.
func TestABreachOfAGroupThatHealsTerminatesNothing(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(serving(1, "    terminationDelay: 1h", ""))
	ns.WaitForPods(servingPods, time.Minute, inAttempt("0"))
	first, second := unready(t, ns, "llm-0-decode-0-leader"), unready(t, ns, "llm-0-decode-1-worker")
	const group = "scaling group llm-0-decode: "
	breached := []string{"Warning MinAvailableBreached: " + first, "Warning MinAvailableBreached: " + second, "Warning MinAvailableBreached: " + group + "1 of 3 copies are available, at least 2 are needed: 2 breached, 0 recovering"}
	ns.Describes("llm", append(breached, "replica 0: attempt 0, Running, waits for leader Ready 0/1")...)
	ns.Kubectl("annotate", "pods", "--all", "kwok.copse.dev/never-ready-")
	ns.Describes("llm", untouched(append(breached, "Normal MinAvailableRestored: llm-0-decode-0-leader: 1 of 1 pods are available, at least 1 are needed, after a breach of *s",
		"Normal MinAvailableRestored: "+group+"* of 3 copies are available, at least 2 are needed*, after a breach of *s", "Available Replicas: 1", "Phase: Running")...)...)
}

// Termination keeps PodClique objects, and with them a size that an autoscaler gave.
func TestTerminationKeepsTheScaledSize(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(serving(1, "    terminationDelay: 2s", ""))
	ns.WaitForPods(servingPods, time.Minute, inAttempt("0"))
	ns.Kubectl("scale", "pclq", "llm-0-router", "--replicas=4")
	ns.Kubectl("scale", "pcsg", "llm-0-decode", "--replicas=4")
	ns.WaitForPods(servingPods+2+3, time.Minute, inAttempt("0"))
	unready(t, ns, "llm-0-router")
	ns.Kubectl("annotate", "pods", "-l", "grove.io/podclique=llm-0-router", "--overwrite", "kwok.copse.dev/never-ready=true")
	ns.WaitForPods(servingPods+2+3, time.Minute, inAttempt("1"))
	ns.Describes("llm", "Warning MinAvailableBreached: llm-0-router: * of 4 pods are available, at least 2 are needed: *", "Warning ReplicaTerminated: replica 0 is made anew (attempt 1): llm-0-router: 0 of 4 pods are available, at least 2 are needed: *, for *s",
		"Pods: 16", "Available Pods: 16", "replica 0: attempt 1, Running", "Restarting=False ReplicaRestarted: replica 0, llm-0-router: *")
}
