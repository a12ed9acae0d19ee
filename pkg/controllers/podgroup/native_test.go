package podgroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

func TestMinimum(t *testing.T) {
	for name, tc := range map[string]struct {
		m    minimum
		want int32
	}{
		"as it is":                                {minimum{wanted: 4, asked: 4, count: 4, waiting: 1}, 4},
		"the group asks for more":                 {minimum{wanted: 6, asked: 4, count: 4, waiting: 1}, 6},
		"it asks for less":                        {minimum{wanted: 2, asked: 4, count: 4}, 2},
		"some have succeeded and one waits":       {minimum{wanted: 4, asked: 4, count: 4, scheduled: true, waiting: 1, succeeded: 3}, 1},
		"nobody waits":                            {minimum{wanted: 4, asked: 4, count: 4, scheduled: true, succeeded: 3}, 4},
		"before it was scheduled nobody succeeds": {minimum{wanted: 4, asked: 4, count: 4, waiting: 1, succeeded: 3}, 4},
		"more have succeeded than are needed":     {minimum{wanted: 2, asked: 2, count: 2, scheduled: true, waiting: 1, succeeded: 5}, 1},
		"those that have succeeded were deleted":  {minimum{wanted: 4, asked: 4, count: 1, scheduled: true, waiting: 1}, 1},
		"all have come back":                      {minimum{wanted: 4, asked: 4, count: 1, scheduled: true, waiting: 4}, 4},
		"all but those that run have come back":   {minimum{wanted: 4, asked: 4, count: 1, scheduled: true, waiting: 4, placed: 1}, 1},
		"all have come back, after one succeeded": {minimum{wanted: 4, asked: 4, count: 1, scheduled: true, waiting: 4, succeeded: 1}, 1},
		"some could not be put into it":           {minimum{wanted: 4, asked: 4, count: 4, waiting: 1, unattached: 3}, 1},
		"more than it needs could not be":         {minimum{wanted: 2, asked: 2, count: 2, waiting: 1, unattached: 3}, 1},
		"it asks for more, and some succeeded":    {minimum{wanted: 6, asked: 4, count: 2, scheduled: true, waiting: 1, succeeded: 2}, 4},
	} {
		if got := tc.m.decide(); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

// A namespace may ask for groups while its workloads run: their pods are in none, and a pod
// that replaces one of them is not to wait for them.
func TestTheSchedulersGroupDoesNotWaitForPodsThatAreNotInIt(t *testing.T) {
	pod := func(group string, change func(*corev1.Pod)) *corev1.Pod {
		out := &corev1.Pod{}
		if group != "" {
			out.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(group)}
		}
		if change != nil {
			change(out)
		}
		return out
	}
	ended := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
	going := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }
	members := []*corev1.Pod{pod("pg", nil), pod("", nil), pod("other", nil), pod("", ended), pod("", going)}
	if got := unattached(members, "pg"); got != 2 {
		t.Errorf("%d are not in it", got)
	}
	of := &schedulerv1alpha1.PodGroup{Spec: schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](4)}}
	for loose, want := range map[int32]int32{0: 4, 3: 1, 9: 1} {
		group := desiredNative(of, "pg", loose)
		if got := group.Spec.SchedulingPolicy.Gang.MinCount; got != want {
			t.Errorf("%d are not in it: the minimum is %d, want %d", loose, got, want)
		}
		if group.Spec.DisruptionMode == nil || group.Spec.DisruptionMode.All == nil {
			t.Error("it is not disrupted as a whole")
		}
	}
}

// A group of a leader and workers is a gang, though its leader is enough to begin with: that
// it is disrupted as a whole cannot be said later.
func TestAGroupOfSeveralPartsIsDisruptedAsAWhole(t *testing.T) {
	spec := schedulerv1alpha1.PodGroupSpec{MinMember: ptr.To[int32](1), SubGroups: []schedulerv1alpha1.SubGroup{{Name: "leader"}, {Name: "workers"}}}
	if group := desiredNative(&schedulerv1alpha1.PodGroup{Spec: spec}, "pg", 0); group.Spec.DisruptionMode == nil {
		t.Error("pods of it go one by one")
	}
	spec.SubGroups = nil
	if group := desiredNative(&schedulerv1alpha1.PodGroup{Spec: spec}, "pg", 0); group.Spec.DisruptionMode != nil {
		t.Error("pods of which one is enough go together")
	}
}
