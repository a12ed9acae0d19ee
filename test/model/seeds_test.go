package model

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
)

// Wrong decisions, each of which the model has to find. They show that a search that
// finds nothing means something.

func activePods(s gang.CliqueSnapshot) []gang.Pod {
	var out []gang.Pod
	for _, p := range s.Pods {
		if !p.Ended() && !p.Terminating() {
			out = append(out, p)
		}
	}
	return out
}

// actWithoutRecording deletes the others of a failed pod at once.
func actWithoutRecording(s gang.CliqueSnapshot, now time.Time) gang.CliqueDecision {
	d := gang.DecideClique(s, now)
	if len(d.Status.FailedIndexes) > len(s.Clique.Status.FailedIndexes) {
		d.Record, d.Delete = false, activePods(s)
	}
	return d
}

// countLateExits takes an exit with 0 for success though the pod was told to stop.
func countLateExits(s gang.CliqueSnapshot, now time.Time) gang.CliqueDecision {
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		if s.Pods[i].Phase == corev1.PodSucceeded {
			s.Pods[i].DeletionRequested = nil
		}
	}
	return gang.DecideClique(s, now)
}

// deleteOnAbsence gives a clique up when a pod of it is not in the cache.
func deleteOnAbsence(s gang.CliqueSnapshot, now time.Time) gang.CliqueDecision {
	d := gang.DecideClique(s, now)
	if !d.Record && len(gang.MissingIndexes(s.Clique, s.Pods)) > 0 {
		d.Delete = activePods(s)
	}
	return d
}

func neverMissing(*grovev1alpha1.PodClique, []gang.Pod) []int32 { return nil }

// failWithoutLooking sets Failed before the pods are gone.
func failWithoutLooking(s gang.SetSnapshot, now time.Time) gang.SetDecision {
	s.NoActivePods = gang.ParentOf(s.Set) == gang.ParentFailing
	return gang.DecideSet(s, now)
}

// countOldFailures takes failed pods of an earlier attempt for those of this one.
func countOldFailures(s gang.CliqueSnapshot, now time.Time) gang.CliqueDecision {
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		if s.Pods[i].Phase == corev1.PodFailed {
			s.Pods[i].Attempt = s.Clique.Spec.Attempt
		}
	}
	return gang.DecideClique(s, now)
}

// ignoreParent goes on below a set that fails or is deleted, though it says otherwise.
func ignoreParent(s gang.CliqueSnapshot, now time.Time) gang.CliqueDecision {
	told := gang.DecideClique(s, now)
	s.Parent = gang.ParentActive
	done := gang.DecideClique(s, now)
	told.Create = done.Create
	return told
}

// needAll takes every pod for needed.
func needAll(s gang.CliqueSnapshot, now time.Time) gang.CliqueDecision {
	s.Clique = s.Clique.DeepCopy()
	s.Clique.Spec.MinAvailable = nil
	return gang.DecideClique(s, now)
}

// restartByOldBreach takes the status of a clique for one of the present attempt.
func restartByOldBreach(s gang.SetSnapshot, now time.Time) gang.SetDecision {
	cliques := map[string]*grovev1alpha1.PodClique{}
	for name, clique := range s.Cliques {
		clique = clique.DeepCopy()
		clique.Spec.Attempt = gang.ReplicaAttempt(s.Set, 0)
		clique.Status.ObservedAttempt = clique.Spec.Attempt
		cliques[name] = clique
	}
	s.Cliques = cliques
	return gang.DecideSet(s, now)
}

// ignoreBudget fails the set at the first failure.
func ignoreBudget(s gang.SetSnapshot, now time.Time) gang.SetDecision {
	s.Set = s.Set.DeepCopy()
	s.Set.Spec.TrainingSpec.MaxRestarts = nil
	return gang.DecideSet(s, now)
}

// forgetAlarm does not ask to be woken.
func forgetAlarm(s gang.SetSnapshot, now time.Time) gang.SetDecision {
	d := gang.DecideSet(s, now)
	d.Next = time.Time{}
	return d
}

func alwaysDrained(*grovev1alpha1.PodClique, []grovev1alpha1.PodClique, map[string]*grovev1alpha1.PodCliqueScalingGroup, int32) bool {
	return true
}

// atGate opens a gate by other PodCliques than there are.
func atGate(change func(*grovev1alpha1.PodClique, int32)) func(gang.GateSnapshot, time.Time) gang.GateDecision {
	return func(s gang.GateSnapshot, now time.Time) gang.GateDecision {
		cliques := map[string]*grovev1alpha1.PodClique{}
		for name, clique := range s.Cliques {
			cliques[name] = clique.DeepCopy()
			change(cliques[name], gang.ReplicaAttempt(s.Set, 0))
		}
		s.Cliques = cliques
		return gang.DecideGate(s, now)
	}
}

// takeOldPods takes pods of an earlier attempt for those of this one.
func takeOldPods(clique *grovev1alpha1.PodClique, attempt int32) {
	clique.Spec.Attempt, clique.Status.ObservedAttempt = attempt, attempt
}

// wantFewer is content with the pods that have come.
func wantFewer(clique *grovev1alpha1.PodClique, _ int32) {
	clique.Spec.Replicas = max(clique.Status.StartedReplicas, 1)
}

