package chaos

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/test/history"
)

// checker asserts on every revision of either server what must hold always. It knows
// nothing of how the controllers decide.
type checker struct {
	run *Run
	// writing is the write of a controller that is being done; nil when the world writes.
	writing *write
	// setAttempts are the attempts of the set's replica that pods were made for.
	setAttempts map[types.UID]int32
	created     map[types.UID]int64
	// wasReady are pods that have been Ready.
	wasReady map[types.UID]bool
	// made are the names of pods that have ever been there.
	made map[string]bool
	// log is what both servers have gone through, kept where pods wait to start.
	log   history.Log
	gated bool
}

func newChecker(r *Run) *checker {
	spec := &r.scenario.Set.Spec
	gated := spec.GroupSchedulingConfig != nil || spec.Template.StartupType != nil
	return &checker{run: r, gated: gated, setAttempts: map[types.UID]int32{}, created: map[types.UID]int64{}, made: map[string]bool{}, wasReady: map[types.UID]bool{}}
}

// changed looks at one revision.
func (c *checker) changed(ch change) {
	c.record(ch)
	switch ch.kind {
	case KindSet:
		if ch.before != nil && ch.after != nil {
			c.setChanged(ch.before.(*grovev1alpha1.PodCliqueSet), ch.after.(*grovev1alpha1.PodCliqueSet))
		}
	case KindClique:
		if ch.before != nil && ch.after != nil {
			c.cliqueChanged(ch.before.(*grovev1alpha1.PodClique), ch.after.(*grovev1alpha1.PodClique))
		}
		if ch.before != nil && ch.after == nil {
			c.noPodsOf(ch.before)
		}
	case KindPod:
		if pod, ok := ch.after.(*corev1.Pod); ok && isReady(pod) {
			c.wasReady[pod.UID] = true
		}
		switch {
		case ch.before == nil:
			c.podCreated(ch.after.(*corev1.Pod), ch.revision)
		case ch.after != nil && len(ch.after.(*corev1.Pod).Spec.SchedulingGates) < len(ch.before.(*corev1.Pod).Spec.SchedulingGates):
			c.podReleased(ch.after.(*corev1.Pod))
		case c.writing != nil && c.writing.verb == "delete" && ch.before.GetDeletionTimestamp() == nil:
			c.podDeleted(ch.before.(*corev1.Pod))
		}
	}
}

// setChanged: counts and attempts never fall and rise together, within the budget (I1);
// times are written once (I5); ends are final and true (I3, I4); nothing ends early (I6, I8).
func (c *checker) setChanged(before, after *grovev1alpha1.PodCliqueSet) {
	attempts := map[int32]int32{}
	var sum int32
	for _, replica := range after.Status.ReplicaStatuses {
		attempts[replica.Index] = replica.Attempt
		sum += replica.Attempt
	}
	for _, replica := range before.Status.ReplicaStatuses {
		if attempts[replica.Index] < replica.Attempt {
			c.run.fail("I1: the attempt of replica %d falls from %d to %d", replica.Index, replica.Attempt, attempts[replica.Index])
		}
	}
	training := isTraining(after)
	switch count := after.Status.RestartCount; {
	case count < before.Status.RestartCount:
		c.run.fail("I1: restartCount falls from %d to %d", before.Status.RestartCount, count)
	case training && count != sum:
		c.run.fail("I1: restartCount is %d, the attempts sum up to %d", count, sum)
	case training && after.Spec.TrainingSpec != nil && count > ptr.Deref(after.Spec.TrainingSpec.MaxRestarts, 0):
		c.run.fail("I1: restartCount is %d, more than maxRestarts", count)
	}
	if was := before.Status.StartTime; was != nil && !was.Equal(after.Status.StartTime) {
		c.run.fail("I5: startTime changes from %v to %v", was, after.Status.StartTime)
	}
	if isFinished(before) && before.Status.Phase != after.Status.Phase {
		c.run.fail("I3: phase %s becomes %s", before.Status.Phase, after.Status.Phase)
	}
	if isFinished(after) && !isFinished(before) {
		c.setEnded(after)
	}
	c.deadlines(before, after)
}

