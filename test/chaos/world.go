package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// The one node of the cluster, and how long things take on it.
const (
	nodeName  = "node"
	startTime = time.Second
	stopTime  = 2 * time.Second
)

// PodID says which pod of a set a pod is.
type PodID struct {
	// Clique is the name of the PodClique.
	Clique         string
	Index, Attempt int32
	// Incarnation counts the pods that there have been of the index and attempt, from 0.
	Incarnation int
}

// Outcome is what becomes of a pod that runs. The zero value runs for ever.
type Outcome struct {
	// After is how long the pod runs until it ends with Exit, or turns not Ready. The
	// time 0 is never.
	After time.Duration
	Exit  int32
	// Unready says that the pod does not end.
	Unready bool
	// AtOnce says that the pod starts, and ends, as soon as it has a node.
	AtOnce bool
	// Stuck says that the pod never comes to where it waits to start.
	Stuck bool
	// ByFile says that its waiter does not reach the API, and reads the ConfigMap.
	ByFile bool
}

// world is the scheduler, the kubelet, the garbage collector and the user.
type world struct {
	run *Run
	// since is when a pod was bound, began to run, turned not Ready or ended.
	since map[types.UID]time.Time
	// incarnations are the pods of each identity, in the order of their creation.
	incarnations map[PodID][]types.UID
	// finished are the pods that have exited with 0 by themselves.
	finished map[PodID]bool
	// scaled is how many of the scenario's scalings have been done.
	scaled int
	// changed is how many of its changes have been made.
	changed int
}

func newWorld(r *Run) *world {
	return &world{run: r, since: map[types.UID]time.Time{}, incarnations: map[PodID][]types.UID{}, finished: map[PodID]bool{}}
}

// action is something that the world can do.
type action struct {
	name string
	at   time.Time
	do   func()
}

// due are the actions whose time has come, the earliest first.
func (w *world) due() []action {
	now := time.Now()
	return slices.DeleteFunc(w.actions(), func(a action) bool { return a.at.After(now) })
}

// next is when the next action is due; zero when there is none.
func (w *world) next() time.Time {
	if actions := w.actions(); len(actions) > 0 {
		return actions[0].at
	}
	return time.Time{}
}

