package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/framework"
)

// manifests are one gang of each kind: one that succeeds, one that restarts and then
// succeeds, one that restarts and then has used up its budget, one that exceeds its
// maxRuntime, one inference replica that is terminated, one copy of a scaling group that
// is recycled, and one that is deleted.
const manifests = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: good}
spec:
  replicas: 1
  workloadType: Training
  template:
    cliques:
      - {name: leader, spec: {replicas: 1, podSpec: {containers: [{name: main, image: example.com/trainer}]}}}
      - {name: worker, spec: {replicas: 2, podSpec: {containers: [{name: main, image: example.com/trainer}]}}}
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: again}
spec:
  replicas: 1
  workloadType: Training
  trainingSpec: {maxRestarts: 2}
  template:
    cliques:
      - {name: leader, spec: {replicas: 1, podSpec: {containers: [{name: main, image: example.com/trainer}]}}}
      - {name: worker, spec: {replicas: 1, podSpec: {containers: [{name: main, image: example.com/trainer}]}}}
    podCliqueScalingGroups: [{name: data, cliqueNames: [worker], replicas: 2}]
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: spent}
spec:
  replicas: 1
  workloadType: Training
  trainingSpec: {maxRestarts: 1}
  template:
    cliques:
      - {name: worker, spec: {replicas: 3, podSpec: {containers: [{name: main, image: example.com/trainer}]}}}
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: late}
spec:
  replicas: 1
  workloadType: Training
  trainingSpec: {maxRestarts: 2, maxRuntime: 6s}
  template:
    cliques:
      - {name: worker, spec: {replicas: 2, podSpec: {containers: [{name: main, image: example.com/trainer}]}}}
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: serving}
spec:
  replicas: 1
  template:
    terminationDelay: 1s
    cliques:
      - {name: router, spec: {replicas: 2, podSpec: {containers: [{name: main, image: example.com/server}]}}}
      - {name: engine, spec: {replicas: 1, podSpec: {containers: [{name: main, image: example.com/server}]}}}
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: pool}
spec:
  replicas: 1
  template:
    terminationDelay: 1s
    cliques:
      - {name: engine, spec: {replicas: 2, podSpec: {containers: [{name: main, image: example.com/server}]}}}
    podCliqueScalingGroups: [{name: group, cliqueNames: [engine], replicas: 2, minAvailable: 1}]
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: gone}
spec:
  replicas: 1
  workloadType: Training
  template:
    cliques:
      - {name: worker, spec: {replicas: 3, podSpec: {containers: [{name: main, image: example.com/trainer}]}}}
