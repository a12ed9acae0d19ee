package history

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// world is a history by object, and who belongs to whom.
type world struct {
	*Log
	order
	stories map[types.UID]*story
	// all holds the stories in the order of their first revisions.
	all     []*story
	cliques []*cliqueStory
	pods    []*podStory
}

// cliqueStory is a PodClique and its place.
type cliqueStory struct {
	*story
	set *story
	// group is the scaling group, nil for a standalone clique.
	group         *story
	replica, copy int32
	pods          []*podStory
}

// podStory is a pod of a PodClique.
type podStory struct {
	*story
	clique         *cliqueStory
	index, attempt int32
}

func newWorld(log *Log) *world {
	w := &world{Log: log, order: newOrder(log), stories: map[types.UID]*story{}}
	for _, rev := range log.Revisions {
		uid := rev.Object.GetUID()
		if w.stories[uid] == nil {
			w.stories[uid] = &story{kind: rev.Kind, uid: uid, name: rev.Object.GetName()}
			w.all = append(w.all, w.stories[uid])
		}
		w.stories[uid].revs = append(w.stories[uid].revs, rev)
	}
	cliques := map[types.UID]*cliqueStory{}
	for _, s := range w.all {
		slices.SortFunc(s.revs, compareRevisions)
		if s.kind == Clique {
			cliques[s.uid] = w.cliqueOf(s)
			w.cliques = append(w.cliques, cliques[s.uid])
		}
	}
	for _, s := range w.all {
		if s.kind != Pod {
			continue
		}
		pod := podOf(s.revs[0])
		controller := metav1.GetControllerOf(pod)
		if controller == nil || cliques[controller.UID] == nil {
			continue
		}
		p := &podStory{story: s, clique: cliques[controller.UID]}
		p.index, _ = labels.ParseIndex(pod.Labels[labels.PodIndex])
		p.attempt, _ = labels.ParseIndex(pod.Labels[labels.RestartAttempt])
		p.clique.pods = append(p.clique.pods, p)
		w.pods = append(w.pods, p)
	}
	slices.SortStableFunc(w.pods, func(a, b *podStory) int { return cmp.Compare(a.revs[0].RV, b.revs[0].RV) })
	return w
}

func (w *world) cliqueOf(s *story) *cliqueStory {
	clique := s.revs[0].Object
	out := &cliqueStory{story: s}
	for _, ref := range clique.GetOwnerReferences() {
		switch ref.Kind {
		case "PodCliqueSet":
			out.set = w.stories[ref.UID]
		case "PodCliqueScalingGroup":
			out.group = w.stories[ref.UID]
		}
	}
	out.replica, _ = labels.ParseIndex(clique.GetLabels()[labels.ReplicaIndex])
	out.copy, _ = labels.ParseIndex(clique.GetLabels()[labels.ScalingGroupReplicaIndex])
	return out
}

// of are the stories of a kind.
func (w *world) of(kind Kind) []*story {
	var out []*story
	for _, s := range w.all {
		if s.kind == kind {
			out = append(out, s)
		}
	}
	return out
}

// cliquesOf are the PodCliques of a set.
func (w *world) cliquesOf(set *story) []*cliqueStory {
	var out []*cliqueStory
	for _, clique := range w.cliques {
		if clique.set == set {
			out = append(out, clique)
		}
	}
	return out
}

func setOf(r *Revision) *grovev1alpha1.PodCliqueSet {
	obj, _ := r.Object.(*grovev1alpha1.PodCliqueSet)
	return obj
}

func cliqueOf(r *Revision) *grovev1alpha1.PodClique {
	obj, _ := r.Object.(*grovev1alpha1.PodClique)
	return obj
}

func groupOf(r *Revision) *grovev1alpha1.PodCliqueScalingGroup {
	obj, _ := r.Object.(*grovev1alpha1.PodCliqueScalingGroup)
	return obj
}

func gateOf(r *Revision) *grovev1alpha1.StartGate {
	obj, _ := r.Object.(*grovev1alpha1.StartGate)
	return obj
}

func fileOf(r *Revision) *corev1.ConfigMap {
	obj, _ := r.Object.(*corev1.ConfigMap)
	return obj
}

func gangOf(r *Revision) *schedulerv1alpha1.PodGang {
	obj, _ := r.Object.(*schedulerv1alpha1.PodGang)
	return obj
}

func podOf(r *Revision) *corev1.Pod {
	obj, _ := r.Object.(*corev1.Pod)
	return obj
}

func nativeGroupOf(r *Revision) *schedulingv1beta1.PodGroup {
	obj, _ := r.Object.(*schedulingv1beta1.PodGroup)
	return obj
}

// replicaAttempt and copyAttempt read attempts from status; absent is 0.
func replicaAttempt(r *Revision, replica int32) int32 {
	if r == nil {
		return 0
	}
	for _, status := range setOf(r).Status.ReplicaStatuses {
		if status.Index == replica {
			return status.Attempt
		}
	}
	return 0
}

func copyAttempt(r *Revision, copyIndex int32) int32 {
	if r == nil {
		return 0
	}
	for _, attempt := range groupOf(r).Status.ReplicaAttempts {
		if attempt.Index == copyIndex {
			return attempt.Attempt
		}
	}
	return 0
}

func isTraining(r *Revision) bool {
	return setOf(r).Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining
}

func isFinished(r *Revision) bool {
	phase := setOf(r).Status.Phase
	return phase == grovev1alpha1.PodCliqueSetSucceeded || phase == grovev1alpha1.PodCliqueSetFailed
}

func isFailing(r *Revision) bool {
	return meta.IsStatusConditionTrue(setOf(r).Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
}

func isBreached(r *Revision) bool {
	return meta.IsStatusConditionTrue(cliqueOf(r).Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
}

func hasSucceeded(r *Revision) bool {
	return meta.IsStatusConditionTrue(cliqueOf(r).Status.Conditions, grovev1alpha1.ConditionTypeSucceeded)
}

// isGoing says that an object is being deleted or gone.
func isGoing(r *Revision) bool {
	return r.Deleted || r.Object.GetDeletionTimestamp() != nil
}

// isIdle says that a PodClique is scaled to nothing.
func isIdle(r *Revision) bool {
	return cliqueOf(r).Spec.Replicas == 0
}

// hasEnded says that no container of a pod runs any more, or that it is gone.
func hasEnded(r *Revision) bool {
	phase := podOf(r).Status.Phase
	return r.Deleted || phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

func isPodReady(pod *corev1.Pod) bool {
	return podCondition(pod, corev1.PodReady)
}

func podCondition(pod *corev1.Pod, conditionType corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == conditionType && c.Status == corev1.ConditionTrue
	})
}

// aliveAt says that a pod existed and had not ended when a revision of its server was
// written; sure is false when a gap hides it.
func (p *podStory) aliveAt(at *Revision) (alive, sure bool) {
	if compareRevisions(p.revs[0], at) >= 0 {
		return false, true
	}
	end := p.first(hasEnded)
	if end == nil {
		return true, true
	}
	return compareRevisions(end, at) > 0, !end.Listed
}
