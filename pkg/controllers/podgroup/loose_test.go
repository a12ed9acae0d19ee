package podgroup

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

func runs(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "node", corev1.PodRunning }

func succeeds(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "node", corev1.PodSucceeded }

// update writes pods as they are now.
func (w *world) update(pods ...*corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		if err := w.Client.Update(w.t.Context(), pod.DeepCopy()); err != nil {
			w.t.Fatal(err)
		}
		if err := w.Client.Status().Update(w.t.Context(), pod); err != nil {
			w.t.Fatal(err)
		}
	}
}

// later is long enough for figures to be written.
func (w *world) later(name string) []string {
	w.t.Helper()
	w.clock.Step(time.Minute)
	return w.pass(name)
}

// Pods from before the namespace was grouped end one after another, also while nobody looks.
func TestAGroupOfPodsFromBeforeFinishes(t *testing.T) {
	w, name := newWorld(t, enabled(), gang(int64(2)), pod("a", ungrouped, runs), pod("b", ungrouped, runs)), group().Name
	w.enter("a")
	w.enter("b")
	w.pass(name)
	expect(t, "phase while they run", schedulerv1alpha1.PodGroupRunning, w.live(name).Status.Phase)
	w.update(pod("a", ungrouped, succeeds))
	w.later(name)
	expect(t, "succeeded", int32(1), w.live(name).Status.Succeeded)

	// After a restart nothing is known, least of all about pods that have ended.
	w.update(pod("b", ungrouped, succeeds))
	w.loose = newLoosePods()
	expect(t, "writes while it is not known who belongs to it", []string(nil), w.later(name))
	w.enter("a")
	w.enter("b")
	w.later(name)
	expect(t, "phase", schedulerv1alpha1.PodGroupFinished, w.live(name).Status.Phase)
	expect(t, "succeeded in all", int32(2), w.live(name).Status.Succeeded)
}

// After a restart a group is told of when all pods are known that may be in it; they come
// with no event of its own.
func TestAGroupIsLookedAtWhenItsNamespaceIsKnown(t *testing.T) {
	elsewhere := func(p *corev1.Pod) { p.Annotations = map[string]string{podgrouper.SkipAnnotation: "true"} }
	w := newWorld(t, enabled(), gang(int64(1)), pod("a"), pod("other", ungrouped, elsewhere))
	w.pass(group().Name)
	expect(t, "phase at first", schedulerv1alpha1.PodGroupPhase(""), w.live(group().Name).Status.Phase)
	w.enter("other")
	if !w.queue.early.Has(group()) {
		t.Errorf("queue %v", w.queue.early)
	}
	w.pass(group().Name)
	expect(t, "phase then", schedulerv1alpha1.PodGroupPending, w.live(group().Name).Status.Phase)
}

// A pod from before runs, and the group of those that came later is refused: that is told.
func TestARefusedGroupIsToldBesideAPodFromBefore(t *testing.T) {
	w, name := newWorld(t, enabled(), gang(int64(2)), pod("a", ungrouped, runs), pod("b")), group().Name
	w.enter("a")
	w.refusal = apierrors.NewForbidden(schedulingv1beta1.Resource("podgroups"), name, errors.New("no PriorityClass of this name"))
	if _, err := w.tryPass(name); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if why := w.live(name).Status.SchedulingConditions[0].Reasons[0]; why.Reason != "GroupObjectMissing" || !strings.Contains(why.Message, "no PriorityClass") {
		t.Errorf("says %+v", why)
	}
}

// A pod that has ended is put into no group any more, and waits for no owner.
func TestAPodThatHasEndedIsLeftAlone(t *testing.T) {
	ofKAI := func(p *corev1.Pod) { p.Spec.SchedulerName = "kai-scheduler" }
	w := newWorld(t, enabled(), pod("orphan", ungrouped, succeeds), pod("kai", ungrouped, succeeds, ofKAI))
	w.clock.Step(2 * lasting)
	for _, served := range []bool{false, true} {
		w.kai.served = served
		expect(t, "writes", []string(nil), append(w.enter("orphan"), w.enter("kai")...))
	}
	expect(t, "events", []string(nil), w.events())
}
