package gang

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

const setCases = 3000

// randomDelay is a terminationDelay that the API server accepts.
func randomDelay(r *rand.Rand, training bool) *metav1.Duration {
	delay := oneOf(r, time.Second, time.Minute, time.Hour)
	if training {
		delay = oneOf(r, 0, 0, delay)
	}
	return &metav1.Duration{Duration: delay}
}

// randomSet is a set in a state that the API server accepts, with what exists of it.
func randomSet(r *rand.Rand) SetSnapshot {
	training := chance(r, 60)
	pcs := &grovev1alpha1.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set", ResourceVersion: "1", Generation: 2},
		Spec:       grovev1alpha1.PodCliqueSetSpec{WorkloadType: grovev1alpha1.WorkloadTypeInference, Replicas: int32(r.IntN(3) + 1)},
	}
	for _, name := range []string{"a", "b", "c"}[:r.IntN(3)+1] {
		size := int32(r.IntN(3) + 1)
		template(name, size, int32(r.IntN(int(size))+1))(pcs)
	}
	if chance(r, 70) {
		pcs.Spec.Template.TerminationDelay = randomDelay(r, training)
	}
	if chance(r, 50) {
		copies := int32(r.IntN(3) + 1)
		group("g", copies, int32(r.IntN(int(copies))+1), "a")(pcs)
		if pcs.Spec.Template.TerminationDelay != nil && chance(r, 50) {
			pcs.Spec.Template.PodCliqueScalingGroups[0].TerminationDelay = randomDelay(r, training)
		}
	}
	for index := range pcs.Spec.Replicas + 1 {
		if chance(r, 20) {
			n := int32(r.IntN(3))
			replicaAttempt(index, n)(pcs)
			if training {
				pcs.Status.RestartCount += n
			}
		}
	}
	s := SetSnapshot{
		Set: pcs, Cliques: map[string]*grovev1alpha1.PodClique{}, Groups: map[string]*grovev1alpha1.PodCliqueScalingGroup{},
		Gangs: map[string]*schedulerv1alpha1.PodGang{},
	}
	if training {
		pcs.Spec.WorkloadType = grovev1alpha1.WorkloadTypeTraining
		budget(pcs.Status.RestartCount+int32(r.IntN(5)-1), pcs.Status.RestartCount)(pcs)
		if chance(r, 20) {
			maxRuntime(oneOf(r, time.Second, time.Minute, time.Hour))(pcs)
		}
	}
	if chance(r, 50) {
		started(-oneOf(r, time.Second, time.Minute, time.Minute+time.Second, 2*time.Hour))(pcs)
		if end := RuntimeDeadline(pcs); !end.IsZero() && !now.Before(end) {
			s.FinishedAt = oneOf(r, time.Time{}, end.Add(-time.Second), end)
		}
	}
	if chance(r, 20) {
		meta.SetStatusCondition(&pcs.Status.Conditions, metav1.Condition{
			Type: grovev1alpha1.ConditionTypeRestarting, Status: metav1.ConditionTrue, Reason: grovev1alpha1.ReasonReplicaRestarting, Message: "before",
		})
	}
	// Some cases are about a single kind of clique, else success would be rare.
	kind := r.IntN(8)
	for replica := range pcs.Spec.Replicas {
		addRandomReplica(r, s, replica, kind)
	}
	return s
}

// addRandomReplica puts what exists of a replica into a snapshot.
func addRandomReplica(r *rand.Rand, s SetSnapshot, replica int32, kind int) {
	current := ReplicaAttempt(s.Set, replica)
	for i := range s.Set.Spec.Template.PodCliqueScalingGroups {
		if chance(r, 90) {
			scalingGroup := randomGroupOfSet(r, s.Set, replica, &s.Set.Spec.Template.PodCliqueScalingGroups[i])
			s.Groups[scalingGroup.Name] = scalingGroup
		}
	}
	for _, expected := range ExpectedCliques(s.Set, replica, s.sizes) {
		if chance(r, 5) {
			continue
		}
		wanted := current + CopyAttempt(s.Groups[expected.GroupName], expected.Copy)
		s.Cliques[expected.Name] = randomCliqueOfSet(r, s.Set, expected, wanted, kind)
	}
	if chance(r, 50) {
		gang := &schedulerv1alpha1.PodGang{ObjectMeta: metav1.ObjectMeta{
			Name: naming.Replica("set", replica), Labels: map[string]string{labels.RestartAttempt: labels.Index(current)},
		}}
		gang.Status.ObservedAttempt = max(0, current-oneOf[int32](r, 0, 0, 1))
		meta.SetStatusCondition(&gang.Status.Conditions, metav1.Condition{
			Type: schedulerv1alpha1.PodGangConditionScheduled, Status: oneOf(r, metav1.ConditionTrue, metav1.ConditionFalse), Reason: "R",
		})
		s.Gangs[gang.Name] = gang
	}
}

