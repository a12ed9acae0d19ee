package model

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
)

// violation is something that must never happen.
type violation struct{ text string }

func (v *violation) Error() string { return v.text }

func violated(format string, args ...any) error { return &violation{fmt.Sprintf(format, args...)} }

func trueConditions(conditions []metav1.Condition) string {
	out := ""
	for _, c := range conditions {
		if c.Status == metav1.ConditionTrue {
			out += " " + c.Type
			if c.Type == grovev1alpha1.ConditionTypeFailureTarget {
				out += "(" + c.Reason + ")"
			}
		}
	}
	return out
}

func (m *Model) isFailing(set uint16) bool {
	return m.parent(set) == gang.ParentFailing && !meta.IsStatusConditionTrue(m.sets.objects[set].Status.Conditions, grovev1alpha1.ConditionTypeFailed)
}

func isTerminal(status *grovev1alpha1.PodCliqueSetStatus) bool {
	return status.Phase == grovev1alpha1.PodCliqueSetSucceeded || status.Phase == grovev1alpha1.PodCliqueSetFailed
}

// excused says that a pod was made by a process on a live read that another process had
// outdated. No write to two servers can exclude that; it has to be repaired (D11).
func (m *Model) excused(p pod) bool { return !m.config.strict() && p.is(strayBit) }

// checkState is what holds in every state (I9, I11).
func (m *Model) checkState(s *state) error {
	oldest, newest := int32(maxAttempts), int32(-1)
	total := 0
	if err := m.checkOwners(s); err != nil {
		return err
	}
	if err := m.checkPassed(s); err != nil {
		return err
	}
	for number := range maxPods {
		one := -1
		for attempt := range int32(maxAttempts) {
			slot := slotOf(number, attempt)
			p := s.World.Pods[slot]
			if !p.active() || m.excused(p) {
				continue
			}
			if one >= 0 {
				return violated("%s and %s are active at once", m.podName(one), m.podName(slot))
			}
			one = slot
			total++
			oldest, newest = min(oldest, attempt), max(newest, attempt)
		}
	}
	if total > m.config.pods() {
		return violated("%d pods are active, %d are wanted", total, m.config.pods())
	}
	if newest > oldest {
		return violated("pods of attempts %d and %d are active at once", oldest, newest)
	}
	return nil
}

// checkOwners wants a clique to stay as long as its pods, and a set as long as its cliques (I10).
func (m *Model) checkOwners(s *state) error {
	if !m.config.Deleted {
		return nil
	}
	for slot, p := range s.World.Pods {
		which, _ := m.owner(slot / maxAttempts)
		if p.exists() && m.cliqueIsGone(s.World.Cliques[which]) && !m.excused(p) {
			return violated("clique %s is gone and %s is left", cliqueNames[which], m.podName(slot))
		}
	}
	if m.setIsGone(s.World.Set) && !m.cliquesAreGone(&s.World) {
		return violated("the set is gone and a clique is left")
	}
	return nil
}