`

// patience bounds each wait. A controller manager that dies at each of its writes is slow.
const patience = 90 * time.Second

// gangs are the sets of the manifests in a namespace, in the hands of the user that a test
// plays. The user goes on trying while servers are down.
type gangs struct {
	t  *testing.T
	ns *framework.Namespace
	// before are the pods of attempt 0, and restarted those of attempt 1.
	before, restarted map[string][]corev1.Pod
}

// applyGangs makes the sets in a namespace of their own.
func applyGangs(t *testing.T, options ...framework.NamespaceOption) *gangs {
	t.Helper()
	g := &gangs{t: t, ns: cluster.Namespace(t, options...), before: map[string][]corev1.Pod{}, restarted: map[string][]corev1.Pod{}}
	g.ns.History.AllowLate()
	g.ns.Apply(manifests)
	return g
}

// sizes are how many pods each set has, of those whose pods are waited for.
func sizes() map[string]int {
	return map[string]int{"good": 3, "again": 3, "spent": 3, "serving": 3, "pool": 4, "gone": 3}
}

// run waits until the gangs run, has strike happen to them, and waits for their ends.
func (g *gangs) run(strike func()) {
	g.t.Helper()
	for name, size := range sizes() {
		g.before[name] = g.ready(name, size, "0")
	}
	// What was never available is not terminated, and that it was is for the controller
	// manager to record.
	g.available("serving-0-router", "pool-0-group-1-engine")
	strike()
	g.restarted["spent"] = g.ready("spent", 3, "1")
	g.exit(g.restarted["spent"][2], 1)
	g.restarted["again"] = g.ready("again", 3, "1")
	for _, pod := range g.restarted["again"] {
		g.exit(pod, 0)
	}
	g.ends()
}

// strike is what happens to each gang: its pods end or fail, or the user deletes it.
func (g *gangs) strike() {
	g.t.Helper()
	g.exit(g.before["again"][1], 1)
	g.exit(g.before["spent"][0], 1)
	g.annotate(pick(g.t, g.before["serving"], "serving-0-router"), map[string]string{"kwok.copse.dev/never-ready": "true"})
	g.annotate(pick(g.t, g.before["pool"], "pool-0-group-1-engine"), map[string]string{"kwok.copse.dev/never-ready": "true"})
	g.try(func(ctx context.Context) error {
		return cluster.Copse.GroveV1alpha1().PodCliqueSets(g.ns.Name).Delete(ctx, "gone", metav1.DeleteOptions{})
	})
	for _, pod := range g.before["good"] {
		g.exit(pod, 0)
	}
}

// ends waits for the end of each set, and looks at the pods that are left.
func (g *gangs) ends() {
	g.t.Helper()
	g.finished("good", grovev1alpha1.PodCliqueSetSucceeded, 0, "")
	g.finished("again", grovev1alpha1.PodCliqueSetSucceeded, 1, "")
	g.finished("spent", grovev1alpha1.PodCliqueSetFailed, 1, grovev1alpha1.ReasonMaxRestartsExceeded)
	g.finished("late", grovev1alpha1.PodCliqueSetFailed, 0, grovev1alpha1.ReasonMaxRuntimeExceeded)
	serving, pool := g.ready("serving", 3, "1"), g.ready("pool", 2, "1")
	g.try(func(ctx context.Context) error {
		_, err := cluster.Copse.GroveV1alpha1().PodCliqueSets(g.ns.Name).Get(ctx, "gone", metav1.GetOptions{})
		if err == nil {
			return errors.New("the deleted set is still there")
		}
		return client.IgnoreNotFound(err)
	})
	// What a set leaves: finished pods of its last attempt, and pods that serve.
	left := map[string][]corev1.Pod{
		"good": g.before["good"], "again": g.restarted["again"], "spent": g.restarted["spent"][2:], "serving": serving,
		"pool": slices.Concat(ofClique(g.before["pool"], "pool-0-group-0-engine"), pool),
	}
	g.try(func(ctx context.Context) error {
		pods, err := g.ns.Pods(ctx)
		if err != nil {
			return err
		}
		for _, name := range []string{"good", "again", "spent", "late", "serving", "pool", "gone"} {
			if have, want := uids(ofSet(pods, name)), uids(left[name]); !slices.Equal(have, want) {
				return fmt.Errorf("pods of %s are %v, want %v", name, have, want)
			}
		}
		return nil
	})
}

// finished waits until a training set is over, as often restarted as it should be.
func (g *gangs) finished(name string, phase grovev1alpha1.PodCliqueSetPhase, restarts int32, reason string) {
	g.t.Helper()
	status := g.ns.WaitForPhase(name, phase, patience).Status
	have := ""
	if failed := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeFailed); failed != nil {
		have = failed.Reason
	}
	if status.RestartCount != restarts || have != reason {
		g.t.Errorf("%s ended after %d restarts with reason %q, want %d and %q", name, status.RestartCount, have, restarts, reason)
	}
	if attempt := status.ReplicaStatuses[0].Attempt; attempt != restarts {
		g.t.Errorf("%s ended in attempt %d, want %d", name, attempt, restarts)
	}
}

// ready waits until as many pods of an attempt of a set are Ready, and returns them by index.
func (g *gangs) ready(name string, count int, attempt string) []corev1.Pod {
	g.t.Helper()
	var found []corev1.Pod
	g.try(func(ctx context.Context) error {
		pods, err := g.ns.Pods(ctx)
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(ofSet(pods, name), func(pod corev1.Pod) bool {
			return pod.Labels[labels.RestartAttempt] != attempt || !framework.IsReady(&pod)
		})
		if len(found) != count {
			return fmt.Errorf("%d pods of attempt %s of %s are ready, want %d", len(found), attempt, name, count)
		}
		return nil
	})
	return found
}

// available waits until it is recorded that cliques were available.
func (g *gangs) available(cliques ...string) {
	g.t.Helper()
	for _, name := range cliques {
		g.try(func(ctx context.Context) error {
			clique, err := cluster.Copse.GroveV1alpha1().PodCliques(g.ns.Name).Get(ctx, name, metav1.GetOptions{})
			if err == nil && !clique.Status.WasAvailable {
				err = fmt.Errorf("%s was not available", name)
			}
			return err
		})
	}
}

// exit lets the container of a pod end with a code.
func (g *gangs) exit(pod corev1.Pod, code int) {
	g.t.Helper()
	g.annotate(pod, map[string]string{"kwok.copse.dev/exit-after": "0s", "kwok.copse.dev/exit-code": fmt.Sprint(code)})
}

func (g *gangs) annotate(pod corev1.Pod, annotations map[string]string) {
	g.t.Helper()
	patch, err := patchOf(pod.UID, annotations)
	if err != nil {
		g.t.Fatal(err)
	}
	g.try(func(ctx context.Context) error {
		_, err := cluster.Kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

func (g *gangs) try(do func(context.Context) error) {
	g.t.Helper()
	g.ns.Eventually(patience, do)
}

// waitFor waits for something to happen, and fails with what it means when it does not.
func (g *gangs) waitFor(happened <-chan struct{}, otherwise string) {
	g.t.Helper()
	g.try(func(context.Context) error {
		select {
		case <-happened:
			return nil
		default:
			return errors.New(otherwise)
		}
	})
}
