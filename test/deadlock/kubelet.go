package deadlock

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/pkg/naming"
)

// due are what the kubelets can do now.
func (n *nodes) due() []func() {
	var out []func()
	for _, p := range n.pods {
		if at, do := n.step(p); do != nil && !at.After(n.life.now) {
			out = append(out, func() {
				p.since = n.life.now
				do()
			})
		}
	}
	return out
}

// next is when the first of them can do something; zero when none can.
func (n *nodes) next() time.Time {
	var next time.Time
	for _, p := range n.pods {
		if at, do := n.step(p); do != nil && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// step is what happens to a pod next, and when.
func (n *nodes) step(p *podOnNode) (time.Time, func()) {
	act := func(change func()) func() {
		return func() {
			change()
			n.changed(p)
		}
	}
	switch {
	case p.Spec.NodeName == "":
		return time.Time{}, nil
	case p.DeletionTimestamp != nil:
		return p.since.Add(time.Second), func() { n.drop(p) }
	case p.hasEnded():
		return time.Time{}, nil
	case p.waiter() != nil && len(p.Status.InitContainerStatuses) == 0:
		return p.since.Add(p.start), act(func() {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: p.waiter().Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		})
	case p.waits():
		switch code, ends := n.look(p); {
		case ends && code == 0:
			return n.life.now, act(func() { p.pass(n.life.now) })
		case ends:
			return n.life.now, act(func() { p.giveUp(n.life.now) })
		}
		return time.Time{}, nil
	case len(p.Status.InitContainerStatuses) > 0 && p.Status.InitContainerStatuses[0].State.Terminated == nil:
		// The kubelet waits before it lets the waiter try again: it would find the same.
		return time.Time{}, nil
	case p.Status.Phase == corev1.PodPending:
		return p.since.Add(p.start), act(func() { p.run(n.life.now) })
	case p.sick:
		return time.Time{}, nil
	case !p.isReady():
		return p.since.Add(time.Second), act(func() { p.setReady(true) })
	case p.sickens && n.wasAvailable(p):
		return p.since.Add(p.works), act(func() {
			p.sick = true
			p.setReady(false)
		})
	case p.vanishes:
		return p.since.Add(p.works), func() { n.remove(p.UID) }
	case !n.life.isTraining():
		return time.Time{}, nil
	}
	return p.since.Add(p.works), act(func() { p.exit(n.life.now) })
}

func (p *podOnNode) waiter() *corev1.Container {
	i := slices.IndexFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == naming.BarrierContainer || c.Name == naming.OrderContainer
	})
	if i < 0 {
		return nil
	}
	return &p.Spec.InitContainers[i]
}

// waits says that the waiter runs.
func (p *podOnNode) waits() bool {
	return len(p.Status.InitContainerStatuses) > 0 && p.Status.InitContainerStatuses[0].State.Running != nil
}

// look is what the waiter does: it reads its own gate, and there the entry that its
// arguments name.
func (n *nodes) look(p *podOnNode) (code int32, ends bool) {
	arguments := map[string]string{}
	for _, argument := range p.waiter().Args {
		name, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		arguments[name] = value
	}
	for _, have := range n.life.replicas {
		if gate := have.gates[arguments["gate"]]; gate != nil {
			for _, entry := range gate.Status.Cliques {
				if entry.Name == arguments["podclique"] && fmt.Sprint(entry.Attempt) == arguments["attempt"] {
					return map[bool]int32{true: 1}[entry.Expired], entry.Open || entry.Expired
				}
			}
		}
	}
	return 0, false
}

// pass ends the waiter with 0; the pod's own containers start.
func (p *podOnNode) pass(now time.Time) {
	p.Status.InitContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(now)}}
	p.run(now)
}

// giveUp ends the waiter with 1.
func (p *podOnNode) giveUp(now time.Time) {
	status := &p.Status.InitContainerStatuses[0]
	failed := &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(now)}
	if p.Spec.RestartPolicy == corev1.RestartPolicyNever {
		status.State, p.Status.Phase = corev1.ContainerState{Terminated: failed}, corev1.PodFailed
		return
	}
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	status.LastTerminationState.Terminated = failed
}

func (p *podOnNode) run(now time.Time) {
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}}}
	p.setReady(false)
}

// exit ends a pod of Training.
func (p *podOnNode) exit(now time.Time) {
	code := map[bool]int32{true: 1}[p.fails]
	p.Status.Phase = map[bool]corev1.PodPhase{true: corev1.PodFailed, false: corev1.PodSucceeded}[p.fails]
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(now)}}
	p.setReady(false)
}

func (p *podOnNode) isReady() bool {
	return len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Status == corev1.ConditionTrue
}

func (p *podOnNode) setReady(ready bool) {
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready]
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
}

// hasEnded says that no container of the pod runs again.
func (p *podOnNode) hasEnded() bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