// trustTheCache takes what the cache shows for the attempt that the gate is in.
func trustTheCache(s gang.GateSnapshot, now time.Time) gang.GateDecision {
	attempt := gang.ReplicaAttempt(s.Set, 0)
	for _, entry := range s.Gate.Status.Cliques {
		attempt = max(attempt, entry.Attempt)
	}
	s.Set = s.Set.DeepCopy()
	for i := range s.Set.Status.ReplicaStatuses {
		s.Set.Status.ReplicaStatuses[i].Attempt = attempt
	}
	if len(s.Set.Status.ReplicaStatuses) == 0 {
		s.Set.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Attempt: attempt}}
	}
	behind := map[string]*grovev1alpha1.PodClique{}
	for name, clique := range s.Cliques {
		if behind[name] = clique; clique.Status.ObservedAttempt == clique.Spec.Attempt {
			behind[name] = clique.DeepCopy()
			takeOldPods(behind[name], attempt)
		}
	}
	s.Cliques = behind
	return gang.DecideGate(s, now)
}

// forgetGate decides by what is seen alone.
func forgetGate(s gang.GateSnapshot, now time.Time) gang.GateDecision {
	s.Gate = &grovev1alpha1.StartGate{}
	return gang.DecideGate(s, now)
}

func TestTheModelFindsWrongDecisions(t *testing.T) {
	world := Config{Name: "seed", Sizes: []int32{2, 1}, MaxRestarts: 1, Failures: 2, Deletions: 1, Exits: 1}
	two := func(c *Config) { c.Sizes, c.Exits, c.Deletions, c.MaxRestarts = []int32{1, 1}, 0, 0, 2 }
	barrier := func(c *Config) { two(c); c.Barrier, c.MaxRestarts, c.Failures = true, 1, 1 }
	tests := map[string]struct {
		decide func(*Decisions)
		tweak  func(*Config)
		want   string
	}{
		"makes pods below a set that fails": {
			decide: func(d *Decisions) { d.Clique = ignoreParent },
			tweak:  func(c *Config) { c.MaxRestarts = 0 },
			want:   "are made though the set is Failing",
		},
		"makes pods below a set that is deleted": {
			decide: func(d *Decisions) { d.Clique = ignoreParent },
			tweak:  func(c *Config) { c.Deleted, c.Deletions = true, 0 },
			want:   "are made though the set is Deleting",
		},
		"acts without recording": {
			decide: func(d *Decisions) { d.Clique = actWithoutRecording },
			want:   "is deleted without a recorded decision",
		},
		"deletes on absence from the cache": {
			decide: func(d *Decisions) { d.Clique, d.Missing = deleteOnAbsence, neverMissing },
			tweak:  func(c *Config) { c.Deletions = 0; c.Freezes = 1; c.SecondPasses = 3 },
			want:   "is deleted without a recorded decision",
		},
		"calls lost what the cache does not show": {
			tweak: func(c *Config) { c.TrustCache, c.Freezes, c.SecondPasses = true, 1, 3 },
			want:  "though no clique was breached in attempt 0",
		},
		"counts failures of an earlier attempt": {
			decide: func(d *Decisions) { d.Clique = countOldFailures },
			tweak:  two,
			want:   "begins though no clique was breached in attempt 1",
		},
		"restarts again for an old breach": {
			decide: func(d *Decisions) { d.Set = restartByOldBreach },
			tweak:  two,
			want:   "begins though no clique was breached in attempt 1",
		},
		"does not wait for the old pods of other cliques": {
			decide: func(d *Decisions) { d.Drained = alwaysDrained },
			tweak:  two,
			want:   "pods of attempts 0 and 1 are active at once",
		},
		// The live look keeps the restart away; what is left is a set that hangs.
		"takes a failure that minAvailable tolerates for a breach": {
			decide: func(d *Decisions) { d.Clique = needAll },
			tweak: func(c *Config) {
				c.Sizes, c.MinAvailable = []int32{2}, []int32{1}
			},
			want: "the set has not ended",
		},
		"fails with restarts left": {
			decide: func(d *Decisions) { d.Set = ignoreBudget },
			want:   "though 1 restarts are allowed",
		},
		"does not ask to be woken": {
			decide: func(d *Decisions) { d.Set = forgetAlarm },
			tweak: func(c *Config) {
				two(c)
				c.TerminationDelay, c.Ticks = 1, 1
			},
			want: "nobody looks at set",
		},
		"takes an exit on demand for success": {
			decide: func(d *Decisions) { d.Clique = countLateExits },
			want:   "counts as completed and did not succeed",
		},
		"opens a gate by pods of an earlier attempt": {
			decide: func(d *Decisions) { d.Gate = atGate(takeOldPods) },
			tweak:  barrier,
			want:   "is open in attempt 1 though not all pods have come",
		},
		"opens a gate while a pod is missing": {
			decide: func(d *Decisions) { d.Gate = atGate(wantFewer) },
			tweak:  func(c *Config) { barrier(c); c.Sizes = []int32{2} },
			want:   "is open in attempt 0 though not all pods have come",
		},
		"opens a gate by a cache that is behind": {
			decide: func(d *Decisions) { d.Gate = trustTheCache },
			tweak:  func(c *Config) { barrier(c); c.Freezes = 1 },
			want:   "is open in attempt 1 though not all pods have come",
		},
		"shuts a gate again": {
			decide: func(d *Decisions) { d.Gate = forgetGate },
			tweak:  barrier,
			want:   "is shut in attempt 0",
		},
		"is Failed before its pods are gone": {
			decide: func(d *Decisions) { d.Set = failWithoutLooking },
			tweak:  func(c *Config) { c.MaxRestarts = 0 },
			want:   "the set is Failed while",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config, decide := world, Real()
			if tc.tweak != nil {
				tc.tweak(&config)
			}
			if tc.decide != nil {
				tc.decide(&decide)
			}
			result := explore(t, config, decide, Limits{States: 1_000_000, SampleEvery: 20})
			if result.Violation == nil || !strings.Contains(result.Violation.Text, tc.want) {
				t.Errorf("want %q, got %v", tc.want, result.Violation)
			}
		})
	}
}
