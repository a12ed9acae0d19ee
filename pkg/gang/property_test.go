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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
)

const (
	cliqueCases = 5000
)

// The cases are the same in every run; a failure names the one to look at.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// randomClique is a clique in a state that the API server accepts.
func randomClique(r *rand.Rand) *grovev1alpha1.PodClique {
	replicas := int32(r.IntN(5))
	clique := newClique(oneOf(r, grovev1alpha1.WorkloadTypeTraining, grovev1alpha1.WorkloadTypeInference), replicas)
	clique.Spec.MinAvailable = oneOf(r, nil, ptr.To(int32(1)), ptr.To(replicas), ptr.To(int32(r.IntN(5)+1)))
	clique.Spec.Attempt = int32(r.IntN(3))
	clique.Generation = r.Int64N(3) + 1
	if chance(r, 5) {
		deleted(clique)
	}
	status := &clique.Status
	status.ObservedAttempt = int32(r.IntN(int(clique.Spec.Attempt) + 1))
	status.CreatedAttempt, status.CreatedReplicas = nil, 0
	if chance(r, 60) {
		status.CreatedAttempt, status.CreatedReplicas = ptr.To(int32(r.IntN(int(status.ObservedAttempt)+1))), int32(r.IntN(6))
	}
	status.WasAvailable = chance(r, 40)
	status.ReadyReplicas, status.Replicas = int32(r.IntN(4)), int32(r.IntN(4))
	var finished []int32
	for index := range int32(6) {
		if clique.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining && chance(r, 20) {
			finished = append(finished, index)
		}
		if chance(r, 20) {
			ago := r.IntN(1800)
			failedBefore(index, int32(r.IntN(8)+1), -time.Duration(ago)*time.Second)(clique)
			if chance(r, 30) {
				recovered(index, -time.Duration(r.IntN(ago+1))*time.Second)(clique)
			}
		}
	}
	status.OldReplicas = int32(r.IntN(3))
	status.CompletedIndexes = indexset.Of(finished...).String()
	for _, conditionType := range []string{
		grovev1alpha1.ConditionTypeMinAvailableBreached, grovev1alpha1.ConditionTypePodCliqueScheduled,
		grovev1alpha1.ConditionTypeNameConflict, grovev1alpha1.ConditionTypePodCreationFailed,
	} {
		if chance(r, 40) {
			condition(conditionType, oneOf(r, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown), "Before", oneOf(r, -time.Hour, -time.Minute, -time.Second, 0))(clique)
		}
	}
	return clique
}

// randomPods are pods of the clique's attempt and of those before it, some of them twice
// for one index.
func randomPods(r *rand.Rand, clique *grovev1alpha1.PodClique) []Pod {
	var all []Pod
	for n := range r.IntN(8) {
		pod := podOf(int32(r.IntN(6)), oneOf(r, scheduled, running, ready, succeeded, failed, gated, func(*Pod) {}))
		pod.Attempt = max(0, clique.Spec.Attempt-oneOf[int32](r, 0, 0, 0, 0, 1))
		pod.TemplateHash = oneOf(r, "hash", "hash", "other")
		if chance(r, 20) {
			pod.DeletionRequested = ptr.To(now.Add(oneOf(r, -2*time.Minute, -time.Minute, -time.Second)))
			pod.DeletionDue = pod.DeletionRequested.Add(oneOf(r, 0, 30*time.Second, time.Hour))
		}
		if pod.Scheduled {
			pod.Node = oneOf(r, "good", "gone")
		}
		pod.CrashLooping = pod.Started && !pod.Ended() && chance(r, 10)
		if chance(r, 10) {
			pod.FinishedAt = time.Time{}
		}
		if chance(r, 70) {
			// Else it has the UID that a failure on record may have.
			pod.UID = types.UID(fmt.Sprintf("new-%d", n))
		}
		if slices.ContainsFunc(all, func(p Pod) bool { return p.UID == pod.UID }) {
			continue
		}
		all = append(all, pod)
	}
	return all
}

