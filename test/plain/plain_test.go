package plain

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/test/framework"
)

func isHeld(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.SchedulingGates {
		if gate.Name == naming.PendingGate {
			return true
		}
	}
	return false
}

// training has three workers that run until they are told to end.
const training = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: job}
spec:
  replicas: 1
  workloadType: Training
  trainingSpec: {maxRestarts: 1}
  template:
    cliques:
      - name: worker
        annotations: {kwok.copse.dev/exit-after: 1h}
        spec:
          replicas: 3
          podSpec: {containers: [{name: main, image: example.com/trainer}]}
`

// A gang starts together as far as that can be had without the scheduler: all its pods are
// held until the last exists, in each attempt.
func TestAGangStartsWhenItIsCompleteInEachAttempt(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(`
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {pods: "2"}}
`)
	ns.Apply(training)
	ns.WaitForPods(2, time.Minute, isHeld)
	ns.Eventually(time.Minute, func(context.Context) error {
		waiting := ns.Set("job").Status.ReplicaStatuses
		if len(waiting) != 1 || waiting[0].WaitingFor == nil || waiting[0].WaitingFor.Status != schedulerv1alpha1.ReasonWaitingForPods || waiting[0].WaitingFor.Message != "2 of 3 pods exist" {
			return fmt.Errorf("the set waits for %+v", waiting)
		}
		return nil
	})
	ns.Kubectl("patch", "resourcequota", "quota", "--type=merge", "-p", `{"spec":{"hard":{"pods":"3"}}}`)
	first := ns.WaitForPods(3, time.Minute, framework.IsReady)

	// The next attempt is held anew: with room for two, none starts.
	ns.Kubectl("patch", "resourcequota", "quota", "--type=merge", "-p", `{"spec":{"hard":{"pods":"2"}}}`)
	ns.Kubectl("annotate", "pod", first[0].Name, "--overwrite", "kwok.copse.dev/exit-code=1", "kwok.copse.dev/exit-after=0s")
	ns.WaitForPods(2, time.Minute, isHeld)
	ns.Kubectl("delete", "resourcequota", "quota")
	for _, pod := range ns.WaitForPods(3, time.Minute, framework.IsReady) {
		ns.Kubectl("annotate", "pod", pod.Name, "--overwrite", "kwok.copse.dev/exit-after=0s")
	}
	if set := ns.WaitForPhase("job", grovev1alpha1.PodCliqueSetSucceeded, time.Minute); set.Status.RestartCount != 1 {
		t.Errorf("%d restarts", set.Status.RestartCount)
	}
}

// A pod that is lost while the gang runs is replaced at once, without a gate.
func TestAReplacementIsNotHeld(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
      - name: server
        spec:
          replicas: 3
          podSpec: {containers: [{name: main, image: example.com/server}]}
`)
	pods := ns.WaitForPods(3, time.Minute, framework.IsReady)
	ns.Kubectl("delete", "pod", pods[0].Name)
	ns.WaitForPods(3, time.Minute, framework.IsReady)
}

func TestTheControllerManagerSaysWhatTheClusterLacks(t *testing.T) {
	t.Parallel()
	cluster.Namespace(t).Eventually(time.Minute, func(context.Context) error {
		if log := cluster.Log(t, "copse-controller-manager"); !strings.Contains(log, "GenericWorkload") {
			return fmt.Errorf("the log does not name the feature gate:\n%s", log)
		}
		return nil
	})
}

// With topology switched off a set with a constraint runs as one without, and says so.
func TestTopologySwitchedOffBlocksNothing(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	ns.Apply(strings.Replace(training, "    cliques:", "    topologyConstraint: {topologyName: gpu, pack: {required: rack}}\n    cliques:", 1))
	ns.WaitForPods(3, time.Minute, framework.IsReady)
	ns.Eventually(time.Minute, func(context.Context) error {
		condition := meta.FindStatusCondition(ns.Set("job").Status.Conditions, grovev1alpha1.ConditionTypeTopologyLevelsUnavailable)
		if condition == nil || condition.Reason != grovev1alpha1.ReasonTopologyDisabled || !strings.Contains(condition.Message, "--topology-aware-scheduling=false") {
			return fmt.Errorf("the condition of the set is %+v", condition)
		}
		return nil
	})
}
