package chaos

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podspec"
)

// waiterOf is the init container in which a pod waits to start; nil when it does not wait.
func waiterOf(pod *corev1.Pod) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == naming.BarrierContainer || c.Name == naming.OrderContainer
	})
	if i < 0 {
		return nil
	}
	return &pod.Spec.InitContainers[i]
}

// waits says that the own containers of a pod have not started since it waits, or has yet
// to come to where it waits.
func waits(pod *corev1.Pod) bool {
	return waiterOf(pod) != nil && len(pod.Status.ContainerStatuses) == 0
}

// waiterState is how the container is in which a pod waits; empty before it has started.
func waiterState(pod *corev1.Pod) corev1.ContainerState {
	if len(pod.Status.InitContainerStatuses) == 0 {
		return corev1.ContainerState{}
	}
	return pod.Status.InitContainerStatuses[0].State
}

// waiting is what happens next to a pod whose own containers have not started.
func (w *world) waiting(pod *corev1.Pod, outcome Outcome, act func(string, time.Time, func(*corev1.Pod)) *action) *action {
	switch state := waiterState(pod); {
	case outcome.Stuck, state.Waiting != nil:
		return nil
	case state.Terminated != nil:
		return act("has started", w.since[pod.UID].Add(startTime), start)
	case state.Running == nil:
		return act("has the waiter run in", w.since[pod.UID].Add(startTime), func(pod *corev1.Pod) {
			setWaiter(pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now()}})
		})
	}
	open, expired := w.readGate(pod, outcome.ByFile)
	switch {
	case open:
		return act("sees the gate open for", time.Now(), func(pod *corev1.Pod) { endWaiter(pod, 0) })
	case expired:
		return act("sees the gate expired for", time.Now(), func(pod *corev1.Pod) { endWaiter(pod, 1) })
	}
	return nil
}

// readGate is what the waiter of a pod learns, by its own arguments alone: from its
// StartGate or, where it does not reach the API, from the file that is mounted for it.
func (w *world) readGate(pod *corev1.Pod, byFile bool) (open, expired bool) {
	arguments := map[string]string{}
	for _, argument := range waiterOf(pod).Args {
		name, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		arguments[name] = value
	}
	if byFile {
		return w.isListed(pod, arguments["podclique"]+" "+arguments["attempt"]), false
	}
	obj, err := w.run.ours.get(KindGate, types.NamespacedName{Namespace: arguments["namespace"], Name: arguments["gate"]})
	if err != nil {
		return false, false
	}
	for _, entry := range obj.(*grovev1alpha1.StartGate).Status.Cliques {
		if entry.Name == arguments["podclique"] && labels.Index(entry.Attempt) == arguments["attempt"] {
			return entry.Open, entry.Expired
		}
	}
	return false, false
}

// isListed looks for a line in the file that is mounted into the waiter of a pod.
func (w *world) isListed(pod *corev1.Pod, line string) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != naming.BarrierVolume {
			continue
		}
		obj, err := w.run.cluster.get(KindConfigMap, types.NamespacedName{Namespace: pod.Namespace, Name: volume.ConfigMap.Name})
		return err == nil && slices.Contains(strings.Split(obj.(*corev1.ConfigMap).Data[podspec.GateFile], "\n"), line)
	}
	return false
}

func setWaiter(pod *corev1.Pod, state corev1.ContainerState) {
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: waiterOf(pod).Name, State: state}}
	setReady(pod, false)
}

// endWaiter ends the container in which a pod waits. Where the kubelet starts again what has
// failed, it lets it wait before.
func endWaiter(pod *corev1.Pod, code int32) {
	end := &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: now(), FinishedAt: now()}
	if code == 0 || pod.DeletionTimestamp != nil || pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		setWaiter(pod, corev1.ContainerState{Terminated: end})
		return
	}
	setWaiter(pod, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}})
	pod.Status.InitContainerStatuses[0].LastTerminationState.Terminated = end
}