func randomCliqueSnapshot(r *rand.Rand) CliqueSnapshot {
	clique := randomClique(r)
	s := CliqueSnapshot{
		Clique: clique, Turn: CliqueTurn{PodTemplateHash: "hash", GenerationHash: "generation", Due: clique.Spec.WorkloadType == grovev1alpha1.WorkloadTypeInference && chance(r, 20), MaxUnavailable: int32(r.IntN(4))}, Pods: randomPods(r, clique),
		Parent:        oneOf(r, ParentActive, ParentActive, ParentActive, ParentFailing, ParentFinished, ParentDeleting),
		Membership:    Membership{Known: chance(r, 80), Scheduled: chance(r, 50), BaseScheduled: chance(r, 80)},
		OthersDrained: chance(r, 80),
	}
	s.Turn.Over = !s.Turn.Due && chance(r, 10)
	if chance(r, 50) {
		s.DeadNodes = map[string]string{"gone": "is gone"}
	}
	if chance(r, 70) {
		s.TerminationDelay = new(oneOf(r, 0, 30*time.Second, time.Minute, time.Hour))
	}
	for _, index := range MissingIndexes(clique, s.Pods) {
		if chance(r, 50) {
			s.Lost = append(s.Lost, index)
		}
	}
	return s
}

// cliqueRefusal is what the API server has against moving a clique to a status.
func cliqueRefusal(t *testing.T, clique *grovev1alpha1.PodClique, status grovev1alpha1.PodCliqueStatus) error {
	t.Helper()
	before, after := &grove.PodClique{}, &grove.PodClique{}
	moved := clique.DeepCopy()
	moved.ResourceVersion = "1"
	if err := grovev1alpha1.Convert_v1alpha1_PodClique_To_grove_PodClique(moved, before, nil); err != nil {
		t.Fatal(err)
	}
	moved = moved.DeepCopy()
	moved.Status = *status.DeepCopy()
	if err := grovev1alpha1.Convert_v1alpha1_PodClique_To_grove_PodClique(moved, after, nil); err != nil {
		t.Fatal(err)
	}
	return validation.ValidatePodCliqueStatusUpdate(after, before).ToAggregate()
}

// Whatever a pass finds, it either records or acts; what it records is accepted by the
// API server, and once read back leads to a pass that records nothing, changes nothing,
// and does the same again if asked again.
func TestAnyCliqueComesToRest(t *testing.T) {
	recorded, acted, replaced, forced := 0, 0, 0, 0
	for seed := range uint64(cliqueCases) {
		r := random(seed)
		s := randomCliqueSnapshot(r)
		snapshot := func() string { return fmt.Sprintf("case %d: %+v\nclique: %+v", seed, s, s.Clique) }
		d := DecideClique(s, now)
		checkCliqueDecision(t, snapshot, s, d)
		for range 3 {
			if !d.Record {
				break
			}
			recorded++
			s.Clique = s.Clique.DeepCopy()
			s.Clique.Status = d.Status
			d = DecideClique(s, now)
			checkCliqueDecision(t, snapshot, s, d)
		}
		if d.Record {
			t.Fatalf("%s\nrecords for ever", snapshot())
		}
		if len(d.Create)+len(d.Delete) > 0 {
			acted++
		}
		if len(d.ForceDelete) > 0 {
			forced++
		}
		fails := func(index int32) bool { return brokenIndex(&d.Status, index) != nil }
		if isTraining(s.Clique) && s.Parent == ParentActive && (slices.ContainsFunc(d.Create, fails) || slices.ContainsFunc(d.Delete, func(p Pod) bool {
			return p.Attempt == s.Clique.Spec.Attempt && p.Index < s.Clique.Spec.Replicas && fails(p.Index)
		})) {
			replaced++
		}
		checkNextLook(t, snapshot, s, d)
		s.Clique = s.Clique.DeepCopy()
		s.Clique.Status = d.Status
		again := DecideClique(s, now)
		if again.Changed || again.Urgent || again.Record || len(again.Events) > 0 {
			t.Fatalf("%s\nthe same again changes the status:\n%s", snapshot(), cmp.Diff(d.Status, again.Status))
		}
		if diff := cmp.Diff(actionsOf(d), actionsOf(again)); diff != "" {
			t.Fatalf("%s\nthe same again does something else:\n%s", snapshot(), diff)
		}
		r.Shuffle(len(s.Pods), func(i, j int) { s.Pods[i], s.Pods[j] = s.Pods[j], s.Pods[i] })
		shuffled := DecideClique(s, now)
		if diff := cmp.Diff(again.Status, shuffled.Status); diff != "" {
			t.Fatalf("%s\nthe status depends on the order of the pods:\n%s", snapshot(), diff)
		}
		if diff := cmp.Diff(actionsOf(again), actionsOf(shuffled)); diff != "" {
			t.Fatalf("%s\nthe actions depend on the order of the pods:\n%s", snapshot(), diff)
		}
	}
	// The cases would prove nothing if they did not get around.
	if recorded < cliqueCases/4 || acted < cliqueCases/4 || replaced < cliqueCases/100 || forced < cliqueCases/50 {
		t.Errorf("of %d cases %d recorded, %d acted, %d replaced a training pod and %d forced a deletion: the generator is too tame", cliqueCases, recorded, acted, replaced, forced)
	}
}