func (w *world) actions() []action {
	var out []action
	for _, k := range []Kind{KindPodGroup, KindService, KindAutoscaler} {
		for _, obj := range w.run.cluster.all(k) {
			if a := w.orphan(k, obj); a != nil {
				out = append(out, *a)
			}
		}
	}
	for _, obj := range w.run.cluster.all(KindPodGroup) {
		if a := w.group(obj.(*schedulingv1beta1.PodGroup)); a != nil {
			out = append(out, *a)
		}
	}
	for _, obj := range w.run.cluster.all(KindPod) {
		if a := w.pod(obj.(*corev1.Pod)); a != nil {
			out = append(out, *a)
		}
	}
	if set := w.run.set(); set != nil && set.GetDeletionTimestamp() == nil && w.run.scenario.DeleteWhen != nil && w.run.scenario.DeleteWhen(set) {
		out = append(out, action{"the user deletes the set", time.Now(), w.run.deleteSet})
	}
	if todo := w.run.scenario.Scale[w.scaled:]; len(todo) > 0 {
		out = append(out, action{fmt.Sprintf("the user scales %s to %d", todo[0].Group, todo[0].Replicas), w.run.began.Add(todo[0].After), func() { w.scale(todo[0]) }})
	}
	if todo := w.run.scenario.Changes[w.changed:]; len(todo) > 0 {
		out = append(out, action{"the user changes the set", w.run.began.Add(todo[0].After), func() { w.change(todo[0]) }})
	}
	slices.SortStableFunc(out, func(a, b action) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	return out
}

// scale is what kubectl scale does.
func (w *world) scale(to Scaling) {
	w.scaled++
	obj, err := w.run.ours.get(KindGroup, types.NamespacedName{Namespace: w.run.scenario.Set.Namespace, Name: to.Group})
	if err == nil {
		group := copyOf(obj).(*grovev1alpha1.PodCliqueScalingGroup)
		group.Spec.Replicas = to.Replicas
		_, err = w.run.ours.update(KindGroup, group, false)
	}
	if err != nil {
		w.run.trace("  the user's scaling: %v", err)
	}
}

// change is what kubectl apply does.
func (w *world) change(to Change) {
	w.changed++
	set, _ := w.run.set().(*grovev1alpha1.PodCliqueSet)
	if set == nil {
		return
	}
	set = set.DeepCopy()
	to.Do(set)
	if _, err := w.run.ours.update(KindSet, set, false); err != nil {
		w.run.trace("  the user's change: %v", err)
	}
}

// orphan collects an object whose owner is gone. Pods and what Copse serves are for the
// controllers to remove: the garbage collector is the safety net.
func (w *world) orphan(k Kind, obj client.Object) *action {
	ref, owner := metav1.GetControllerOf(obj), KindGang
	if k != KindPodGroup {
		owner = KindSet
	}
	if ref == nil || w.run.stillExists(owner, ownerOf(obj, ref)) {
		return nil
	}
	return &action{fmt.Sprintf("the garbage collector removes %s %s", k, obj.GetName()), time.Now(), func() {
		_, _ = w.run.cluster.delete(k, client.ObjectKeyFromObject(obj), nil, nil)
		if k != KindPodGroup && w.run.fault.Kind != CrashIntoThePast {
			w.run.fail("I10: %s %s is left for the garbage collector", k, obj.GetName())
		}
	}}
}

// group admits a gang once all its members exist.
func (w *world) group(group *schedulingv1beta1.PodGroup) *action {
	key := client.ObjectKeyFromObject(group)
	if meta.IsStatusConditionTrue(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled) || group.Spec.SchedulingPolicy.Gang == nil {
		return nil
	}
	members := int32(0)
	for _, obj := range w.run.cluster.all(KindPod) {
		if pod := obj.(*corev1.Pod); groupOf(pod) == group.Name && pod.DeletionTimestamp == nil && !hasEnded(pod) {
			members++
		}
	}
	if members < group.Spec.SchedulingPolicy.Gang.MinCount {
		return nil
	}
	return &action{fmt.Sprintf("the scheduler places the %d pods of PodGroup %s", members, group.Name), time.Now(), func() {
		w.run.cluster.mutate(KindPodGroup, key, func(obj client.Object) {
			meta.SetStatusCondition(&obj.(*schedulingv1beta1.PodGroup).Status.Conditions, metav1.Condition{
				Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled", LastTransitionTime: now(),
			})
		})
	}}
}

func ownerOf(obj client.Object, ref *metav1.OwnerReference) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: ref.Name, UID: ref.UID}}
}

func groupOf(pod *corev1.Pod) string {
	if pod.Spec.SchedulingGroup == nil {
		return ""
	}
	return ptr.Deref(pod.Spec.SchedulingGroup.PodGroupName, "")
}

func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

// id says which pod a pod is.
func (w *world) id(pod *corev1.Pod) PodID {
	index, _ := labels.ParseIndex(pod.Labels[labels.PodIndex])
	attempt, _ := labels.ParseIndex(pod.Labels[labels.RestartAttempt])
	id := PodID{Clique: pod.Labels[labels.PodClique], Index: index, Attempt: attempt}
	seen := w.incarnations[id]
	place := slices.Index(seen, pod.UID)
	if place < 0 {
		place = len(seen)
		w.incarnations[id] = append(seen, pod.UID)
	}
	id.Incarnation = place
	return id
}

