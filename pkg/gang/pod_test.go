package gang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// podThree is the name of the pod of index 3 in attempt 2 of the clique that newClique makes.
const podThree = "set-0-worker-3-lkg2ifu6"

// corePod is a pod as the API server has it, with the labels that the controller wrote.
func corePod(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podThree, UID: "uid",
			Labels: map[string]string{
				labels.ManagedBy: labels.ManagedByValue, labels.PodClique: "set-0-worker", labels.PodIndex: "3", labels.RestartAttempt: "2", labels.PodTemplateHash: "hash",
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

func ended(name string, code int32, reason string, offset time.Duration) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: at(offset)},
	}}
}

func waiting(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}
}

// loops is a container that failed and waits for its next start.
func loops(name string, code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name:                 name,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: ended(name, code, "Error", 0).State,
	}
}

func runs(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func TestNewPodReads(t *testing.T) {
	base := Pod{Name: podThree, UID: "uid", Index: 3, Attempt: 2, TemplateHash: "hash", Phase: corev1.PodPending}
	with := func(change func(*Pod)) Pod {
		want := base
		change(&want)
		return want
	}
	tests := map[string]struct {
		pod  func(*corev1.Pod)
		want Pod
	}{
		"the labels": {want: base},
		"no template hash, of a pod that somebody relabelled": {
			pod:  func(p *corev1.Pod) { delete(p.Labels, labels.PodTemplateHash) },
			want: with(func(p *Pod) { p.TemplateHash = "" }),
		},
		"its creation": {
			pod:  func(p *corev1.Pod) { p.CreationTimestamp = at(-time.Minute) },
			want: with(func(p *Pod) { p.Created = now.Add(-time.Minute) }),
		},
		"a node": {
			pod:  func(p *corev1.Pod) { p.Spec.NodeName = "node" },
			want: with(func(p *Pod) { p.Scheduled, p.Node = true, "node" }),
		},
		"a scheduling gate": {
			pod:  func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} },
			want: with(func(p *Pod) { p.Gated = true }),
		},
		"readiness": {
			pod: func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodRunning
				p.Status.Conditions = []corev1.PodCondition{
					{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
				}
			},
			want: with(func(p *Pod) { p.Phase, p.Started, p.Ready = corev1.PodRunning, true, true }),
		},
		"unreadiness, whatever else is true": {
			pod: func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{
					{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse},
				}
			},
			want: base,
		},
		"a start by the phase": {
			pod:  func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning },
			want: with(func(p *Pod) { p.Phase, p.Started = corev1.PodRunning, true }),
		},
		"a start by a running init container, though the phase is Pending": {
			pod: func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{runs("init")}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("main")}
			},
			want: with(func(p *Pod) { p.Started = true }),
		},
		"a start by an init container that has ended": {
			pod: func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("first", 0, "Completed", 0), waiting("second")}
			},
			want: with(func(p *Pod) { p.Started = true }),
		},
		"no start while all containers wait": {
			pod: func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{waiting("init")}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("main")}
			},
			want: base,
		},
		"the end of the last container, in whatever order they are listed": {
			pod: func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodSucceeded
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("init", 0, "Completed", time.Hour)}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{
					ended("a", 0, "Completed", -time.Minute), ended("b", 0, "Completed", -time.Second), ended("c", 0, "Completed", -time.Hour),
				}
			},
			want: with(func(p *Pod) { p.Phase, p.Started, p.FinishedAt = corev1.PodSucceeded, true, now.Add(-time.Second) }),
		},
		"the request of a deletion, without the grace that the server adds": {
			pod: func(p *corev1.Pod) {
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(at(30*time.Second)), ptr.To[int64](30)
			},
			want: with(func(p *Pod) { p.DeletionRequested, p.DeletionDue = ptr.To(now), now.Add(30*time.Second) }),
		},
		"the last request of a deletion, which hides when the first one was": {
			pod: func(p *corev1.Pod) {
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(at(-time.Second)), ptr.To[int64](0)
			},
			want: with(func(p *Pod) { p.DeletionRequested, p.DeletionDue = &time.Time{}, now.Add(-time.Second) }),
		},
		"the request of a deletion without a grace period": {
			pod:  func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(at(-time.Second)) },
			want: with(func(p *Pod) { p.DeletionRequested, p.DeletionDue = &time.Time{}, now.Add(-time.Second) }),
		},
		"a container that the kubelet will start once more": {
			pod: func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodRunning
				p.Status.ContainerStatuses = []corev1.ContainerStatus{runs("log"), loops("main", 1)}
			},
			want: with(func(p *Pod) {
				p.Phase, p.Started, p.CrashLooping, p.Failure = corev1.PodRunning, true, true, "fails again and again (main exit code 1)"
			}),
		},
		"an init container that the kubelet will start once more": {
			pod: func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{loops("init", 2)}
			},
			want: with(func(p *Pod) { p.CrashLooping, p.Failure = true, "fails again and again (exit code 2)" }),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, "pod", tc.want, NewPod(training(4), corePod(tc.pod)))
		})
	}
}