// checkNextLook holds that a look before the next one would find nothing to do, and that
// the next one does.
func checkNextLook(t *testing.T, snapshot func() string, s CliqueSnapshot, d CliqueDecision) {
	t.Helper()
	if d.Record || d.Next.IsZero() {
		return
	}
	settled := s
	settled.Clique = s.Clique.DeepCopy()
	settled.Clique.Status = d.Status
	// What was to be done may have become wrong when the attempt ended.
	more := func(after CliqueDecision) bool {
		return slices.ContainsFunc(after.Create, func(index int32) bool { return !slices.Contains(d.Create, index) }) ||
			slices.ContainsFunc(after.Delete, func(pod Pod) bool {
				return !slices.ContainsFunc(d.Delete, func(p Pod) bool { return p.UID == pod.UID })
			}) ||
			len(after.ForceDelete) > len(d.ForceDelete) || after.Changed
	}
	if early := DecideClique(settled, d.Next.Add(-time.Nanosecond)); more(early) {
		t.Fatalf("%s\nsomething is to be done before the next look, at %s:\n%+v", snapshot(), d.Next, early)
	}
	// When a grace period ends, the node is looked at, and a failed pod may go by itself
	// before its back-off ends.
	overdue := slices.ContainsFunc(s.Pods, func(p Pod) bool { return p.DeletionDue.Equal(d.Next) || p.Terminating() && p.Ended() })
	if due := DecideClique(settled, d.Next); !more(due) && !overdue {
		t.Fatalf("%s\nnothing is to be done at the next look, at %s:\n%+v", snapshot(), d.Next, due)
	}
}

// checkCliqueDecision holds what is true of every decision about a clique.
func checkCliqueDecision(t *testing.T, snapshot func() string, s CliqueSnapshot, d CliqueDecision) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s\n%s\ndecision: %+v", snapshot(), fmt.Sprintf(format, args...), d)
	}
	if d.Record && (len(d.Create)+len(d.Delete)+len(d.ForceDelete) > 0 || !d.Next.IsZero()) {
		fail("records and acts")
	}
	if d.Record && !d.Urgent || d.Urgent && !d.Changed {
		fail("what is recorded is urgent, and what is urgent is a change")
	}
	if err := cliqueRefusal(t, s.Clique, d.Status); err != nil {
		fail("the API server refuses the status: %v", err)
	}
	if len(d.Create) > 0 && (s.Parent != ParentActive || s.Clique.DeletionTimestamp != nil) {
		fail("makes pods below a parent that is %s", s.Parent)
	}
	finished, err := indexset.Parse(d.Status.CompletedIndexes)
	if err != nil {
		fail("completed indexes: %v", err)
	}
	exists := map[int32]int{}
	for _, pod := range s.Pods {
		if pod.Attempt < s.Clique.Spec.Attempt && len(d.Create) > 0 {
			fail("makes pods beside %s of an older attempt", pod.UID)
		}
		exists[pod.Index]++
	}
	for _, index := range d.Create {
		if index < 0 || index >= s.Clique.Spec.Replicas || exists[index] > 0 || finished.Has(index) {
			fail("makes a pod of index %d", index)
		}
	}
	deleted := map[types.UID]bool{}
	for _, pod := range d.Delete {
		if pod.Terminating() {
			fail("deletes %s again", pod.UID)
		}
		if deleted[pod.UID] {
			fail("deletes %s twice", pod.UID)
		}
		deleted[pod.UID] = true
	}
	if !d.Next.IsZero() && !d.Next.After(now) {
		fail("the next look is in the past")
	}
	for _, pod := range d.ForceDelete {
		if !pod.Terminating() || pod.DeletionDue.After(now) || s.DeadNodes[pod.Node] == "" {
			fail("forces the deletion of %s", pod.UID)
		}
	}
	if len(d.Events) > 0 && !d.Urgent {
		fail("events come with a write that may wait")
	}
	if len(d.Create) > 0 && !s.OthersDrained {
		fail("makes pods though others have old ones")
	}
	checkReplacement(fail, s, d, exists)
	checkUpdate(fail, s, d)
}

