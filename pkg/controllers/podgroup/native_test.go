package podgroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/podgrouper"
	"github.com/copse-dev/copse/pkg/podgrouper/desired"
)

// A namespace may ask for groups while its workloads run: their pods are in none, and a pod
// that replaces one of them is not to wait for them.
func TestTheSchedulersGroupDoesNotWaitForPodsThatAreNotInIt(t *testing.T) {
	of := &schedulerv1alpha1.PodGroup{Spec: schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](4)}}
	for loose, want := range map[int32]int32{0: 4, 3: 1, 9: 1} {
		group := desiredNative(of, "pg", desired.MinPods(of), loose)
		if got := group.Spec.SchedulingPolicy.Gang.MinCount; got != want {
			t.Errorf("%d are not in it: the minimum is %d, want %d", loose, got, want)
		}
		if group.Spec.DisruptionMode == nil || group.Spec.DisruptionMode.All == nil {
			t.Error("it is not disrupted as a whole")
		}
	}
}

// The annotation can be put on any pod, at any time. The group waits for as many of its own as
// without it.
func TestAPodThatOnlyNamesAGroupDoesNotLowerItsMinimum(t *testing.T) {
	made := &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: group().Name, Annotations: map[string]string{podgrouper.GroupedByAnnotation: podgrouper.GroupedByValue, podgrouper.MadeAsAnnotation: group().Name},
	}}
	byHand := &schedulerv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}}
	outside := func(p *corev1.Pod) { p.Spec.SchedulingGroup = nil }
	of := func(scheduler string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { outside(p); p.Spec.SchedulerName = scheduler }
	}
	named := func(annotations ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			outside(p)
			p.Annotations = map[string]string{podgrouper.PodGroupAnnotation: "mine"}
			for _, key := range annotations {
				p.Annotations[key] = "true"
			}
		}
	}
	for name, tc := range map[string]struct {
		group  *schedulerv1alpha1.PodGroup
		change func(*corev1.Pod)
		want   int32
	}{
		"from before the group":                  {made, ungrouped, 1},
		"that could not be put into it":          {made, outside, 1},
		"in it":                                  {made, func(*corev1.Pod) {}, 0},
		"in another":                             {made, func(p *corev1.Pod) { p.Spec.SchedulingGroup.PodGroupName = ptr.To("other") }, 1},
		"of KAI":                                 {made, of("kai-scheduler"), 0},
		"of another scheduler":                   {made, of("others"), 0},
		"to which somebody has added the name":   {made, named(), 0},
		"from before the group, which succeeded": {made, func(p *corev1.Pod) { ungrouped(p); succeeds(p) }, 1},
		"that has failed":                        {made, func(p *corev1.Pod) { outside(p); p.Status.Phase = corev1.PodFailed }, 0},
		"that goes":                              {made, func(p *corev1.Pod) { outside(p); p.DeletionTimestamp = &metav1.Time{} }, 0},
		"that names a group of its user":         {byHand, named(), 1},
		"that names it, and wants no group":      {byHand, named(podgrouper.KAISkipAnnotation), 0},
		"that names it, of KAI":                  {byHand, func(p *corev1.Pod) { named()(p); p.Spec.SchedulerName = "kai-scheduler" }, 0},
		"that names it, of a DaemonSet": {byHand, func(p *corev1.Pod) {
			named()(p)
			p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "apps/v1", "DaemonSet"
		}, 0},
		"that names it, of those without a group": {byHand, of("others"), 0},
	} {
		w := newWorld(t)
		member := pod("a", tc.change)
		s := &state{key: types.NamespacedName{Namespace: "ns", Name: tc.group.Name}, group: tc.group, members: []*corev1.Pod{member}, loose: sets.New[types.UID]()}
		if pods.IsLoose(member) {
			s.loose.Insert(member.UID)
		}
		if got := w.unattached(s, tc.group.Name); got != tc.want {
			t.Errorf("a pod %s: the minimum is %d less, want %d", name, got, tc.want)
		}
	}
}

// A group of a leader and workers is a gang, though its leader is enough to begin with: that
// it is disrupted as a whole cannot be said later.
func TestAGroupOfSeveralPartsIsDisruptedAsAWhole(t *testing.T) {
	spec := schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](1), SubGroups: []schedulerv1alpha1.SubGroup{{Name: "leader"}, {Name: "workers"}}}
	if group := desiredNative(&schedulerv1alpha1.PodGroup{Spec: spec}, "pg", desired.MinPods(&schedulerv1alpha1.PodGroup{Spec: spec}), 0); group.Spec.DisruptionMode == nil {
		t.Error("pods of it go one by one")
	}
	spec.SubGroups = nil
	if group := desiredNative(&schedulerv1alpha1.PodGroup{Spec: spec}, "pg", desired.MinPods(&schedulerv1alpha1.PodGroup{Spec: spec}), 0); group.Spec.DisruptionMode != nil {
		t.Error("pods of which one is enough go together")
	}
}