func (c *checker) setEnded(set *grovev1alpha1.PodCliqueSet) {
	if set.Status.Phase == grovev1alpha1.PodCliqueSetFailed {
		for _, pod := range c.podsOfSet(set) {
			if !hasEnded(pod) {
				c.run.fail("I3: the set is Failed while pod %s is active", pod.Name)
			}
		}
		return
	}
	for _, clique := range c.cliquesOf(set) {
		for index := range clique.Spec.Replicas {
			if id := (PodID{Clique: clique.Name, Index: index, Attempt: clique.Spec.Attempt}); !c.run.world.finished[id] {
				c.run.fail("I4: the set has Succeeded, but index %d of %s has not exited with 0", index, clique.Name)
			}
		}
	}
}

// deadlines: a restart for a breach never comes before the delay, nor the end before maxRuntime.
func (c *checker) deadlines(before, after *grovev1alpha1.PodCliqueSet) {
	reason := func(set *grovev1alpha1.PodCliqueSet) string {
		if condition := meta.FindStatusCondition(set.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget); condition != nil {
			return condition.Reason
		}
		return ""
	}
	if reason(before) == "" && reason(after) == grovev1alpha1.ReasonMaxRuntimeExceeded {
		if due := after.Status.StartTime.Add(after.Spec.TrainingSpec.MaxRuntime.Duration); time.Now().Before(due) {
			c.run.fail("I6: maxRuntime ends the set at %v, before %v", time.Now(), due)
		}
	}
	delay := after.Spec.Template.TerminationDelay
	if isTraining(after) || delay == nil {
		return
	}
	was := map[int32]int32{}
	for _, replica := range before.Status.ReplicaStatuses {
		was[replica.Index] = replica.Attempt
	}
	for _, replica := range after.Status.ReplicaStatuses {
		if replica.Attempt > was[replica.Index] && !c.breached(after, replica.Index, delay.Duration) {
			c.run.fail("I8: replica %d is terminated, but no breach has lasted %s", replica.Index, delay.Duration)
		}
	}
}

// breached says that a clique or group of a replica has been in breach for the delay.
func (c *checker) breached(set *grovev1alpha1.PodCliqueSet, replica int32, delay time.Duration) bool {
	long := func(obj client.Object, conditions []metav1.Condition) bool {
		condition := meta.FindStatusCondition(conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
		return obj.GetLabels()[labels.ReplicaIndex] == labels.Index(replica) && condition != nil && condition.Status == metav1.ConditionTrue &&
			!time.Now().Before(condition.LastTransitionTime.Add(delay))
	}
	for _, clique := range c.cliquesOf(set) {
		if long(clique, clique.Status.Conditions) {
			return true
		}
	}
	for _, obj := range c.run.ours.all(KindGroup) {
		if long(obj, obj.(*grovev1alpha1.PodCliqueScalingGroup).Status.Conditions) {
			return true
		}
	}
	return false
}

// cliqueChanged: what belongs to an attempt stays within it, unless the clique is idle (I7), success has evidence
// (I4), and an attempt follows a recorded decision (I2).
func (c *checker) cliqueChanged(before, after *grovev1alpha1.PodClique) {
	if before.Status.ObservedAttempt == after.Status.ObservedAttempt && before.Status.WasAvailable && !after.Status.WasAvailable && after.Spec.Replicas > 0 {
		c.run.fail("I7: wasAvailable of %s falls back", after.Name)
	}
	if after.Spec.Attempt < before.Spec.Attempt {
		c.run.fail("I1: the attempt of %s falls", after.Name)
	}
	if attempt := c.attemptOf(after); after.Spec.Attempt > before.Spec.Attempt && after.Spec.Attempt > attempt {
		c.run.fail("I2: %s goes to attempt %d, only %d is recorded", after.Name, after.Spec.Attempt, attempt)
	}
	completed, err := indexset.Parse(after.Status.CompletedIndexes)
	if err != nil {
		c.run.fail("completedIndexes of %s: %v", after.Name, err)
		return
	}
	for index := range after.Spec.Replicas {
		id := PodID{Clique: after.Name, Index: index, Attempt: after.Status.ObservedAttempt}
		if completed.Has(index) && !c.run.world.finished[id] {
			c.run.fail("I4: index %d of %s is complete, but has not exited with 0 in attempt %d", index, after.Name, id.Attempt)
		}
	}
}

// attemptOf is the attempt that is recorded for a clique.
func (c *checker) attemptOf(clique *grovev1alpha1.PodClique) int32 {
	set, _ := c.run.set().(*grovev1alpha1.PodCliqueSet)
	if set == nil {
		return 0
	}
	return setAttempt(set, clique) + c.copyAttempt(clique, c.run.ours.revision)
}

func setAttempt(set *grovev1alpha1.PodCliqueSet, obj client.Object) int32 {
	for _, replica := range set.Status.ReplicaStatuses {
		if labels.Index(replica.Index) == obj.GetLabels()[labels.ReplicaIndex] {
			return replica.Attempt
		}
	}
	return 0
}

// copyAttempt is the attempt that was recorded for a copy of a scaling group at a revision.
func (c *checker) copyAttempt(obj client.Object, revision int64) int32 {
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetLabels()[labels.ScalingGroup]}
	group, _ := c.run.ours.at(KindGroup, key, revision).(*grovev1alpha1.PodCliqueScalingGroup)
	if group == nil {
		return 0
	}
	for _, replica := range group.Status.ReplicaAttempts {
		if labels.Index(replica.Index) == obj.GetLabels()[labels.ScalingGroupReplicaIndex] {
			return replica.Attempt
		}
	}
	return 0
}