func randomGroupOfSet(r *rand.Rand, pcs *grovev1alpha1.PodCliqueSet, replica int32, config *grovev1alpha1.PodCliqueScalingGroupConfig) *grovev1alpha1.PodCliqueScalingGroup {
	current := ReplicaAttempt(pcs, replica)
	scalingGroup := &grovev1alpha1.PodCliqueScalingGroup{
		ObjectMeta: metav1.ObjectMeta{Name: naming.ScalingGroup(pcs.Name, replica, config.Name)},
		Spec: grovev1alpha1.PodCliqueScalingGroupSpec{
			Replicas: *config.Replicas + int32(r.IntN(2)), MinAvailable: config.MinAvailable, CliqueNames: config.CliqueNames, WorkloadType: pcs.Spec.WorkloadType,
		},
	}
	status := &scalingGroup.Status
	status.ObservedAttempt = max(0, current-oneOf[int32](r, 0, 0, 0, 1))
	if chance(r, 50) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: oneOf(r, metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown),
			Reason: "R", LastTransitionTime: at(-randomAge(r)),
		})
	}
	for index := range scalingGroup.Spec.Replicas {
		if pcs.Spec.WorkloadType == grovev1alpha1.WorkloadTypeInference && chance(r, 20) {
			recycledCopy(status, index, int32(r.IntN(3)), max(0, current-oneOf[int32](r, 0, 1)))
		}
	}
	return scalingGroup
}

// randomAge is often just that of which a random delay makes a difference.
func randomAge(r *rand.Rand) time.Duration {
	return oneOf(r, 0, time.Second, 2*time.Second, time.Minute, time.Minute+time.Second, time.Hour, 2*time.Hour)
}

func randomCliqueOfSet(r *rand.Rand, pcs *grovev1alpha1.PodCliqueSet, expected ExpectedClique, wanted int32, kind int) *grovev1alpha1.PodClique {
	spec := *expected.Template.Spec.DeepCopy()
	spec.WorkloadType = pcs.Spec.WorkloadType
	spec.Attempt = wanted
	clique := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: expected.Name}, Spec: spec}
	clique.Status.ObservedAttempt = wanted
	if kind > 3 {
		clique.Spec.Attempt = max(0, wanted-oneOf[int32](r, 0, 0, 0, 1))
		clique.Status.ObservedAttempt = max(0, clique.Spec.Attempt-oneOf[int32](r, 0, 0, 0, 1))
	}
	status := &clique.Status
	status.WasAvailable = chance(r, 50)
	switch k := kind; {
	case k < 2 || k > 4 && chance(r, 20): // finished
		status.CompletedIndexes = indexset.Of(indexesBelow(spec.Replicas)...).String()
		condition(grovev1alpha1.ConditionTypeSucceeded, metav1.ConditionTrue, "R", 0)(clique)
	case k < 4 || k > 4 && chance(r, 40): // running
		status.Replicas, status.RunningReplicas, status.ScheduledReplicas = spec.Replicas, spec.Replicas, spec.Replicas
		status.ReadyReplicas, status.UpdatedReplicas = int32(r.IntN(int(spec.Replicas)+1)), int32(r.IntN(int(spec.Replicas)+1))
	case chance(r, 70): // breached
		failedBefore(0, int32(r.IntN(7)+1), -time.Minute)(clique)
		breached(randomAge(r), "b")(clique)
		if chance(r, 5) && expected.Group == nil {
			deleted(clique)
		}
	case chance(r, 50): // failed within the tolerance
		failedBefore(0, int32(r.IntN(7)+1), -time.Minute)(clique)
		if chance(r, 50) {
			recovered(0, -time.Second)(clique)
		}
	}
	return clique
}

func indexesBelow(n int32) []int32 {
	var out []int32
	for index := range n {
		out = append(out, index)
	}
	return out
}

func setRefusal(t *testing.T, pcs *grovev1alpha1.PodCliqueSet, status grovev1alpha1.PodCliqueSetStatus) error {
	t.Helper()
	before, after := &grove.PodCliqueSet{}, &grove.PodCliqueSet{}
	if err := grovev1alpha1.Convert_v1alpha1_PodCliqueSet_To_grove_PodCliqueSet(pcs.DeepCopy(), before, nil); err != nil {
		t.Fatal(err)
	}
	moved := pcs.DeepCopy()
	moved.Status = *status.DeepCopy()
	if err := grovev1alpha1.Convert_v1alpha1_PodCliqueSet_To_grove_PodCliqueSet(moved, after, nil); err != nil {
		t.Fatal(err)
	}
	return validation.ValidatePodCliqueSetStatusUpdate(after, before).ToAggregate()
}