// pod is what happens to a pod next.
func (w *world) pod(pod *corev1.Pod) *action {
	key := client.ObjectKeyFromObject(pod)
	act := func(what string, at time.Time, change func(*corev1.Pod)) *action {
		return &action{"the kubelet " + what + " " + pod.Name, at, func() {
			w.run.cluster.mutate(KindPod, key, func(obj client.Object) {
				w.since[pod.UID] = time.Now()
				change(obj.(*corev1.Pod))
			})
		}}
	}
	if w.id(pod); pod.Spec.NodeName == "" {
		if pod.DeletionTimestamp != nil || !w.hasPlace(pod) {
			return nil
		}
		return act("(the scheduler) binds", time.Now(), func(pod *corev1.Pod) { pod.Spec.NodeName = nodeName })
	}
	if pod.DeletionTimestamp != nil {
		requested := pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
		switch {
		case isEnding(pod):
			return act("has taken down", time.Now(), end)
		case !hasEnded(pod):
			// A trainer that catches SIGTERM: its exit code says nothing of its work.
			return act("has stopped", requested.Add(stopTime), stop)
		}
		return &action{"the kubelet lets go of " + pod.Name, requested.Add(stopTime), func() {
			_, _ = w.run.cluster.delete(KindPod, key, nil, ptr.To[int64](0))
		}}
	}
	outcome := w.run.scenario.Script(w.id(pod))
	switch {
	case hasEnded(pod):
		return nil
	case isEnding(pod):
		return act("has taken down", time.Now(), end)
	case waits(pod):
		return w.waiting(pod, outcome, act)
	case pod.Status.Phase == corev1.PodPending && outcome.AtOnce:
		return act("has started", w.since[pod.UID], start)
	case pod.Status.Phase == corev1.PodPending:
		return act("has started", w.since[pod.UID].Add(startTime), start)
	}
	at := w.since[pod.UID].Add(outcome.After)
	switch {
	case (outcome.After == 0 && !outcome.AtOnce) || (outcome.Unready && !isReady(pod)):
		return nil
	case outcome.Unready:
		return act("finds not ready", at, func(pod *corev1.Pod) { setReady(pod, false) })
	}
	return act(fmt.Sprintf("sees exit code %d of", outcome.Exit), at, func(pod *corev1.Pod) {
		exit(pod, outcome.Exit)
		id := w.id(pod)
		id.Incarnation = 0
		w.finished[id] = w.finished[id] || outcome.Exit == 0
	})
}

// hasPlace says that the scheduler binds a pod: one that is in no gang, or whose gang has
// been admitted. It does not look at one with a gate.
func (w *world) hasPlace(pod *corev1.Pod) bool {
	if len(pod.Spec.SchedulingGates) > 0 {
		return false
	}
	name := groupOf(pod)
	if name == "" {
		return true
	}
	group, err := w.run.cluster.get(KindPodGroup, types.NamespacedName{Namespace: pod.Namespace, Name: name})
	return err == nil && meta.IsStatusConditionTrue(group.(*schedulingv1beta1.PodGroup).Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
}

func start(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = ptr.To(now())
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now()}},
	}}
	setReady(pod, true)
}

// exit ends the container. As a kubelet does, it says so in the pod's readiness, and in the
// phase only when the pod has been taken down.
func exit(pod *corev1.Pod, code int32) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: now()}},
	}}
	setReady(pod, false)
	pod.Status.Phase, pod.Status.Conditions[0].Reason = corev1.PodRunning, "PodFailed"
	if code == 0 {
		pod.Status.Conditions[0].Reason = "PodCompleted"
	}
}

// stop ends the containers of a pod that is deleted. A waiter ends by the signal.
func stop(pod *corev1.Pod) {
	if waits(pod) {
		endWaiter(pod, 143)
		return
	}
	exit(pod, 0)
}

// lastEnd is how the container has ended of which the end is that of the pod; nil while it
// has not.
func lastEnd(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	if waits(pod) {
		if t := waiterState(pod).Terminated; t != nil && t.ExitCode != 0 {
			return t
		}
		return nil
	}
	if len(pod.Status.ContainerStatuses) > 0 {
		return pod.Status.ContainerStatuses[0].State.Terminated
	}
	return nil
}

// isEnding says that the container has ended and the phase does not say so yet.
func isEnding(pod *corev1.Pod) bool { return !hasEnded(pod) && lastEnd(pod) != nil }

// end says how the pod has ended.
func end(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodFailed
	if lastEnd(pod).ExitCode == 0 {
		pod.Status.Phase = corev1.PodSucceeded
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

func setReady(pod *corev1.Pod, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: now()}}
}