// A pod is counted only if all that says which one it is says the same: else it could be
// counted for another.
func TestAPodWhoseLabelsDoNotGoWithItsNameIsAStray(t *testing.T) {
	label := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels[key] = value }
	}
	without := func(key string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { delete(p.Labels, key) }
	}
	tests := map[string]func(*corev1.Pod){
		"a copy":                         func(p *corev1.Pod) { p.Name = "debug" },
		"a copy with a name like it":     func(p *corev1.Pod) { p.Name += "-copy" },
		"the name is of another clique":  func(p *corev1.Pod) { p.Name = naming.Pod("set-0-worker", "another", 3, 2) },
		"the name is of another index":   func(p *corev1.Pod) { p.Name = naming.Pod("set-0-worker", "clique", 2, 2) },
		"the name is of another attempt": func(p *corev1.Pod) { p.Name = naming.Pod("set-0-worker", "clique", 3, 1) },
		"another index":                  label(labels.PodIndex, "4"),
		"an index that is no number":     label(labels.PodIndex, "x"),
		"a negative index":               label(labels.PodIndex, "-1"),
		"an index with leading zeros":    label(labels.PodIndex, "03"),
		"an index that overflows":        label(labels.PodIndex, "4294967299"),
		"no index":                       without(labels.PodIndex),
		"a later attempt":                label(labels.RestartAttempt, "3"),
		"an earlier attempt":             label(labels.RestartAttempt, "1"),
		"an attempt that is no number":   label(labels.RestartAttempt, "one"),
		"no attempt":                     without(labels.RestartAttempt),
		"another clique":                 label(labels.PodClique, "set-0-other"),
		"no clique":                      without(labels.PodClique),
		"managed by another":             label(labels.ManagedBy, "helm"),
		"managed by nobody":              without(labels.ManagedBy),
	}
	if IsStray(training(4), corePod(nil)) {
		t.Error("a pod as it was made is a stray")
	}
	older := corePod(func(p *corev1.Pod) { p.Name = "set-0-worker-3-" + naming.Hash("clique", "2", "hash") })
	if IsStray(training(4), older) {
		t.Error("a pod as an older version made it is a stray: an upgrade would restart it")
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			pod := corePod(change)
			want := Pod{Name: pod.Name, UID: "uid", Stray: true, TemplateHash: "hash", Phase: corev1.PodPending}
			expect(t, "pod", want, NewPod(training(4), pod))
			expect(t, "is a stray", true, IsStray(training(4), pod))
		})
	}
}

func TestNewPodSaysHowAPodFailed(t *testing.T) {
	tests := map[string]struct {
		status corev1.PodStatus
		node   string
		want   string
	}{
		"exit code and node": {
			status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended("main", 1, "Error", 0)}},
			node:   "gpu-17",
			want:   "failed (exit code 1) on node gpu-17",
		},
		"out of memory": {
			status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended("main", 137, "OOMKilled", 0)}},
			node:   "gpu-17",
			want:   "failed (exit code 137, OOMKilled) on node gpu-17",
		},
		"no reason of the container": {
			status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended("main", 2, "", 0)}},
			want:   "failed (exit code 2)",
		},
		"of several containers those that failed, by name": {
			status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
				ended("main", 1, "Error", 0), ended("log", 0, "Completed", 0), ended("proxy", 137, "OOMKilled", 0),
			}},
			want: "failed (main exit code 1; proxy exit code 137, OOMKilled)",
		},
		"a failed init container, by name": {
			status: corev1.PodStatus{
				Phase:                 corev1.PodFailed,
				InitContainerStatuses: []corev1.ContainerStatus{ended("fetch", 3, "Error", 0)},
				ContainerStatuses:     []corev1.ContainerStatus{waiting("main")},
			},
			node: "n",
			want: "failed (fetch exit code 3) on node n",
		},
		"the reason of the pod, when no container ran": {
			status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"},
			node:   "n",
			want:   "failed (OutOfcpu) on node n",
		},
		"both reasons": {
			status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", ContainerStatuses: []corev1.ContainerStatus{ended("main", 143, "Error", 0)}},
			want:   "failed (exit code 143; Evicted)",
		},
		"nothing known": {status: corev1.PodStatus{Phase: corev1.PodFailed}, want: "failed"},
		"a pod that runs has not failed, though a container did": {
			status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{ended("main", 1, "Error", 0)}},
			node:   "n",
		},
		"a pod that succeeded has not failed": {
			status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{ended("main", 0, "Completed", 0)}},
			node:   "n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := NewPod(training(4), corePod(func(p *corev1.Pod) { p.Status, p.Spec.NodeName = tc.status, tc.node }))
			expect(t, "failure", tc.want, pod.Failure)
		})
	}
}

