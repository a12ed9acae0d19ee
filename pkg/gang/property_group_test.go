package gang

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
	"github.com/copse-dev/copse/pkg/labels"
)

const groupCases = 5000

// randomGroup is a scaling group in a state that the API server accepts, with its members.
func randomGroup(r *rand.Rand) GroupSnapshot {
	copies := int32(r.IntN(5))
	workload := oneOf(r, grovev1alpha1.WorkloadTypeInference, grovev1alpha1.WorkloadTypeInference, grovev1alpha1.WorkloadTypeTraining)
	scalingGroup := &grovev1alpha1.PodCliqueScalingGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set-0-g", ResourceVersion: "1", Generation: 2},
		Spec: grovev1alpha1.PodCliqueScalingGroupSpec{
			Replicas: copies, MinAvailable: oneOf(r, nil, ptr.To(int32(r.IntN(4)+1))), CliqueNames: []string{"a", "b"}[:r.IntN(2)+1], WorkloadType: workload,
		},
	}
	status := &scalingGroup.Status
	status.ObservedAttempt = int32(r.IntN(3))
	s := GroupSnapshot{
		Group: scalingGroup, SetAttempt: max(0, status.ObservedAttempt+oneOf[int32](r, 0, 0, 0, 0, 1, -1)),
		Parent: oneOf(r, ParentActive, ParentActive, ParentActive, ParentFailing, ParentFinished, ParentDeleting),
	}
	if chance(r, 80) {
		s.TerminationDelay = ptr.To(oneOf(r, time.Second, time.Minute, time.Hour))
	}
	if chance(r, 50) {
		groupCondition(oneOf(r, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown), randomAge(r))(scalingGroup)
	}
	for index := range copies + 2 {
		if workload == grovev1alpha1.WorkloadTypeInference && chance(r, 25) {
			recycledCopy(status, index, int32(r.IntN(3)), max(0, status.ObservedAttempt-oneOf[int32](r, 0, 0, 1)))
		}
		for _, name := range scalingGroup.Spec.CliqueNames {
			if chance(r, 5) {
				continue
			}
			wanted := max(0, s.SetAttempt+CopyAttempt(scalingGroup, index)-oneOf[int32](r, 0, 0, 0, 0, 0, 1))
			clique := newClique(workload, 1, inAttempt(wanted))
			clique.Name = fmt.Sprintf("set-0-g-%d-%s", index, name)
			clique.Labels = map[string]string{labels.ScalingGroupReplicaIndex: labels.Index(index)}
			oneOf(r, allReady, allReady, allPlaced, breachedFor(randomAge(r)), func(*grovev1alpha1.PodClique) {})(clique)
			if chance(r, 5) {
				deleted(clique)
			}
			s.Cliques = append(s.Cliques, *clique)
		}
	}
	return s
}

func groupRefusal(t *testing.T, scalingGroup *grovev1alpha1.PodCliqueScalingGroup, status grovev1alpha1.PodCliqueScalingGroupStatus) error {
	t.Helper()
	before, after := &grove.PodCliqueScalingGroup{}, &grove.PodCliqueScalingGroup{}
	if err := grovev1alpha1.Convert_v1alpha1_PodCliqueScalingGroup_To_grove_PodCliqueScalingGroup(scalingGroup.DeepCopy(), before, nil); err != nil {
		t.Fatal(err)
	}
	moved := scalingGroup.DeepCopy()
	moved.Status = *status.DeepCopy()
	if err := grovev1alpha1.Convert_v1alpha1_PodCliqueScalingGroup_To_grove_PodCliqueScalingGroup(moved, after, nil); err != nil {
		t.Fatal(err)
	}
	return validation.ValidatePodCliqueScalingGroupStatusUpdate(after, before).ToAggregate()
}

