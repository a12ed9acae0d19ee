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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/copse-dev/copse/pkg/apis/grove"
	"github.com/copse-dev/copse/pkg/apis/grove/indexset"
	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/apis/grove/validation"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

const (
	cliqueCases = 5000
	setCases    = 3000
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
			failedBefore(index, int32(r.IntN(8)+1), -time.Duration(r.IntN(900))*time.Second)(clique)
		}
	}
	status.CompletedIndexes = indexset.Of(finished...).String()
	for _, conditionType := range []string{
		grovev1alpha1.ConditionTypeMinAvailableBreached, grovev1alpha1.ConditionTypePodCliqueScheduled,
		grovev1alpha1.ConditionTypeNameConflict, grovev1alpha1.ConditionTypePodCreationFailed,
	} {
		if chance(r, 40) {
			condition(conditionType, oneOf(r, metav1.ConditionTrue, metav1.ConditionFalse), "Before", -time.Hour)(clique)
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
		}
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
		Clique: clique, TemplateHash: "hash", Pods: randomPods(r, clique),
		Parent:        oneOf(r, ParentActive, ParentActive, ParentActive, ParentFailing, ParentFinished, ParentDeleting),
		Membership:    Membership{Known: chance(r, 80), Scheduled: chance(r, 50), BaseScheduled: chance(r, 80)},
		OthersDrained: chance(r, 80),
	}
	if chance(r, 70) {
		s.TerminationDelay = new(oneOf(r, 0, time.Minute, time.Hour))
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
	recorded, acted := 0, 0
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
		s.Clique = s.Clique.DeepCopy()
		s.Clique.Status = d.Status
		again := DecideClique(s, now)
		if again.Changed || again.Urgent || again.Record {
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
	if recorded < cliqueCases/4 || acted < cliqueCases/4 {
		t.Errorf("of %d cases %d recorded and %d acted: the generator is too tame", cliqueCases, recorded, acted)
	}
}

// checkCliqueDecision holds what is true of every decision about a clique.
func checkCliqueDecision(t *testing.T, snapshot func() string, s CliqueSnapshot, d CliqueDecision) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s\n%s\ndecision: %+v", snapshot(), fmt.Sprintf(format, args...), d)
	}
	if d.Record && (len(d.Create)+len(d.Delete) > 0 || !d.Next.IsZero()) {
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
	if s.Parent == ParentActive && s.Clique.DeletionTimestamp == nil && s.Clique.Spec.WorkloadType == grovev1alpha1.WorkloadTypeTraining {
		// A training pod goes only when there is another one of its index, or no place for it.
		for _, pod := range d.Delete {
			if pod.Attempt == s.Clique.Spec.Attempt && pod.Index < s.Clique.Spec.Replicas && exists[pod.Index] == 1 {
				fail("deletes %s, which has its place", pod.UID)
			}
		}
	}
}

// randomSet is a set in a state that the API server accepts, with what exists of it.
func randomSet(r *rand.Rand) SetSnapshot {
	training := chance(r, 60)
	pcs := &grovev1alpha1.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set", ResourceVersion: "1", Generation: 2},
		Spec:       grovev1alpha1.PodCliqueSetSpec{WorkloadType: grovev1alpha1.WorkloadTypeInference, Replicas: int32(r.IntN(3) + 1)},
	}
	if training {
		pcs.Spec.WorkloadType = grovev1alpha1.WorkloadTypeTraining
	}
	for _, name := range []string{"a", "b", "c"}[:r.IntN(3)+1] {
		replicas := int32(r.IntN(3) + 1)
		pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, grovev1alpha1.PodCliqueTemplateSpec{
			Name: name, Spec: grovev1alpha1.PodCliqueSpec{Replicas: replicas, MinAvailable: ptr.To(int32(r.IntN(int(replicas)) + 1))},
		})
	}
	if chance(r, 40) {
		pcs.Spec.Template.PodCliqueScalingGroups = []grovev1alpha1.PodCliqueScalingGroupConfig{{
			Name: "g", CliqueNames: []string{"a"}, Replicas: ptr.To(int32(r.IntN(2) + 1)), MinAvailable: ptr.To[int32](1),
		}}
	}
	s := SetSnapshot{
		Set: pcs, Cliques: map[string]*grovev1alpha1.PodClique{}, Groups: map[string]*grovev1alpha1.PodCliqueScalingGroup{},
		Gangs: map[string]*schedulerv1alpha1.PodGang{}, NoActivePods: chance(r, 30),
	}
	for index := range pcs.Spec.Replicas + 1 {
		if !training && chance(r, 20) {
			pcs.Status.ReplicaStatuses = append(pcs.Status.ReplicaStatuses, grovev1alpha1.PodCliqueSetReplicaStatus{Index: index, Attempt: int32(r.IntN(3))})
		}
	}
	// Some cases are about a single kind of clique, else success would be rare.
	kind := r.IntN(8)
	for replica := range pcs.Spec.Replicas {
		for _, expected := range ExpectedCliques(pcs, replica, TemplateSizes) {
			if chance(r, 5) {
				continue
			}
			s.Cliques[expected.Name] = randomCliqueOfSet(r, pcs, expected, kind)
		}
		if chance(r, 50) {
			gang := &schedulerv1alpha1.PodGang{ObjectMeta: metav1.ObjectMeta{
				Name: naming.Replica("set", replica), Labels: map[string]string{labels.RestartAttempt: "0"},
			}}
			meta.SetStatusCondition(&gang.Status.Conditions, metav1.Condition{
				Type: schedulerv1alpha1.PodGangConditionScheduled, Status: oneOf(r, metav1.ConditionTrue, metav1.ConditionFalse), Reason: "R",
			})
			s.Gangs[gang.Name] = gang
		}
	}
	return s
}