// endOf says in plain words when the attempt of a replica ends; zero for never.
func endOf(s SetSnapshot, replica int32) time.Time {
	isTraining := s.Set.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining
	current := ReplicaAttempt(s.Set, replica)
	var end time.Time
	first := func(moment time.Time) {
		if end.IsZero() || moment.Before(end) {
			end = moment
		}
	}
	after := func(since metav1.Time, delay *metav1.Duration) {
		switch {
		case delay == nil && isTraining, delay != nil && delay.Duration == 0:
			first(since.Time)
		case delay != nil:
			first(since.Add(time.Second + delay.Duration))
		}
	}
	breachedIn := func(clique *grovev1alpha1.PodClique, wanted int32) bool {
		return clique != nil && clique.DeletionTimestamp == nil && clique.Spec.Attempt == wanted && clique.Status.ObservedAttempt == wanted &&
			meta.IsStatusConditionTrue(clique.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
	}
	delayOf := func(config *grovev1alpha1.PodCliqueScalingGroupConfig) *metav1.Duration {
		if config != nil && config.TerminationDelay != nil {
			return config.TerminationDelay
		}
		return s.Set.Spec.Template.TerminationDelay
	}
	memberBreached := false
	for _, expected := range ExpectedCliques(s.Set, replica, s.sizes) {
		clique, wanted := s.Cliques[expected.Name], current+CopyAttempt(s.Groups[expected.GroupName], expected.Copy)
		isBreached := breachedIn(clique, wanted)
		if expected.Group != nil && !isTraining {
			memberBreached = memberBreached || isBreached
			continue
		}
		if isBreached {
			after(meta.FindStatusCondition(clique.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached).LastTransitionTime, delayOf(expected.Group))
		}
		if clique == nil || clique.DeletionTimestamp != nil || !isTraining || clique.Spec.Attempt != wanted || clique.Status.ObservedAttempt != wanted {
			continue
		}
		for _, failed := range clique.Status.FailedIndexes {
			if failed.Count >= 6 && failed.RecoveredTime == nil {
				first(failed.LastTime.Time)
			}
		}
	}
	for i := range s.Set.Spec.Template.PodCliqueScalingGroups {
		config := &s.Set.Spec.Template.PodCliqueScalingGroups[i]
		scalingGroup := s.groupObject(replica, config)
		if isTraining || scalingGroup == nil || !memberBreached || scalingGroup.Status.ObservedAttempt != current {
			continue
		}
		if c := meta.FindStatusCondition(scalingGroup.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached); c != nil && c.Status == metav1.ConditionTrue {
			after(c.LastTransitionTime, delayOf(config))
		}
	}
	return end
}

// checkAttempts holds that attempts end when they have to, and only then.
func checkAttempts(t *testing.T, snapshot func() string, s SetSnapshot, d SetDecision) (restarted bool) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s\n%s\ndecision: %+v", snapshot(), fmt.Sprintf(format, args...), d)
	}
	due := map[int32]bool{}
	var next time.Time
	active := ParentOf(s.Set) == ParentActive
	runtime := RuntimeDeadline(s.Set)
	tooLong := !runtime.IsZero() && !now.Before(runtime) && (s.FinishedAt.IsZero() || !s.FinishedAt.Before(runtime))
	if active && !runtime.IsZero() && now.Before(runtime) {
		next = runtime
	}
	for replica := range s.Set.Spec.Replicas {
		end := endOf(s, replica)
		switch {
		case !active || end.IsZero():
		case end.After(now):
			next = earliest(next, end)
		default:
			due[replica] = true
		}
	}
	failed := ParentOf(s.Set) != ParentFailing && meta.IsStatusConditionTrue(d.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget)
	left := int32(len(due))
	if s.Set.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining {
		left = max(0, *s.Set.Spec.TrainingSpec.MaxRestarts-s.Set.Status.RestartCount)
	}
	if want := active && (tooLong || int32(len(due)) > left); failed != want {
		fail("fails: %v, want %v", failed, want)
	}
	after := s.Set.DeepCopy()
	after.Status = d.Status
	for replica := range s.Set.Spec.Replicas + 1 {
		rise := ReplicaAttempt(after, replica) - ReplicaAttempt(s.Set, replica)
		if want := due[replica] && !failed; rise != 0 != want || rise > 1 {
			fail("attempt of replica %d rises by %d, due: %v", replica, rise, due[replica])
		}
		restarted = restarted || rise > 0
	}
	if !failed && !d.Next.Equal(next) {
		fail("looks again at %s, want %s", d.Next, next)
	}
	if (len(d.Confirm) > 0) != (len(due) > 0 && !tooLong) {
		fail("cliques to confirm: %d", len(d.Confirm))
	}
	restarting := conditionOf(d.Status.Conditions, grovev1alpha1.ConditionTypeRestarting).Status
	if restarted && restarting != metav1.ConditionTrue || (failed || isFinished(&d.Status)) && restarting == metav1.ConditionTrue {
		fail("Restarting is %q", restarting)
	}
	return restarted
}

