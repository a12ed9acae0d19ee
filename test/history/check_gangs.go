package history

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// checkGangs holds I12, as far as pods show it: no pod of a gang gets a node before as
// many pods of it as have to be scheduled together exist, and no pod of a scaled gang is
// made before the base gang was scheduled.
func checkGangs(w *world, f *Findings) {
	// Two leaders may delete a group and make it again: there is more than one of its name.
	groups := map[string][]*Revision{}
	for _, group := range w.of(NativeGroup) {
		groups[group.name] = append(groups[group.name], group.revs...)
	}
	for _, pod := range w.pods {
		checkBase(w, f, pod)
		name := nativeGroupName(podOf(pod.revs[0]))
		bound := pod.first(func(r *Revision) bool { return podOf(r).Spec.NodeName != "" })
		if name == "" || bound == nil {
			continue
		}
		if bound.Listed || groups[name] == nil {
			f.skip("I12", "how pod %s got its node, or its group, is not known", pod.name)
			continue
		}
		need, known := minCount(groups[name], bound)
		if !known {
			f.add("I12", bound, pod.revs, "pod %s has a node before its group %s exists", pod.name, name)
			continue
		}
		members := membersAt(w, name, bound)
		if int32(len(members)) < need {
			f.add("I12", bound, members, "pod %s has a node when %d of the %d pods of its gang exist", pod.name, len(members), need)
		}
	}
}

func nativeGroupName(pod *corev1.Pod) string {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return ""
	}
	return *pod.Spec.SchedulingGroup.PodGroupName
}

// minCount is the lowest minimum that a group has had until a revision.
func minCount(group []*Revision, at *Revision) (int32, bool) {
	lowest, known := int32(0), false
	for _, rev := range group {
		if compareRevisions(rev, at) > 0 && !rev.Listed {
			continue
		}
		if gang := nativeGroupOf(rev).Spec.SchedulingPolicy.Gang; gang != nil && (!known || gang.MinCount < lowest) {
			lowest, known = gang.MinCount, true
		}
	}
	return lowest, known
}

// membersAt are the first revisions of all pods that have been in a group until then.
func membersAt(w *world, group string, at *Revision) []*Revision {
	var out []*Revision
	for _, pod := range w.pods {
		if created := pod.revs[0]; (compareRevisions(created, at) <= 0 || created.Listed) && nativeGroupName(podOf(created)) == group {
			out = append(out, created)
		}
	}
	return out
}

// checkBase looks whether the base gang was scheduled when a pod of a scaled gang was made.
func checkBase(w *world, f *Findings, pod *podStory) {
	base := podOf(pod.revs[0]).Labels[labels.BasePodGang]
	if base == "" {
		return
	}
	gangs := slices.DeleteFunc(w.of(Gang), func(g *story) bool { return g.name != base })
	var related []*Revision
	for _, gang := range gangs {
		if w.possibly(gang, pod.revs[0], func(r *Revision) bool {
			return meta.IsStatusConditionTrue(gangOf(r).Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled)
		}) {
			return
		}
		related = append(related, gang.revs...)
	}
	if w.hasGap(Gang) {
		f.skip("I12", "revisions of PodGangs are missing, so whether %s came too early is not known", pod.name)
		return
	}
	f.add("I12", pod.revs[0], related, "pod %s of a scaled gang is made before %s was scheduled", pod.name, base)
}
