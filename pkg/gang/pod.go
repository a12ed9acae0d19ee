package gang

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// Pod is what decisions need to know of a pod.
type Pod struct {
	Name string
	UID  types.UID
	// Version is the resourceVersion that was seen.
	Version string
	// Stray says that the pod is none that the controller knows, though the clique controls
	// it: see IsStray. It counts as nothing, and goes. Index and Attempt are zero.
	Stray        bool
	Index        int32
	Attempt      int32
	TemplateHash string
	Phase        corev1.PodPhase
	// Ready is the pod's Ready condition.
	Ready bool
	// Finishing says that the pod is not Ready only because containers have exited with 0:
	// some before the others, or all and the phase does not say so yet.
	Finishing bool
	// Failing says that the pod has failed and the phase does not say so yet.
	Failing bool
	// Scheduled says that the pod has a node.
	Scheduled bool
	// Gated says that a scheduling gate holds the pod.
	Gated bool
	// Started says that a container, or an init container, runs or has run.
	Started bool
	// AtBarrier says that the pod has come to the start barrier: its container there runs, or
	// has ended with 0.
	AtBarrier bool
	// CrashLooping says that the kubelet waits before it starts a container once more.
	CrashLooping bool
	// Node is the node that the pod is bound to, if any.
	Node string
	// DeletionRequested is when the deletion of the pod was asked for, or nil. It is zero
	// when that is not known.
	DeletionRequested *time.Time
	// DeletionDue is when the grace period of a requested deletion ends.
	DeletionDue time.Time
	// Created is when the API server made the pod.
	Created time.Time
	// FinishedAt is when the last container ended, by the clock of the node; zero when that
	// is not known.
	FinishedAt time.Time
	// Failure says for people how the pod failed; empty when it has not.
	Failure string
}

// IsStray says that a pod that a PodClique controls is not as the controller made it: the
// labels by which it is found, and that say which pod of the clique it is, do not go with its
// name. It is a copy of a pod, or somebody has changed its labels. Guessing could count one
// pod for another.
func IsStray(clique *grovev1alpha1.PodClique, pod *corev1.Pod) bool {
	_, _, ok := (&podNames{clique: clique}).identify(pod)
	return !ok
}

// podNames tells which pod of a clique a pod is, without making the name of each: those of
// one attempt differ by their index alone.
type podNames struct {
	clique         *grovev1alpha1.PodClique
	attempt        int32
	prefix, suffix string
}

// has says that a name is one that the controller gives, or that an older version gave: an
// upgrade restarts no pod.
func (n *podNames) has(pod *corev1.Pod, index, attempt int32) bool {
	if n.suffix == "" || n.attempt != attempt {
		n.attempt, n.prefix = attempt, strings.TrimSuffix(naming.Hostname(n.clique.Name, 0), "0")
		n.suffix = strings.TrimPrefix(naming.Pod(n.clique.Name, n.clique.UID, 0, attempt), n.prefix+"0")
	}
	rest, isPrefixed := strings.CutPrefix(pod.Name, n.prefix)
	rest, isSuffixed := strings.CutSuffix(rest, n.suffix)
	return isPrefixed && isSuffixed && rest == pod.Labels[labels.PodIndex] ||
		pod.Name == naming.PodOfTemplate(n.clique.Name, n.clique.UID, index, attempt, pod.Labels[labels.PodTemplateHash])
}

func (n *podNames) identify(pod *corev1.Pod) (index, attempt int32, ok bool) {
	index, isIndex := labels.ParseIndex(pod.Labels[labels.PodIndex])
	attempt, isAttempt := labels.ParseIndex(pod.Labels[labels.RestartAttempt])
	if !isIndex || !isAttempt || !labels.IsManaged(pod.Labels) || pod.Labels[labels.PodClique] != n.clique.Name ||
		!n.has(pod, index, attempt) {
		return 0, 0, false
	}
	return index, attempt, true
}

// NewPod reads a pod that a PodClique controls.
func NewPod(clique *grovev1alpha1.PodClique, pod *corev1.Pod) Pod {
	return (&podNames{clique: clique}).read(pod)
}

func (n *podNames) read(pod *corev1.Pod) Pod {
	index, attempt, ok := n.identify(pod)
	out := Pod{
		Name:         pod.Name,
		UID:          pod.UID,
		Version:      pod.ResourceVersion,
		Stray:        !ok,
		Index:        index,
		Attempt:      attempt,
		TemplateHash: pod.Labels[labels.PodTemplateHash],
		Phase:        pod.Status.Phase,
		Ready:        isReady(pod),
		Scheduled:    pod.Spec.NodeName != "",
		Gated:        len(pod.Spec.SchedulingGates) > 0,
		Finishing:    isFinishing(pod),
		Failing:      isAboutToFail(pod),
		Started:      hasStarted(pod),
		AtBarrier:    isAtBarrier(pod),
		CrashLooping: isCrashLooping(pod),
		Node:         pod.Spec.NodeName,
		Created:      pod.CreationTimestamp.Time,
		FinishedAt:   finishedAt(pod),
	}
	if pod.DeletionTimestamp != nil {
		requested := deletionRequested(pod)
		out.DeletionRequested = &requested
		out.DeletionDue = pod.DeletionTimestamp.Time
	}
	if pod.Status.Phase == corev1.PodFailed || out.CrashLooping || out.Failing {
		out.Failure = describeFailure(pod)
	}
	return out
}

