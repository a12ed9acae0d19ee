package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

// The integration tests of seed 003, by its own words, and the scenarios of its peers.

// ordered is a set whose cliques start one after the other. Pods of the first clique are
// not ready until somebody lets them.
func ordered(replicas int, spec string) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: %d
%s
  template:
    cliques:
      - name: first
        annotations: {kwok.copse.dev/never-ready: "true"}
        spec:
          replicas: 2
          podSpec: {containers: [{name: main, image: example.com/first}]}
      - name: second
        annotations: {kwok.copse.dev/never-ready: "true"}
        spec:
          replicas: 2
          podSpec: {containers: [{name: main, image: example.com/second}]}
      - name: third
        spec:
          replicas: 1
          podSpec: {containers: [{name: main, image: example.com/third}]}
`, replicas, spec)
}

const (
	trainingInOrder = "  workloadType: Training\n  trainingSpec: {maxRestarts: 1}\n  startupPolicy: {startupPolicyOrder: InOrder}"
	// succeedingInOrder waits for the first clique to end.
	succeedingInOrder = "  workloadType: Training\n  startupPolicy: {startupPolicyOrder: InOrder, rules: [{targetCliques: [first], waitForCliquesStatus: Succeeded}, {targetCliques: [second]}]}"
)

// letReady makes pods of a clique of a replica ready, of one index or of all.
func letReady(ns *framework.Namespace, clique, index string) {
	selector := labels.PodClique + "=" + clique
	if index != "" {
		selector += "," + labels.PodIndex + "=" + index
	}
	ns.Kubectl("annotate", "pods", "-l", selector, "kwok.copse.dev/never-ready-")
}

func endClique(ns *framework.Namespace, clique string, code int) {
	ns.Kubectl("annotate", "pods", "-l", labels.PodClique+"="+clique, "--overwrite", "kwok.copse.dev/exit-after=0s", fmt.Sprintf("kwok.copse.dev/exit-code=%d", code))
}

func isRunning(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
}

func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// stays sees for a while that a set's PodCliques are these and no other, in alphabetical
// order, and how many pods there are.
func stays(ns *framework.Namespace, pods int, cliques ...string) {
	ns.Never(2*time.Second, func(ctx context.Context) error {
		list, err := cluster.Copse.GroveV1alpha1().PodCliques(ns.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		if slices.Sort(names); !slices.Equal(names, cliques) {
			return fmt.Errorf("the PodCliques are %v, not %v", names, cliques)
		}
		all, err := ns.Pods(ctx)
		if err == nil && len(all) != pods {
			err = fmt.Errorf("there are %d pods, not %d", len(all), pods)
		}
		return err
	})
}

// startupIs waits until the order of the set is in progress, or completed, and returns since when.
func startupIs(ns *framework.Namespace, completed bool) time.Time {
	var since time.Time
	ns.Eventually(30*time.Second, func(context.Context) error {
		set := ns.Set("job")
		progress := meta.FindStatusCondition(set.Status.Conditions, grovev1alpha1.ConditionTypeStartupPolicyInProgress)
		done := meta.FindStatusCondition(set.Status.Conditions, grovev1alpha1.ConditionTypeStartupPolicyCompleted)
		if progress == nil || done == nil {
			return errors.New("the conditions are not there")
		}
		if (progress.Status == metav1.ConditionTrue) == completed || (done.Status == metav1.ConditionTrue) != completed {
			return fmt.Errorf("in progress is %s, completed is %s", progress.Status, done.Status)
		}
		since = progress.LastTransitionTime.Time
		return nil
	})
	return since
}

// "Using ready status with 2+ cliques": scenarios 1, 2, 3, 5, 13.
func TestStagesStartWhenTheOneBeforeIsReady(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(ordered(1, trainingInOrder))
	ns.WaitForPods(2, time.Minute, isRunning)
	startupIs(ns, false)
	stays(ns, 2, "job-0-first")
	ns.Eventually(10*time.Second, func(context.Context) error {
		if row := ns.Kubectl("get", "pcs", "job", "--no-headers"); !containsAll(row, "second: first Ready (0/2)") {
			return errors.New(row)
		}
		return nil
	})
	// Half of it is not enough, and what was ready counts only while it is.
	letReady(ns, "job-0-first", "0")
	ns.Eventually(10*time.Second, func(context.Context) error {
		if waiting := ns.Set("job").Status.ReplicaStatuses[0].WaitingFor; waiting == nil || waiting.Have != 1 {
			return fmt.Errorf("it waits for %+v", waiting)
		}
		return nil
	})
	stays(ns, 2, "job-0-first")
	letReady(ns, "job-0-first", "")
	ns.WaitForPods(4, 30*time.Second, isRunning)
	startupIs(ns, false)
	stays(ns, 4, "job-0-first", "job-0-second")
	letReady(ns, "job-0-second", "")
	ns.WaitForPods(5, 30*time.Second, framework.IsReady)
	startupIs(ns, true)
	// What has begun is not taken back.
	pod := podOf(t, ns.WaitForPods(5, time.Minute, framework.IsReady), "job-0-first", "0")
	ns.Kubectl("annotate", "pod", pod.Name, "--overwrite", "kwok.copse.dev/exit-after=0s")
	ns.Never(2*time.Second, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err == nil && len(pods) != 5 {
			err = fmt.Errorf("there are %d pods", len(pods))
		}
		return err
	})
	startupIs(ns, true)
	finish(ns)
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, 30*time.Second)
	startupIs(ns, true)
	if events := ns.Kubectl("get", "events", "--field-selector", "reason=StageOpened", "-o", "jsonpath={.items[*].note}{.items[*].message}"); !containsAll(events,
		"replica 0: clique second starts, since first is Ready (2/2)", "replica 0: clique third starts, since second is Ready (2/2)") {
		t.Errorf("events: %s", events)
	}
}

// "Using succeeded status with 2+ cliques": scenario 4.
func TestStagesStartWhenTheOneBeforeHasSucceeded(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(ordered(1, succeedingInOrder))
	ns.WaitForPods(2, time.Minute, isRunning)
	letReady(ns, "job-0-first", "")
	ns.WaitForPods(2, time.Minute, framework.IsReady)
	stays(ns, 2, "job-0-first")
	endClique(ns, "job-0-first", 0)
	ns.WaitForPods(4, 30*time.Second, func(*corev1.Pod) bool { return true })
	letReady(ns, "job-0-second", "")
	startupIs(ns, true)
	finish(ns)
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, 30*time.Second)
}

// "If the first fails, the second does not execute": scenario 7.
func TestALaterStageNeverRunsWhenAnEarlierFails(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(ordered(1, succeedingInOrder))
	ns.WaitForPods(2, time.Minute, isRunning)
	endClique(ns, "job-0-first", 1)
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetFailed, 30*time.Second)
	if _, err := cluster.Copse.GroveV1alpha1().PodCliques(ns.Name).Get(t.Context(), "job-0-second", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the second clique: %v", err)
	}
	if c := meta.FindStatusCondition(ns.Set("job").Status.Conditions, grovev1alpha1.ConditionTypeStartupPolicyInProgress); c == nil || c.Status == metav1.ConditionTrue {
		t.Errorf("a failed set's order: %+v", c)
	}
}

// "With a restart, the sequence starts again from the beginning": scenario 8.
func TestARestartReplaysTheOrder(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(ordered(1, trainingInOrder))
	ns.WaitForPods(2, time.Minute, isRunning)
	letReady(ns, "job-0-first", "")
	ns.WaitForPods(4, 30*time.Second, isRunning)
	letReady(ns, "job-0-second", "")
	ns.WaitForPods(5, 30*time.Second, framework.IsReady)
	completed := startupIs(ns, true)

	endClique(ns, "job-0-third", 1)
	again := ns.WaitForPods(2, 30*time.Second, func(pod *corev1.Pod) bool { return isRunning(pod) && pod.Labels[labels.RestartAttempt] == "1" })
	for i := range again {
		if again[i].Labels[labels.PodClique] != "job-0-first" {
			t.Errorf("pod %s is made first", again[i].Name)
		}
	}
	if since := startupIs(ns, false); since.Before(completed) {
		t.Errorf("it is in progress since %s, and was completed at %s", since, completed)
	}
	stays(ns, 2, "job-0-first", "job-0-second", "job-0-third")
	letReady(ns, "job-0-first", "")
	ns.WaitForPods(4, 30*time.Second, isRunning)
	letReady(ns, "job-0-second", "")
	ns.WaitForPods(5, 30*time.Second, framework.IsReady)
	startupIs(ns, true)
	finish(ns)
	if set := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, 30*time.Second); set.Status.RestartCount != 1 {
		t.Errorf("restartCount is %d", set.Status.RestartCount)
	}
}

// "Controller restart in the middle of the execution": scenario 9.
func TestTheOrderGoesOnAfterTheControllerWasKilled(t *testing.T) {
	ns := cluster.Namespace(t)
	ns.Apply(ordered(1, succeedingInOrder))
	first := ns.WaitForPods(2, time.Minute, isRunning)
	endClique(ns, "job-0-first", 0)
	cluster.Kill(t, "copse-controller-manager")
	ns.WaitForPods(4, time.Minute, func(*corev1.Pod) bool { return true })
	cluster.Kill(t, "copse-controller-manager")
	letReady(ns, "job-0-second", "")
	pods := ns.WaitForPods(5, time.Minute, func(*corev1.Pod) bool { return true })
	seen := map[types.UID]bool{}
	for i := range pods {
		seen[pods[i].UID] = true
	}
	for i := range first {
		if !seen[first[i].UID] {
			t.Errorf("pod %s was made again", first[i].Name)
		}
	}
	startupIs(ns, true)
	finish(ns)
	ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, 30*time.Second)
}

// Scenario 6.
func TestWithoutAnOrderAllCliquesStartAtOnce(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(ordered(1, "  workloadType: Training\n  startupPolicy: {startupPolicyOrder: AnyOrder}"))
	ns.WaitForPods(5, time.Minute, isRunning)
	for _, c := range ns.Set("job").Status.Conditions {
		if c.Type == grovev1alpha1.ConditionTypeStartupPolicyInProgress || c.Type == grovev1alpha1.ConditionTypeStartupPolicyCompleted {
			t.Errorf("condition %s is there", c.Type)
		}
	}
}

// Scenario 15: each replica goes through the order by itself.
func TestReplicasDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(ordered(2, trainingInOrder))
	ns.WaitForPods(4, time.Minute, isRunning)
	letReady(ns, "job-0-first", "")
	ns.WaitForPods(6, 30*time.Second, isRunning)
	stays(ns, 6, "job-0-first", "job-0-second", "job-1-first")
}

// Scenario 16, and a copy that comes later, which goes through the order by itself.
func TestCopiesOfAScalingGroupStartInOrder(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: 1
  startupPolicy: {startupPolicyOrder: InOrder}
  template:
    cliques:
      - name: leader
        annotations: {kwok.copse.dev/never-ready: "true"}
        spec: {replicas: 1, podSpec: {containers: [{name: main, image: example.com/leader}]}}
      - name: worker
        spec: {replicas: 2, podSpec: {containers: [{name: main, image: example.com/worker}]}}
    podCliqueScalingGroups:
      - {name: group, cliqueNames: [leader, worker], replicas: 2, minAvailable: 1}
`)
	ns.WaitForPods(1, time.Minute, isRunning)
	letReady(ns, "job-0-group-0-leader", "")
	// The gang of the further copy follows the base gang of the same clique.
	ns.WaitForPods(2, time.Minute, isRunning)
	stays(ns, 2, "job-0-group-0-leader", "job-0-group-1-leader")
	letReady(ns, "job-0-group-1-leader", "")
	ns.WaitForPods(6, time.Minute, framework.IsReady)
	startupIs(ns, true)

	ns.Kubectl("scale", "pcsg", "job-0-group", "--replicas=3")
	ns.WaitForPods(7, time.Minute, isRunning)
	ns.Never(2*time.Second, func(ctx context.Context) error {
		pods, err := ns.Pods(ctx)
		if err == nil && len(pods) != 7 {
			err = fmt.Errorf("there are %d pods", len(pods))
		}
		return err
	})
	letReady(ns, "job-0-group-2-leader", "")
	ns.WaitForPods(9, time.Minute, framework.IsReady)
}
