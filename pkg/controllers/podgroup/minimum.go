package podgroup

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/desired"
	"github.com/copse-dev/copse/pkg/scheduling/native"
)

// loweredAnnotation of a group of the scheduler's is the minimum that it had before all of
// its pods went: what it comes back to when not all of them come back.
const loweredAnnotation = "scheduler.grove.io/lowered-min-count"

// together is how long after a pod the next one of the same workload is expected, when all of
// them are made anew.
const together = time.Minute

// setMinCount keeps how many pods the scheduler places together.
func (r *Reconciler) setMinCount(ctx context.Context, s *state, group *schedulingv1beta1.PodGroup) (*schedulingv1beta1.PodGroup, error) {
	if !s.complete || s.invalid != nil {
		return group, nil
	}
	m := r.minimumOf(s, group)
	if missing, err := r.mayHaveStrays(ctx, s, m); err != nil || missing {
		s.complete = false
		return group, err
	}
	count, lowered := m.decide()
	if lowered > 0 && m.coming {
		s.again = m.settles
	}
	if count == m.count && lowered == m.lowered && m.wanted == m.asked {
		return group, nil
	}
	// The version keeps a pass that is behind from undoing what another has done.
	changed := group.DeepCopy()
	changed.Spec.SchedulingPolicy.Gang.MinCount = count
	changed.Annotations[podgrouper.MinMemberAnnotation] = strconv.Itoa(int(m.wanted))
	delete(changed.Annotations, loweredAnnotation)
	if lowered > 0 {
		changed.Annotations[loweredAnnotation] = strconv.Itoa(int(lowered))
	}
	err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(group, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("set the minimum of the scheduler's PodGroup %s: %w", group.Name, err)
	}
	return changed, nil
}

// minimum is what decides how many pods the scheduler places together.
type minimum struct {
	// wanted is the group's, asked the one that the scheduler was told of, and count what
	// that came to.
	wanted, asked, count int32
	// lowered is what count was before all pods went, while not all have come back; else 0.
	lowered int32
	// scheduled says that the group was placed once.
	scheduled bool
	// waiting pods of the group have no node, placed ones have one.
	waiting, placed int32
	// succeeded pods are there no more for the scheduler, and unattached ones never were.
	succeeded, unattached int32
	// stray says that pods that come are in another group.
	stray bool
	// coming says that others may still come beside those that wait, which they do no more
	// when it settles.
	coming  bool
	settles time.Time
}

// firstPast says that the pods that come first have had their turn: the others wait for none.
// While no pod is there, the first are to come.
func (s *state) firstPast() bool { return s.described != nil && s.described.FirstPast }

// minPods is the group's minimum.
func (s *state) minPods() int32 {
	if s.firstPast() {
		return 1
	}
	return desired.MinPods(s.group)
}

func (r *Reconciler) minimumOf(s *state, group *schedulingv1beta1.PodGroup) minimum {
	m := minimum{
		wanted: s.minPods(), asked: numberIn(group, podgrouper.MinMemberAnnotation), lowered: numberIn(group, loweredAnnotation),
		count: group.Spec.SchedulingPolicy.Gang.MinCount, scheduled: native.IsScheduled(group), unattached: r.unattached(s, group.Name), stray: s.stray,
	}
	for _, pod := range s.members {
		switch {
		case !isIn(pod, group.Name):
		case pod.Status.Phase == corev1.PodSucceeded:
			m.succeeded++
		case pod.DeletionTimestamp != nil || pods.HasEnded(pod):
		case pod.Spec.NodeName == "":
			m.waiting++
			if settles := pod.CreationTimestamp.Add(together); settles.After(m.settles) {
				m.settles = settles
			}
		default:
			m.placed++
		}
	}
	m.coming = r.Clock.Now().Before(m.settles)
	return m
}

func numberIn(group *schedulingv1beta1.PodGroup, annotation string) int32 {
	number, _ := strconv.ParseInt(group.Annotations[annotation], 10, 32)
	return int32(number)
}

// decide follows the group, and says what to remember as lowered. Pods that have succeeded
// count no more for the scheduler, which would hold back a replacement for ever
// (kubernetes/kubernetes#142330), so they are taken off when one waits (docs/decisions/0021).
// That stays so when they are deleted, until none of the group is left: then either the whole
// workload comes back, and is a gang as before, or one pod of it that had not finished. Which
// of both does not show in the first that comes, so the gang is waited for, but no longer than
// others may come. A minimum that was lowered for pods that are in no group, or in another, is
// a whole one again when as many run without them.
func (m minimum) decide() (count, lowered int32) {
	least := m.wanted - m.unattached
	if m.scheduled {
		least -= m.succeeded
	}
	if m.stray {
		least = min(least, m.waiting+m.placed)
	}
	least = max(1, least)
	before := m.count
	if m.lowered > 0 {
		before = m.lowered
	}
	allNew := m.placed == 0 && m.succeeded == 0
	switch {
	case m.wanted != m.asked && m.waiting > 0:
		return least, 0
	case m.wanted != m.asked:
		return m.wanted, 0
	case allNew && m.waiting >= least:
		return least, 0
	case allNew && before < least && (m.waiting == 0 || m.coming):
		return least, before
	case m.lowered > 0 && m.waiting+m.placed >= least:
		// All have come back, and were placed at once.
		return m.count, 0
	case m.waiting > 0:
		return min(before, least), 0
	case m.lowered == 0 && m.succeeded == 0 && m.count < m.wanted && m.placed >= m.wanted && !m.stray:
		return m.wanted, 0
	}
	return m.count, m.lowered
}