// NewPods reads pods that a PodClique controls.
func NewPods(clique *grovev1alpha1.PodClique, pods []corev1.Pod) []Pod {
	out, names := make([]Pod, 0, len(pods)), podNames{clique: clique}
	for i := range pods {
		out = append(out, names.read(&pods[i]))
	}
	return out
}

// Terminating says that the pod is being deleted.
func (p Pod) Terminating() bool {
	return p.DeletionRequested != nil
}

// Ended says that no container of the pod will run again.
func (p Pod) Ended() bool {
	return p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// The kubelet tells the end of a pod in two writes: first how the containers ended, with
// these reasons of the pod's readiness if none will be started again, and then, when it has
// taken the pod down (which waits for containers that only help the others), the phase.
const (
	reasonContainersNotReady = "ContainersNotReady"
	reasonPodCompleted       = "PodCompleted"
	reasonPodFailed          = "PodFailed"
)

// readyReason is why a pod is not Ready. A node that is not Ready takes the readiness of its
// pods as well, and gives another reason.
func readyReason(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status != corev1.ConditionTrue {
			return condition.Reason
		}
	}
	return ""
}

// isAboutToFail sees a pod between the two writes that tell its end.
func isAboutToFail(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && readyReason(pod) == reasonPodFailed
}

// isFinishing sees a pod whose work is done, partly or between the two writes that tell its
// end.
func isFinishing(pod *corev1.Pod) bool {
	reason := readyReason(pod)
	if pod.Status.Phase != corev1.PodRunning || (reason != reasonContainersNotReady && reason != reasonPodCompleted) {
		return false
	}
	done := false
	for _, status := range pod.Status.ContainerStatuses {
		exited := status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
		if !exited && !status.Ready {
			return false
		}
		done = done || exited
	}
	return done
}

func hasStarted(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodRunning {
		return true
	}
	return anyContainer(pod, func(status *corev1.ContainerStatus) bool {
		return status.State.Running != nil || status.State.Terminated != nil
	})
}

// isAtBarrier reads the container that waits at the barrier. The phase of a pod that waits
// there is Pending.
func isAtBarrier(pod *corev1.Pod) bool {
	for _, status := range pod.Status.InitContainerStatuses {
		if status.Name == naming.BarrierContainer {
			return status.State.Running != nil || (status.State.Terminated != nil && status.State.Terminated.ExitCode == 0)
		}
	}
	return false
}

// isCrashLooping sees what the kubelet shows between two starts of a container that keeps
// failing, which restartPolicy OnFailure allows in Training (D8).
func isCrashLooping(pod *corev1.Pod) bool {
	return anyContainer(pod, func(status *corev1.ContainerStatus) bool {
		return status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff"
	})
}

// anyContainer asks about the containers of a pod, init containers among them.
func anyContainer(pod *corev1.Pod, is func(*corev1.ContainerStatus) bool) bool {
	for _, statuses := range [...][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if is(&statuses[i]) {
				return true
			}
		}
	}
	return false
}

func finishedAt(pod *corev1.Pod) time.Time {
	var last metav1.Time
	for _, status := range pod.Status.ContainerStatuses {
		if t := status.State.Terminated; t != nil && last.Before(&t.FinishedAt) {
			last = t.FinishedAt
		}
	}
	return last.Time
}

// deletionRequested undoes what the API server adds to the moment of the request. A kubelet
// that has ended the containers asks once more, without a grace period, and the API server
// then notes the moment of that: the one of the first request is lost.
func deletionRequested(pod *corev1.Pod) time.Time {
	grace := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
	if grace == 0 {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
}

func describeFailure(pod *corev1.Pod) string {
	var parts []string
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		t := status.State.Terminated
		if status.State.Waiting != nil {
			t = status.LastTerminationState.Terminated
		}
		if t == nil || t.ExitCode == 0 {
			continue
		}
		part := fmt.Sprintf("exit code %d", t.ExitCode)
		if t.Reason != "" && t.Reason != "Error" {
			part += ", " + t.Reason
		}
		if len(pod.Status.ContainerStatuses)+len(pod.Status.InitContainerStatuses) > 1 {
			part = status.Name + " " + part
		}
		parts = append(parts, part)
	}
	if pod.Status.Reason != "" {
		parts = append(parts, pod.Status.Reason)
	}
	text := "failed"
	if isCrashLooping(pod) {
		text = "fails again and again"
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, "; ") + ")"
	}
	if pod.Spec.NodeName != "" {
		text += " on node " + pod.Spec.NodeName
	}
	return text
}