func TestPodEndsByItsPhaseAlone(t *testing.T) {
	tests := map[corev1.PodPhase]bool{
		corev1.PodPending: false, corev1.PodRunning: false, corev1.PodUnknown: false,
		corev1.PodSucceeded: true, corev1.PodFailed: true,
	}
	for phase, want := range tests {
		if diff := cmp.Diff(want, Pod{Phase: phase}.Ended()); diff != "" {
			t.Errorf("%s: %s", phase, diff)
		}
	}
}

// A container that has done its part before the others, or before the phase says that the
// pod has succeeded, does not make its pod unavailable in Training; a node that is not Ready
// does.
func TestAPodWhoseContainersFinishOneAfterTheOther(t *testing.T) {
	exited := func(code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	runs := corev1.ContainerStatus{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	starts := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	tests := map[string]struct {
		reason     string
		containers []corev1.ContainerStatus
		want       bool
	}{
		"one has exited with 0":          {"ContainersNotReady", []corev1.ContainerStatus{exited(0), runs}, true},
		"one has failed":                 {"ContainersNotReady", []corev1.ContainerStatus{exited(1), runs}, false},
		"the other one is not Ready":     {"ContainersNotReady", []corev1.ContainerStatus{exited(0), starts}, false},
		"none has exited":                {"ContainersNotReady", []corev1.ContainerStatus{runs, runs}, false},
		"the node is not Ready":          {"NodeNotReady", []corev1.ContainerStatus{exited(0), runs}, false},
		"all have, one after the other":  {"PodCompleted", []corev1.ContainerStatus{exited(0), exited(0)}, true},
		"the only one has":               {"PodCompleted", []corev1.ContainerStatus{exited(0)}, true},
		"only sidecars are left":         {"ContainersNotReady", []corev1.ContainerStatus{exited(0)}, true},
		"the only one has failed":        {"ContainersNotReady", []corev1.ContainerStatus{exited(1)}, false},
		"all have ended, one has failed": {"PodFailed", []corev1.ContainerStatus{exited(0), exited(1)}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := NewPod(training(4), corePod(func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: tc.containers, Conditions: []corev1.PodCondition{
					{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: tc.reason},
				}}
			}))
			pod.Index, pod.Attempt = 0, 0
			expect(t, "finishing", tc.want, pod.Finishing)
			pod.UID = uidOf(0)
			expect(t, "available in Training", tc.want, IsAvailable(after(training(1), pod)))
			expect(t, "available in Inference", false, IsAvailable(after(inference(1), pod)))
		})
	}
}

// A kubelet tells how the containers of a pod ended before it says that the pod has failed.
func TestAPodThatIsAboutToBeFailed(t *testing.T) {
	status := func(phase corev1.PodPhase, reason string) corev1.PodStatus {
		return corev1.PodStatus{
			Phase:      phase,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: reason}},
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 3},
			}}},
		}
	}
	tests := map[string]struct {
		status corev1.PodStatus
		want   bool
		failed string
	}{
		"its containers have ended":       {status(corev1.PodRunning, "PodFailed"), true, "failed (exit code 3)"},
		"a container may be started anew": {status(corev1.PodRunning, "ContainersNotReady"), false, ""},
		"the phase says it":               {status(corev1.PodFailed, "PodFailed"), false, "failed (exit code 3)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := NewPod(training(4), corePod(func(p *corev1.Pod) { p.Status = tc.status }))
			expect(t, "failing", tc.want, pod.Failing)
			expect(t, "failure", tc.failed, pod.Failure)
		})
	}
}

// after is a clique with the status that a pass over a pod gives it.
func after(clique *grovev1alpha1.PodClique, pod Pod) *grovev1alpha1.PodClique {
	clique.Status = DecideClique(snapshotOf(clique, pods(pod)), now).Status
	return clique
}
