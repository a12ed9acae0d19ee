package chaos

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// cliqueOf is the clique that controls a pod; nil when there is none.
func (c *checker) cliqueOf(pod *corev1.Pod) *grovev1alpha1.PodClique {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return nil
	}
	obj, err := c.run.ours.get(KindClique, types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name})
	if err != nil || obj.GetUID() != ref.UID {
		return nil
	}
	return obj.(*grovev1alpha1.PodClique)
}

func number(pod *corev1.Pod, label string) int32 {
	n, _ := labels.ParseIndex(pod.Labels[label])
	return n
}

// podCreated: one active pod per index (I9), none beyond the size, none of an attempt
// while one of an earlier is alive (I11), and none that the pass could know to be too
// late: a write that was under way when a decision was recorded is repaired later (D11).
func (c *checker) podCreated(pod *corev1.Pod, revision int64) {
	attempt := number(pod, labels.RestartAttempt)
	c.created[pod.UID] = revision
	c.made[pod.Name] = true
	c.setAttempts[pod.UID] = attempt - min(c.copyAttempt(pod, c.run.ours.revision), attempt)
	if c.writing == nil {
		return
	}
	begun := c.writing.pass
	clique := c.cliqueOf(pod)
	if clique == nil {
		c.run.fail("I10: pod %s is made for a clique that is gone", pod.Name)
		return
	}
	c.noneBeside(pod, clique, begun)
	set, _ := c.run.ours.at(KindSet, client.ObjectKeyFromObject(c.run.scenario.Set), begun.ours).(*grovev1alpha1.PodCliqueSet)
	switch {
	case set == nil:
		c.run.fail("I3: pod %s is made by a pass that began after the set was gone", pod.Name)
	case set.DeletionTimestamp != nil || isFinished(set) || meta.IsStatusConditionTrue(set.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget):
		c.run.fail("I3: pod %s is made by a pass that began after the set ended, failed or was deleted", pod.Name)
	case attempt < setAttempt(set, pod)+c.copyAttempt(pod, begun.ours):
		c.run.fail("I11: pod %s of attempt %d is made by a pass that began after attempt %d was recorded", pod.Name, attempt, setAttempt(set, pod)+c.copyAttempt(pod, begun.ours))
	}
}

// podReleased: a pod is let to the scheduler once every pod that its gang needs has been
// made, so that no gang runs in part for want of a pod.
func (c *checker) podReleased(pod *corev1.Pod) {
	obj, err := c.run.ours.get(KindGang, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[labels.PodGang]})
	if err != nil {
		c.run.fail("pod %s is released without a gang", pod.Name)
		return
	}
	for _, group := range obj.(*schedulerv1alpha1.PodGang).Spec.PodGroups {
		for _, ref := range group.PodReferences {
			if !c.made[ref.Name] {
				c.run.fail("pod %s is released though pod %s of its gang was never made", pod.Name, ref.Name)
			}
		}
	}
}

// noneBeside compares a new pod with those that exist. With two leaders the writes of
// one may be late by any time, and are repaired.
func (c *checker) noneBeside(pod *corev1.Pod, clique *grovev1alpha1.PodClique, begun pass) {
	attempt := number(pod, labels.RestartAttempt)
	same := int32(0)
	for _, obj := range c.run.cluster.all(KindPod) {
		other := obj.(*corev1.Pod)
		if hasEnded(other) || other.Labels[labels.ReplicaIndex] != pod.Labels[labels.ReplicaIndex] {
			continue
		}
		ours := metav1.IsControlledBy(other, clique)
		if ours && number(other, labels.RestartAttempt) == attempt && other.DeletionTimestamp == nil {
			same++
		}
		if other.UID == pod.UID {
			continue
		}
		if ours && number(other, labels.PodIndex) == number(pod, labels.PodIndex) && c.run.fault.Kind != TwoLeaders {
			c.run.fail("I9: pod %s is made while %s has its index", pod.Name, other.Name)
		}
		seen := c.created[other.UID] <= begun.cluster
		older := (ours && number(other, labels.RestartAttempt) < attempt) || c.setAttempts[other.UID] < c.setAttempts[pod.UID]
		if seen && older {
			c.run.fail("I11: pod %s of attempt %d is made while %s of attempt %d is alive", pod.Name, attempt, other.Name, number(other, labels.RestartAttempt))
		}
	}
	if same > clique.Spec.Replicas {
		c.run.fail("I9: clique %s has %d pods, its size is %d", clique.Name, same, clique.Spec.Replicas)
	}
}

// podDeleted: a pod is deleted for a recorded reason alone (I2, I18), and one that has
// succeeded only after that is recorded (I4).
func (c *checker) podDeleted(pod *corev1.Pod) {
	clique := c.cliqueOf(pod)
	set, _ := c.run.set().(*grovev1alpha1.PodCliqueSet)
	switch {
	case clique == nil || clique.DeletionTimestamp != nil || set == nil || set.DeletionTimestamp != nil:
		return
	case number(pod, labels.PodIndex) >= clique.Spec.Replicas, number(pod, labels.RestartAttempt) < clique.Spec.Attempt:
		return
	}
	if hasEnded(pod) {
		for _, failed := range clique.Status.FailedIndexes {
			if failed.PodUID == pod.UID {
				return
			}
		}
		c.run.fail("I4: pod %s, which has ended, is deleted though no record speaks of it", pod.Name)
		return
	}
	if isFinished(set) || meta.IsStatusConditionTrue(set.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget) {
		return
	}
	if progress := clique.Status.UpdateProgress; progress != nil && progress.UpdateEndedAt == nil && progress.PodTemplateHash != pod.Labels[labels.PodTemplateHash] {
		c.updateDeletes(pod, clique)
		return
	}
	c.run.fail("I18: pod %s is active, of the current attempt, and deleted without a recorded decision", pod.Name)
}

// updateDeletes: an update takes one Ready pod of a standalone clique at a time (I19). One that
// has stopped to be Ready by itself counts, for that may not have been known.
func (c *checker) updateDeletes(pod *corev1.Pod, clique *grovev1alpha1.PodClique) {
	if clique.Labels[labels.ScalingGroup] != "" || !isReady(pod) {
		return
	}
	left := int32(0)
	for _, obj := range c.run.cluster.all(KindPod) {
		other := obj.(*corev1.Pod)
		if other.UID != pod.UID && metav1.IsControlledBy(other, clique) && other.DeletionTimestamp == nil && c.wasReady[other.UID] {
			left++
		}
	}
	if left < clique.Spec.Replicas-1 {
		c.run.fail("I19: an update deletes pod %s, and leaves %d of %d", pod.Name, left, clique.Spec.Replicas)
	}
}