func randomCliqueOfSet(r *rand.Rand, pcs *grovev1alpha1.PodCliqueSet, expected ExpectedClique, kind int) *grovev1alpha1.PodClique {
	spec := *expected.Template.Spec.DeepCopy()
	spec.WorkloadType = pcs.Spec.WorkloadType
	spec.Attempt = max(0, ReplicaAttempt(pcs, expected.Replica)-oneOf[int32](r, 0, 0, 0, 1))
	clique := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: expected.Name}, Spec: spec}
	clique.Status.ObservedAttempt = max(0, spec.Attempt-oneOf[int32](r, 0, 0, 0, 1))
	status := &clique.Status
	switch k := kind; {
	case k < 2 || k > 4 && chance(r, 30): // finished
		status.CompletedIndexes = indexset.Of(indexesBelow(spec.Replicas)...).String()
		condition(grovev1alpha1.ConditionTypeSucceeded, metav1.ConditionTrue, "R", 0)(clique)
	case k < 4 || k > 4 && chance(r, 50): // running
		status.Replicas, status.RunningReplicas, status.ScheduledReplicas = spec.Replicas, spec.Replicas, spec.Replicas
		status.ReadyReplicas, status.UpdatedReplicas = int32(r.IntN(int(spec.Replicas)+1)), int32(r.IntN(int(spec.Replicas)+1))
	case k > 4 && chance(r, 50): // failed
		failedBefore(0, 1, -time.Minute)(clique)
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

// Whatever a set consists of, every status that is decided is accepted by the API
// server, terminal phases stay, and events come once.
func TestAnySetComesToRest(t *testing.T) {
	reached := map[grovev1alpha1.PodCliqueSetPhase]int{}
	for seed := range uint64(setCases) {
		s := randomSet(random(seed))
		snapshot := func() string {
			return fmt.Sprintf("case %d: set %+v\ncliques %v", seed, s.Set, slices.Sorted(maps.Keys(s.Cliques)))
		}
		told := map[string]int{}
		for pass := range 4 {
			d := DecideSet(s, now)
			if err := setRefusal(t, s.Set, d.Status); err != nil {
				t.Fatalf("%s\nthe API server refuses the status: %v", snapshot(), err)
			}
			for _, e := range d.Events {
				told[e.Reason]++
				if told[e.Reason] > 1 {
					t.Fatalf("%s\n%s is told twice", snapshot(), e.Reason)
				}
			}
			if len(d.Events) > 0 && !d.Urgent {
				t.Fatalf("%s\nevents %v come with a write that may wait", snapshot(), d.Events)
			}
			if pass == 3 && d.Changed {
				t.Fatalf("%s\ndoes not come to rest:\n%s", snapshot(), cmp.Diff(s.Set.Status, d.Status))
			}
			s.Set = s.Set.DeepCopy()
			s.Set.Status = d.Status
		}
		reached[s.Set.Status.Phase]++
		if ParentOf(s.Set) != ParentFailing && s.Set.Status.Phase != grovev1alpha1.PodCliqueSetSucceeded {
			continue
		}
		// From here on nothing that happens to the pods changes how it ends.
		phase := s.Set.Status.Phase
		for name := range s.Cliques {
			s.Cliques[name] = inference(1)
			s.Cliques[name].Status.RunningReplicas = 1
		}
		s.NoActivePods = false
		d := DecideSet(s, now.Add(time.Hour))
		if d.Status.Phase != phase || len(d.Events) > 0 {
			t.Fatalf("%s\nleaves %q for %q, events %v", snapshot(), phase, d.Status.Phase, d.Events)
		}
		if err := setRefusal(t, s.Set, d.Status); err != nil {
			t.Fatalf("%s\nthe API server refuses the status: %v", snapshot(), err)
		}
	}
	for _, phase := range []grovev1alpha1.PodCliqueSetPhase{
		grovev1alpha1.PodCliqueSetPending, grovev1alpha1.PodCliqueSetRunning, grovev1alpha1.PodCliqueSetSucceeded, grovev1alpha1.PodCliqueSetFailed,
	} {
		if reached[phase] < setCases/50 {
			t.Errorf("of %d cases %d ended as %s: the generator is too tame", setCases, reached[phase], phase)
		}
	}
}
