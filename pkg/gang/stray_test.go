package gang

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// strayPods are copies of pods in all that may become of one.
func strayPods() map[string]podOption {
	return map[string]podOption{"pending": func(*Pod) {}, "running": running, "ready": ready, "succeeded": succeeded, "failed": failed, "terminating": leaving}
}

// leaving is a pod in its grace period.
func leaving(p *Pod) {
	terminating(p)
	p.DeletionDue = now.Add(time.Minute)
}

// A copy of a pod changes nothing of what is known of the clique, whatever becomes of it, and
// it goes. The pod that it is a copy of stays.
func TestAStrayCountsAsNothingAndGoes(t *testing.T) {
	all := map[string]CliqueSnapshot{
		"training":  snapshotOf(training(2, wasAvailable), podsOfAll(2, ready)),
		"inference": snapshotOf(inference(2, wasAvailable), podsOfAll(2, ready)),
		// Of a lost pod a copy is no trace, and no pod is made in its place because of it.
		"training, with an index less":  snapshotOf(training(2, wasAvailable), pods(podOf(1, ready))),
		"inference, with an index less": snapshotOf(inference(2, wasAvailable), pods(podOf(1, ready))),
		"pods that are made":            snapshotOf(inference(2, notCreated), nil),
		"an update":                     underUpdate(),
	}
	for what, s := range all {
		want := DecideClique(s, now)
		for name, phase := range strayPods() {
			t.Run(what+", "+name, func(t *testing.T) {
				with := s
				with.Clique = s.Clique.DeepCopy()
				// Before and after: which one is read first decides nothing.
				first, second := podOf(0, phase, stray), podOf(0, phase, stray, withUID("a copy"), fromTemplate("another"))
				with.Pods = append(append(pods(first), s.Pods...), second)
				got := DecideClique(with, now)
				expect(t, "status", want.Status, got.Status)
				expect(t, "events", want.Events, got.Events)
				expected, did := actionsOf(want), actionsOf(got)
				if !want.Record && !first.Terminating() {
					expected.Delete = append([]types.UID{"a copy", "copy"}, expected.Delete...)
				}
				did.Next, expected.Next = 0, 0
				expect(t, "actions", expected, did)
			})
		}
	}
}

// underUpdate is a clique whose pods follow a template that it had before.
func underUpdate() CliqueSnapshot {
	s := snapshotOf(inference(2, wasAvailable), podsOfAll(2, ready))
	s.Turn.Due = true
	return s
}

func TestAStrayIsNoPodThatIsMissed(t *testing.T) {
	expect(t, "missing", []int32{0}, MissingIndexes(training(2), pods(podOf(0, ready, stray), podOf(1, ready))))
}

func TestAStrayHasFinishedNothing(t *testing.T) {
	clique := training(2, completed("1"))
	expect(t, "finished at", time.Time{}, cliqueFinishedAt(clique, pods(podOf(0, succeeded, stray)), now))
}

// Between two attempts nobody knows of which of them a stray is: the next one waits for its end.
func TestARestartWaitsForStrays(t *testing.T) {
	beginning := snapshotOf(training(2, inAttempt(1), func(c *grovev1alpha1.PodClique) { c.Status.CreatedAttempt = nil }), pods(podOf(0, running, stray)))
	decision := DecideClique(beginning, now)
	expect(t, "actions", actions{Delete: []types.UID{"copy"}}, actionsOf(decision))
	expect(t, "old pods", int32(1), decision.Status.OldReplicas)
	beginning.Pods = nil
	expect(t, "without it", actions{Create: []int32{0, 1}}, actionsOf(DecideClique(beginning, now)))
}

// What has ended stays to be read below a parent that is over (D12); what runs does not.
func TestStraysBelowAParentThatIsOver(t *testing.T) {
	for name, phase := range strayPods() {
		for _, parent := range []Parent{ParentFailing, ParentFinished} {
			t.Run(name+", "+string(parent), func(t *testing.T) {
				s := snapshotOf(training(1), pods(podOf(0, succeeded), podOf(0, phase, stray)))
				s.Parent = parent
				s.Clique.Status = DecideClique(s, now).Status
				var want []types.UID
				if name == "pending" || name == "running" || name == "ready" {
					want = []types.UID{"copy"}
				}
				expect(t, "deleted", want, actionsOf(DecideClique(s, now)).Delete)
			})
		}
	}
}

// A clique that is deleted takes all its pods along, those of an attempt that is lost as well.
func TestADeletedCliqueKnowsNoLaterAttempt(t *testing.T) {
	s := snapshotOf(training(2, deleted), pods(podOf(0, running, ofAttempt(3)), podOf(1, running, stray)))
	expect(t, "actions", actions{Delete: []types.UID{"copy", "uid-0"}}, actionsOf(DecideClique(s, now)))
}
