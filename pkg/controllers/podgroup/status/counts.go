package status

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/controllers/podgroup/pods"
	"github.com/copse-dev/copse/pkg/podgrouper"
)

// counts are numbers of pods.
type counts struct {
	// members are all, need is the minimum.
	members, need int32
	// pending have no node, running run; neither succeeded nor failed ones come back.
	pending, running, succeeded, failed int32
	// have are those that have neither ended nor are about to, gated those of them that are
	// held by a gate, placed those of them that have a node, and those that succeeded.
	have, gated, placed int32
	// loose are members that the scheduler does not know as such: elsewhere are those of them
	// that are in another group of the scheduler's. attached are those of have that it knows,
	// and waiting those of them that have no node.
	loose, elsewhere, attached, waiting int32
	// strays are in other groups of ours, and no members.
	strays int32
}

func count(s Snapshot) counts {
	c := counts{members: int32(len(s.Members)), need: max(1, s.minPods()-s.Strays), strays: s.Strays}
	for _, pod := range s.Members {
		switch pod.Status.Phase {
		case corev1.PodSucceeded:
			c.succeeded++
			c.placed++
			continue
		case corev1.PodFailed:
			c.failed++
			continue
		case corev1.PodRunning:
			c.running++
		}
		loose := s.isLoose(pod)
		if loose {
			c.loose++
			if pod.Spec.SchedulingGroup != nil {
				c.elsewhere++
			}
		}
		if pod.DeletionTimestamp != nil {
			continue
		}
		c.have++
		if !loose {
			c.attached++
		}
		if pod.Spec.NodeName != "" {
			c.placed++
			continue
		}
		c.pending++
		if !loose {
			c.waiting++
		}
		if len(pod.Spec.SchedulingGates) > 0 {
			c.gated++
		}
	}
	return c
}

// isLoose says that a pod was made before it could be put into the group: Kubernetes' own
// scheduler takes none later.
func (s *Snapshot) isLoose(pod *corev1.Pod) bool {
	if s.BackEnd != podgrouper.Native {
		return false
	}
	group := pod.Spec.SchedulingGroup
	return group == nil || group.PodGroupName == nil || *group.PodGroupName != s.NativeName
}

func (c counts) notAttachable() string {
	if c.strays > 0 {
		return fmt.Sprintf("%d pods of the workload are in groups from before, or in none, and are scheduled without it", c.strays+c.loose)
	}
	if c.loose == 0 {
		return ""
	}
	all := c.members - c.succeeded - c.failed
	switch {
	case c.elsewhere == 0:
		return fmt.Sprintf("%d of %d pods were created outside the group, and are scheduled without it", c.loose, all)
	case c.elsewhere == c.loose:
		return fmt.Sprintf("%d of %d pods are in another group of the scheduler's, such as that of a PodGroup of this name which is gone", c.elsewhere, all)
	}
	return fmt.Sprintf("of %d pods %d were created outside the group, and %d are in another group of the scheduler's", all, c.loose-c.elsewhere, c.elsewhere)
}

// resources sums what the pods ask for that have not ended.
func resources(s Snapshot) *schedulerv1alpha1.PodGroupResourcesStatus {
	allocated, requested := corev1.ResourceList{}, corev1.ResourceList{}
	for _, pod := range s.Members {
		if pods.HasEnded(pod) {
			continue
		}
		add(requested, pods.Requests(pod))
		if pod.Spec.NodeName != "" {
			add(allocated, pods.Requests(pod))
		}
	}
	if len(requested) == 0 {
		return nil
	}
	out := &schedulerv1alpha1.PodGroupResourcesStatus{Requested: requested}
	if len(allocated) > 0 {
		out.Allocated = allocated
		if s.Group.Spec.Preemptibility == schedulerv1alpha1.NonPreemptible {
			out.AllocatedNonPreemptible = allocated.DeepCopy()
		}
	}
	return out
}

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		if quantity.IsZero() {
			continue
		}
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