// Whatever a scaling group consists of, every status that is decided is accepted by the
// API server, copies are recycled only where and when they may be, and enough are left.
func TestAnyGroupComesToRest(t *testing.T) {
	recycled, delegated, awaited := 0, 0, 0
	for seed := range uint64(groupCases) {
		s := randomGroup(random(seed))
		snapshot := func() string { return fmt.Sprintf("case %d: %+v\ngroup: %+v", seed, s, s.Group) }
		d := DecideGroup(s, now)
		recycled += len(recyclings(d.Events))
		if conditionOf(d.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached).Status == metav1.ConditionTrue {
			delegated++
		}
		if !d.Next.IsZero() {
			awaited++
		}
		checkGroup(t, snapshot, s, d)
		s.Group = s.Group.DeepCopy()
		s.Group.Status = d.Status
		again := DecideGroup(s, now)
		checkGroup(t, snapshot, s, again)
		if len(again.Events) > 0 {
			t.Fatalf("%s\nrecycles twice by one breach: %v", snapshot(), again.Events)
		}
		// After a recycling the copies count as recovering.
		s.Group = s.Group.DeepCopy()
		s.Group.Status = again.Status
		if last := DecideGroup(s, now); last.Changed {
			t.Fatalf("%s\ndoes not come to rest:\n%s", snapshot(), cmp.Diff(again.Status, last.Status))
		}
	}
	if min(recycled, delegated, awaited) < groupCases/50 {
		t.Errorf("of %d cases %d copies were recycled, %d delegated, %d awaited: the generator is too tame", groupCases, recycled, delegated, awaited)
	}
}

// checkGroup holds what is true of every decision about a scaling group.
func checkGroup(t *testing.T, snapshot func() string, s GroupSnapshot, d GroupDecision) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s\n%s\ndecision: %+v", snapshot(), fmt.Sprintf(format, args...), d)
	}
	if err := groupRefusal(t, s.Group, d.Status); err != nil {
		fail("the API server refuses the status: %v", err)
	}
	after := s.Group.DeepCopy()
	after.Status = d.Status
	left, due, next := s.Group.Spec.Replicas, map[int32]bool{}, time.Time{}
	for index := range s.Group.Spec.Replicas {
		wanted := s.SetAttempt + CopyAttempt(s.Group, index)
		since := time.Time{}
		members := 0
		once := true
		for i := range s.Cliques {
			clique := &s.Cliques[i]
			if clique.Labels[labels.ScalingGroupReplicaIndex] != labels.Index(index) || clique.DeletionTimestamp != nil {
				continue
			}
			members++
			current := clique.Spec.Attempt == wanted && clique.Status.ObservedAttempt == wanted
			once = once && current && clique.Status.WasAvailable
			if c := meta.FindStatusCondition(clique.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached); current && c != nil && c.Status == metav1.ConditionTrue {
				since = earliest(since, c.LastTransitionTime.Time)
			}
		}
		once = once && members == len(s.Group.Spec.CliqueNames)
		recovering := slices.ContainsFunc(s.Group.Status.ReplicaAttempts, func(a grovev1alpha1.ScalingGroupReplicaAttempt) bool {
			return a.Index == index && a.Attempt > 0 && a.SetAttempt == s.SetAttempt
		})
		if !since.IsZero() || recovering && !once {
			left--
		}
		if since.IsZero() || s.TerminationDelay == nil {
			continue
		}
		if end := since.Add(time.Second + *s.TerminationDelay); end.After(now) {
			next = earliest(next, end)
		} else {
			due[index] = true
		}
	}
	need := min(ptr.Deref(s.Group.Spec.MinAvailable, 1), s.Group.Spec.Replicas)
	may := s.Parent == ParentActive && left >= need && !isGroupUpdating(&d.Status) && s.SetAttempt >= s.Group.Status.ObservedAttempt && s.Group.Spec.WorkloadType == grovev1alpha1.WorkloadTypeInference
	if !may {
		due, next = nil, time.Time{}
	}
	for index := range s.Group.Spec.Replicas + 2 {
		if rise := CopyAttempt(after, index) - CopyAttempt(s.Group, index); rise != 0 != due[index] || rise > 1 {
			fail("attempt of copy %d rises by %d, due: %v", index, rise, due[index])
		}
	}
	if !d.Next.Equal(next) {
		fail("looks again at %s, want %s", d.Next, next)
	}
	if (len(d.Confirm) > 0) != (len(due) > 0) || len(recyclings(d.Events)) != len(due) {
		fail("confirms %d, tells of %d", len(d.Confirm), len(recyclings(d.Events)))
	}
}
