package gang

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// BarrierTimeout is how long after the first pod of a gang has started the others have to;
// zero for ever.
func BarrierTimeout(pcs *grovev1alpha1.PodCliqueSet) time.Duration {
	if pcs.Spec.GroupSchedulingConfig == nil {
		return 0
	}
	return time.Duration(ptr.Deref(pcs.Spec.GroupSchedulingConfig.TimeoutAfterSeconds, 0)) * time.Second
}

// WaitTimeout is how long after the start of its waiter a pod may take the gate to have
// expired unseen, when it cannot read it; zero for never. Where an order comes first, the
// time of the barrier begins with what the pod does not see.
func WaitTimeout(pcs *grovev1alpha1.PodCliqueSet, clique string) time.Duration {
	if !isBarrierTarget(pcs, clique) || len(parentsOf(pcs, clique)) > 0 {
		return 0
	}
	return BarrierTimeout(pcs)
}

func isBarrierTarget(pcs *grovev1alpha1.PodCliqueSet, clique string) bool {
	config := pcs.Spec.GroupSchedulingConfig
	return config != nil && (len(config.TargetCliques) == 0 || slices.Contains(config.TargetCliques, clique))
}

// share is how much of a clique has come somewhere.
type share int32

const (
	shareNone share = iota
	shareSome
	shareAll
)

// startedOf is how much of a clique has come to the barrier.
func startedOf(pods, replicas int32) share {
	switch {
	case pods <= 0:
		return shareNone
	case pods < replicas:
		return shareSome
	}
	return shareAll
}

// decideBarrier opens the gates of a gang's targets when all their pods have started, or
// lets them expire together.
func decideBarrier(s GateSnapshot, gang string, targets []*waiter, decision *GateDecision, now time.Time) {
	// What is scaled to nothing has nobody to wait for; but nobody at all opens no gate.
	all, ready, pods := true, true, int32(0)
	var first *metav1.Time
	var missing []string
	for _, w := range targets {
		ready = ready && w.ready
		have, want := w.started(s.Pods)
		// A time on record runs on, though the first pod may have gone since.
		begun := w.entry.FirstStarted
		if begun == nil && have > 0 {
			begun = ptr.To(metav1.NewTime(now))
		}
		if begun != nil && (first == nil || begun.Before(first)) {
			first = begun
		}
		pods += want
		if have < want {
			all = false
			missing = append(missing, fmt.Sprintf("%s: %d of %d pods have started%s", w.Name, have, want, w.missing(s.Pods)))
		}
	}
	if pods == 0 {
		// Who comes when the gang is wanted again begins its time.
		for _, w := range targets {
			w.forgotten = w.entry.FirstStarted != nil
		}
		return
	}
	if all && ready {
		for _, w := range targets {
			w.entry.Open, w.entry.Since = true, ptr.To(metav1.NewTime(now))
		}
		return
	}
	if first == nil || !ready || all {
		// The time runs from the first pod on, once nothing else holds the gang back.
		return
	}
	timeout := BarrierTimeout(s.Set)
	for _, w := range targets {
		if w.entry.FirstStarted == nil {
			w.entry.FirstStarted = first.DeepCopy()
		}
	}
	if timeout == 0 {
		return
	}
	// Times on record are of whole seconds; the deadline is never early.
	due := deadline(*first, timeout)
	if now.Before(due) {
		decision.Next = earliest(decision.Next, due)
		return
	}
	message := fmt.Sprintf("not all pods have started %s after the first has, %s", timeout, firstOf(missing))
	for _, w := range targets {
		w.entry.Expired, w.entry.Since, w.entry.Message = true, ptr.To(metav1.NewTime(now)), message
		if w.object != nil {
			decision.Expired = append(decision.Expired, w.object)
		}
	}
	decision.Events = append(decision.Events, Event{corev1.EventTypeWarning, EventStartBarrierExpired, fmt.Sprintf("gang %s: %s", gang, message)})
}

// started is how many pods of a clique have come to the barrier, and how many have to: its
// minimum, which a set with a barrier makes all of its template's. Pods by which it was
// scaled out since may lack room, and are let through with the others.
func (w *waiter) started(live map[string][]Pod) (have, want int32) {
	if w.object == nil {
		return 0, w.Template.Spec.Replicas
	}
	want = effectiveMinAvailable(&w.object.Spec)
	if w.object.Spec.Attempt != w.entry.Attempt || !isCurrent(w.object, w.attempt) {
		return 0, want
	}
	pods, looked := live[w.Name]
	switch {
	case looked:
		return countStarted(w.object, splitPods(CliqueSnapshot{Clique: w.object, Pods: pods})), want
	case !isUpToDate(w.object):
		return 0, want
	}
	return w.object.Status.StartedReplicas, want
}

// countStarted counts the pods that have come to the barrier, of those that it waits for.
func countStarted(clique *grovev1alpha1.PodClique, pods podsOf) int32 {
	var n int32
	for index := range effectiveMinAvailable(&clique.Spec) {
		if pod := pods.current.at(index); pod != nil && pod.AtBarrier && !pod.Terminating() {
			n++
		}
	}
	return n
}

// missing names the pods of a clique that have not come to the barrier, where those were
// looked at (D21).
func (w *waiter) missing(live map[string][]Pod) string {
	pods, looked := live[w.Name]
	if !looked || w.object == nil {
		return ""
	}
	current := splitPods(CliqueSnapshot{Clique: w.object, Pods: pods}).current
	var names []string
	for index := range effectiveMinAvailable(&w.object.Spec) {
		pod := current.at(index)
		switch {
		case pod == nil:
			names = append(names, fmt.Sprintf("the one of index %d, which does not exist", index))
		case pod.Terminating():
			names = append(names, pod.Name+", which is being deleted")
		case !pod.AtBarrier && pod.Node == "":
			names = append(names, pod.Name+", which has no node")
		case !pod.AtBarrier:
			names = append(names, pod.Name+" on "+pod.Node)
		}
	}
	if len(names) == 0 {
		// They have come in an attempt that does not count.
		return ""
	}
	return ", missing: " + firstOf(names)
}