// Whatever a set consists of, every status that is decided is accepted by the API
// server, attempts end when they have to, terminal phases stay, and events come once.
func TestAnySetComesToRest(t *testing.T) {
	reached := map[grovev1alpha1.PodCliqueSetPhase]int{}
	restarted := map[grovev1alpha1.WorkloadType]int{}
	for seed := range uint64(setCases) {
		r := random(seed)
		s := randomSet(r)
		// gone says that no pod is left once the set fails.
		gone := chance(r, 50)
		snapshot := func() string {
			return fmt.Sprintf("case %d: set %+v\ncliques %v", seed, s.Set, slices.Sorted(maps.Keys(s.Cliques)))
		}
		told := map[Event]bool{}
		for pass := range 4 {
			d := DecideSet(s, now)
			if err := setRefusal(t, s.Set, d.Status); err != nil {
				t.Fatalf("%s\nthe API server refuses the status: %v", snapshot(), err)
			}
			if checkAttempts(t, snapshot, s, d) {
				restarted[s.Set.Spec.WorkloadType]++
			}
			for _, e := range d.Events {
				if told[e] {
					t.Fatalf("%s\n%+v is told twice", snapshot(), e)
				}
				told[e] = true
			}
			if len(d.Events) > 0 && !d.Urgent {
				t.Fatalf("%s\nevents %v come with a write that may wait", snapshot(), d.Events)
			}
			if pass == 3 && d.Changed {
				t.Fatalf("%s\ndoes not come to rest:\n%s", snapshot(), cmp.Diff(s.Set.Status, d.Status))
			}
			s.Set = s.Set.DeepCopy()
			s.Set.Status = d.Status
			s.NoActivePods = gone && ParentOf(s.Set) == ParentFailing
		}
		reached[s.Set.Status.Phase]++
		checkFinal(t, snapshot, s)
	}
	for _, phase := range []grovev1alpha1.PodCliqueSetPhase{
		grovev1alpha1.PodCliqueSetPending, grovev1alpha1.PodCliqueSetRunning, grovev1alpha1.PodCliqueSetSucceeded, grovev1alpha1.PodCliqueSetFailed,
	} {
		if reached[phase] < setCases/50 {
			t.Errorf("of %d cases %d ended as %s: the generator is too tame", setCases, reached[phase], phase)
		}
	}
	for _, workload := range []grovev1alpha1.WorkloadType{grovev1alpha1.WorkloadTypeTraining, grovev1alpha1.WorkloadTypeInference} {
		if restarted[workload] < setCases/50 {
			t.Errorf("of %d cases %d restarted in %s: the generator is too tame", setCases, restarted[workload], workload)
		}
	}
}

// checkFinal holds that once a set fails or has ended, nothing that happens to its pods
// changes how it ends, and that nothing restarts any more.
func checkFinal(t *testing.T, snapshot func() string, s SetSnapshot) {
	t.Helper()
	if ParentOf(s.Set) == ParentActive {
		return
	}
	for name, clique := range s.Cliques {
		changed := inference(1, inAttempt(clique.Spec.Attempt), breached(24*time.Hour, "late"))
		changed.Status.RunningReplicas = 1
		s.Cliques[name] = changed
	}
	s.NoActivePods = false
	d := DecideSet(s, now.Add(time.Hour))
	want := s.Set.Status.Phase
	if !isFinished(&s.Set.Status) {
		// While it fails, the phase says what still runs.
		want = d.Status.Phase
	}
	if d.Status.Phase != want || len(d.Events) > 0 || d.Status.RestartCount != s.Set.Status.RestartCount || SumOfAttempts(&grovev1alpha1.PodCliqueSet{Status: d.Status}) != SumOfAttempts(s.Set) {
		t.Fatalf("%s\nleaves %q for %q, events %v", snapshot(), s.Set.Status.Phase, d.Status.Phase, d.Events)
	}
	if ParentOf(s.Set) == ParentFailing && !meta.IsStatusConditionTrue(d.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget) {
		t.Fatalf("%s\nfails no more", snapshot())
	}
	if err := setRefusal(t, s.Set, d.Status); err != nil {
		t.Fatalf("%s\nthe API server refuses the status: %v", snapshot(), err)
	}
}