// checkUpdate holds that pods of an earlier template go only in their turn, and Ready ones only
// as far as others are Ready.
func checkUpdate(fail func(string, ...any), s CliqueSnapshot, d CliqueDecision) {
	if s.Parent != ParentActive || s.Clique.DeletionTimestamp != nil || isTraining(s.Clique) {
		return
	}
	current, gone := splitPods(s).current, int32(0)
	for _, pod := range d.Delete {
		kept := current.at(pod.Index)
		if kept == nil || kept.UID != pod.UID || pod.Ended() {
			continue
		}
		if pod.TemplateHash == "hash" || !s.Turn.Due || !s.Membership.Known || s.Clique.Status.UpdateProgress == nil {
			fail("deletes %s, which has its place", pod.UID)
		}
		if pod.Ready {
			gone++
		}
	}
	if left := readyIn(current) - gone; gone > 0 && left < s.Clique.Spec.Replicas-s.Turn.MaxUnavailable {
		fail("leaves %d Ready pods of %d, %d may be away", left, s.Clique.Spec.Replicas, s.Turn.MaxUnavailable)
	}
}

// checkReplacement holds what is true of pods that take the place of others in Training:
// a failed one goes, and the next one comes, after the back-off, and only while the
// attempt goes on.
func checkReplacement(fail func(string, ...any), s CliqueSnapshot, d CliqueDecision, exists map[int32]int) {
	if s.Parent != ParentActive || s.Clique.DeletionTimestamp != nil || s.Clique.Spec.WorkloadType != grovev1alpha1.WorkloadTypeTraining {
		return
	}
	var ends bool
	breach := meta.FindStatusCondition(d.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
	if breach.Status == metav1.ConditionTrue && s.TerminationDelay != nil {
		ends = *s.TerminationDelay == 0 || now.Sub(breach.LastTransitionTime.Time) >= *s.TerminationDelay+time.Second
	}
	broken := map[int32]grovev1alpha1.FailedIndex{}
	for _, failed := range d.Status.FailedIndexes {
		if failed.RecoveredTime != nil {
			continue
		}
		broken[failed.Index] = failed
		ends = ends || failed.Count >= 6 && failed.Index < s.Clique.Spec.Replicas && !completedOf(&d.Status).Has(failed.Index)
	}
	waited := func(failed grovev1alpha1.FailedIndex) bool {
		wait := 10 * time.Second << min(failed.Count-1, 10)
		return now.Sub(failed.LastTime.Time) >= min(wait, 5*time.Minute)
	}
	for _, pod := range d.Delete {
		if pod.Attempt != s.Clique.Spec.Attempt || pod.Index >= s.Clique.Spec.Replicas || exists[pod.Index] != 1 {
			continue
		}
		if failed, ok := broken[pod.Index]; !ok || failed.PodUID != pod.UID || !pod.Ended() || ends || !waited(failed) {
			fail("deletes %s, which has its place", pod.UID)
		}
	}
	for _, index := range d.Create {
		if failed, ok := broken[index]; ok && (ends || !waited(failed)) {
			fail("replaces the pod of index %d", index)
		}
	}
}