func isTraining(set *grovev1alpha1.PodCliqueSet) bool {
	return set.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining
}

func isFinished(set *grovev1alpha1.PodCliqueSet) bool {
	return set.Status.Phase == grovev1alpha1.PodCliqueSetSucceeded || set.Status.Phase == grovev1alpha1.PodCliqueSetFailed
}

func (c *checker) podsOfSet(set *grovev1alpha1.PodCliqueSet) []*corev1.Pod {
	var out []*corev1.Pod
	for _, obj := range c.run.cluster.all(KindPod) {
		if obj.GetLabels()[labels.PartOf] == set.Name {
			out = append(out, obj.(*corev1.Pod))
		}
	}
	return out
}

func (c *checker) cliquesOf(set *grovev1alpha1.PodCliqueSet) []*grovev1alpha1.PodClique {
	var out []*grovev1alpha1.PodClique
	for _, obj := range c.run.ours.all(KindClique) {
		if obj.GetLabels()[labels.PartOf] == set.Name {
			out = append(out, obj.(*grovev1alpha1.PodClique))
		}
	}
	return out
}

// noPodsOf: a clique goes after its pods (I10).
func (c *checker) noPodsOf(clique client.Object) {
	for _, obj := range c.run.cluster.all(KindPod) {
		if ref := metav1.GetControllerOf(obj); ref != nil && ref.UID == clique.GetUID() {
			c.run.fail("I10: clique %s is gone, its pod %s is not", clique.GetName(), obj.GetName())
		}
	}
}

// record keeps a revision for those checks that are made of whole histories.
func (c *checker) record(ch change) {
	kind, known := history.Kind(ch.kind), c.gated
	switch ch.kind {
	case KindPodGroup:
		kind = history.NativeGroup
	case KindNode:
		known = false
	}
	if known {
		c.log.Append(history.Revision{Arrived: time.Now(), Kind: kind, RV: uint64(ch.revision), Deleted: ch.after == nil, Object: ch.object()})
	}
}

// gates: no container starts before its gate is open in its attempt, and none is opened
// too early or shut (I12). Every revision of either server is judged, when all are known.
func (c *checker) gates() {
	for _, violation := range history.CheckGates(&c.log).Violations {
		c.run.fail("%s", violation)
	}
}

// end: what a scenario comes to, and that nothing is left of what was deleted (I10).
func (c *checker) end() {
	c.gates()
	set, _ := c.run.set().(*grovev1alpha1.PodCliqueSet)
	if set == nil {
		var left []string
		for _, k := range allKinds() {
			for _, obj := range c.run.serverOf(k).all(k) {
				if k == KindNode {
					continue
				}
				left = append(left, fmt.Sprintf("%s %s", k, obj.GetName()))
			}
		}
		if len(left) > 0 {
			c.run.fail("I10: the set is gone, these are left: %s", strings.Join(left, ", "))
		}
	}
	if c.run.fault.Kind == DeleteSet {
		if set != nil && c.run.writes >= c.run.fault.At {
			c.run.fail("I10: the set was deleted and is still there")
		}
		return
	}
	if c.run.fault.Long {
		return
	}
	if err := c.run.scenario.End(set); err != nil {
		c.run.fail("the end: %v", err)
	}
}