// checkSetWrite is what holds whenever the status of the set changes (I1, I3, I4).
func (m *Model) checkSetWrite(s *state, base, next uint16) error {
	before, after := &m.sets.objects[base].Status, &m.sets.objects[next].Status
	from, to := m.attempt(base), m.attempt(next)
	if isTerminal(before) && before.Phase != after.Phase {
		return violated("the set goes from %s to %s", before.Phase, after.Phase)
	}
	if after.RestartCount < before.RestartCount || to < from {
		return violated("restartCount goes from %d to %d, the attempt from %d to %d", before.RestartCount, after.RestartCount, from, to)
	}
	if after.RestartCount != to {
		return violated("restartCount is %d, the attempt %d", after.RestartCount, to)
	}
	if after.RestartCount > m.config.MaxRestarts {
		return violated("restart %d of %d", after.RestartCount, m.config.MaxRestarts)
	}
	if to > from+1 {
		return violated("one write goes from attempt %d to %d", from, to)
	}
	wasFailing := meta.IsStatusConditionTrue(before.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
	target := meta.FindStatusCondition(after.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
	failing := target != nil && target.Status == metav1.ConditionTrue
	if to > from && (wasFailing || failing || isTerminal(before)) {
		return violated("attempt %d begins though the set fails or has ended", to)
	}
	isBroken := s.History.Broken&(1<<from) != 0
	if to > from && !isBroken {
		return violated("attempt %d begins though no clique was breached in attempt %d", to, from)
	}
	if failing && !wasFailing {
		if err := m.checkFailure(s, target.Reason, from, isBroken); err != nil {
			return err
		}
	}
	if before.Phase != after.Phase {
		return m.checkEnd(s, after.Phase, to)
	}
	return nil
}

// checkFailure is what holds when it is decided that the set fails.
func (m *Model) checkFailure(s *state, reason string, attempt int32, isBroken bool) error {
	if reason == grovev1alpha1.ReasonMaxRuntimeExceeded {
		if m.config.MaxRuntime == 0 || s.Tick < m.config.MaxRuntime {
			return violated("the set fails at tick %d because its time is over", s.Tick)
		}
		return m.checkLate(s, attempt)
	}
	if !isBroken {
		return violated("the set fails though no clique was breached in attempt %d", attempt)
	}
	if attempt < m.config.MaxRestarts {
		return violated("the set fails in attempt %d though %d restarts are allowed", attempt, m.config.MaxRestarts)
	}
	return nil
}

// checkLate wants a pod that had not succeeded when the time was over (D7).
func (m *Model) checkLate(s *state, attempt int32) error {
	start := m.sets.objects[s.World.Set].Status.StartTime
	deadline := uint8(start.Sub(now(0))/tick) + m.config.MaxRuntime
	for number := range m.config.pods() {
		p := s.World.Pods[slotOf(number, attempt)]
		if p.life() != succeeded || !p.is(evidenceBit) || p.endedAt() >= deadline {
			return nil
		}
	}
	return violated("the set fails because its time is over, and all pods had succeeded before")
}

// checkEnd is what holds when the set ends.
func (m *Model) checkEnd(s *state, phase grovev1alpha1.PodCliqueSetPhase, attempt int32) error {
	switch phase {
	case grovev1alpha1.PodCliqueSetSucceeded:
		for number := range m.config.pods() {
			if slot := slotOf(number, attempt); s.History.Evidence&(1<<slot) == 0 {
				return violated("the set succeeds though %s did not", m.podName(slot))
			}
		}
	case grovev1alpha1.PodCliqueSetFailed:
		for slot, p := range s.World.Pods {
			if p.active() && !m.excused(p) {
				return violated("the set is Failed while %s is active", m.podName(slot))
			}
		}
	}
	return nil
}

// checkCliqueWrite is what holds whenever the status of a clique changes.
func (m *Model) checkCliqueWrite(s *state, which int, _, next uint16) error {
	status := &m.cliques.objects[next].Status
	completed, err := indexset.Parse(status.CompletedIndexes)
	if err != nil {
		return err
	}
	first, end := m.numbers(which)
	for number := first; number < end; number++ {
		slot := slotOf(number, status.ObservedAttempt)
		done := completed.Has(int32(number-first)) || meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeSucceeded)
		if done && s.History.Evidence&(1<<slot) == 0 {
			return violated("%s counts as completed and did not succeed", m.podName(slot))
		}
	}
	return nil
}

// checkCreation wants nothing made below a set that fails, has ended or is deleted, or
// below a clique that is deleted, as the live read shows them (I3).
func (m *Model) checkCreation(s *state, which int, creates uint8) error {
	if creates == 0 {
		return nil
	}
	if parent := m.parent(s.World.Set); parent != gang.ParentActive {
		return violated("pods of clique %s are made though the set is %s", cliqueNames[which], parent)
	}
	if m.cliques.objects[s.World.Cliques[which]].DeletionTimestamp != nil && m.config.strict() {
		return violated("pods of clique %s are made though it is deleted", cliqueNames[which])
	}
	return nil
}

// checkDeletion wants a recorded decision behind the deletion of an active pod (I2, I18).
func (m *Model) checkDeletion(s *state, slot int) error {
	p := s.World.Pods[slot]
	if !p.active() || p.is(terminatingBit) {
		return nil
	}
	which, _ := m.owner(slot / maxAttempts)
	clique := m.cliques.objects[s.World.Cliques[which]]
	if int32(slot%maxAttempts) < clique.Spec.Attempt || m.parent(s.World.Set) != gang.ParentActive {
		return nil
	}
	return violated("active pod %s is deleted without a recorded decision", m.podName(slot))
}
