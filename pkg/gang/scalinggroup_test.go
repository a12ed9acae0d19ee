package gang

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// inCopy makes a clique of one pod a member of a copy of a scaling group.
func inCopy(index string, options ...cliqueOption) grovev1alpha1.PodClique {
	clique := member(1, 1, 1, 0, 0)
	metav1.SetMetaDataLabel(&clique.ObjectMeta, labels.ScalingGroupReplicaIndex, index)
	for _, option := range options {
		option(clique)
	}
	return *clique
}

func allPlaced(c *grovev1alpha1.PodClique) {
	c.Status.ScheduledReplicas = 1
	condition(grovev1alpha1.ConditionTypePodCliqueScheduled, metav1.ConditionTrue, "R", 0)(c)
}

func allReady(c *grovev1alpha1.PodClique) {
	allPlaced(c)
	c.Status.ReadyReplicas, c.Status.WasAvailable = 1, true
}

// breachedFor is a member that was available and is not any more.
func breachedFor(lasted time.Duration) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		c.Status.WasAvailable = true
		condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionTrue, grovev1alpha1.ReasonInsufficientReadyPods, -lasted)(c)
	}
}

func allUpdated(c *grovev1alpha1.PodClique) { c.Status.UpdatedReplicas = 1 }

func TestDecideGroup(t *testing.T) {
	type outcome struct {
		Replicas, Scheduled, Available, Updated int32
		Breach                                  summary
		Message                                 string
	}
	sufficient := isFalse(grovev1alpha1.ReasonSufficientAvailableReplicas)
	never := isFalse(grovev1alpha1.ReasonNeverAvailable)
	breach := isTrue(grovev1alpha1.ReasonInsufficientAvailableReplicas)
	type cliques = []grovev1alpha1.PodClique
	tests := map[string]struct {
		replicas int32
		minimum  *int32
		cliques  cliques
		want     outcome
	}{
		"no member yet": {2, ptr.To[int32](2), nil, outcome{0, 0, 0, 0, never, "0 of 2 copies are available, at least 2 are needed"}},
		"a copy with a clique missing exists and is nothing else": {
			1, ptr.To[int32](1), cliques{inCopy("0", allReady, allUpdated)}, outcome{1, 0, 0, 0, never, "0 of 1 copies are available, at least 1 are needed"},
		},
		"a copy is scheduled when all its cliques are": {
			2, ptr.To[int32](2), cliques{inCopy("0", allPlaced), inCopy("0", allPlaced), inCopy("1", allPlaced), inCopy("1")},
			outcome{2, 1, 0, 0, never, "0 of 2 copies are available, at least 2 are needed"},
		},
		"a copy is available when all its cliques are": {
			2, ptr.To[int32](1), cliques{inCopy("0", allReady), inCopy("0", allReady), inCopy("1", allReady), inCopy("1", allPlaced)},
			outcome{2, 2, 1, 0, sufficient, "1 of 2 copies are available, at least 1 are needed"},
		},
		"the minimum is one unless set": {
			2, nil, cliques{inCopy("0", allReady), inCopy("0", allReady)}, outcome{1, 1, 1, 0, sufficient, "1 of 2 copies are available, at least 1 are needed"},
		},
		"a copy is updated when it is available and all its cliques follow the template": {
			3, ptr.To[int32](1), cliques{
				inCopy("0", allReady, allUpdated), inCopy("0", allReady, allUpdated),
				inCopy("1", allReady), inCopy("1", allReady, allUpdated),
				inCopy("2", allPlaced, allUpdated), inCopy("2", allPlaced, allUpdated),
			},
			outcome{3, 3, 2, 1, sufficient, "2 of 3 copies are available, at least 1 are needed"},
		},
		"once available, too few are a breach": {
			2, ptr.To[int32](2), cliques{inCopy("0", allReady), inCopy("0", allReady), inCopy("1", allPlaced, breachedFor(time.Minute)), inCopy("1", allPlaced)},
			outcome{2, 2, 1, 0, breach, "1 of 2 copies are available, at least 2 are needed: 1 breached, 0 recovering"},
		},
		"a copy that was available with some of its cliques alone is none": {
			2, ptr.To[int32](1), cliques{inCopy("0", wasAvailable), inCopy("0"), inCopy("1"), inCopy("1", wasAvailable)},
			outcome{2, 0, 0, 0, never, "0 of 2 copies are available, at least 1 are needed"},
		},
		"a copy whose cliques begin a new attempt is not available": {
			1, ptr.To[int32](1), cliques{inCopy("0", allReady, attempt(1)), inCopy("0", allReady)},
			outcome{1, 0, 0, 0, never, "0 of 1 copies are available, at least 1 are needed"},
		},
		"copies above the size do not count": {
			1, ptr.To[int32](1), cliques{inCopy("0", allPlaced), inCopy("0"), inCopy("1", allReady), inCopy("1", allReady)},
			outcome{1, 0, 0, 0, never, "0 of 1 copies are available, at least 1 are needed"},
		},
		"nor do cliques that are being deleted": {
			1, ptr.To[int32](1), cliques{inCopy("0", allReady, deleted), inCopy("0", allReady)},
			outcome{1, 0, 0, 0, never, "0 of 1 copies are available, at least 1 are needed"},
		},
		"nor does a clique whose label says nothing": {
			1, ptr.To[int32](1), cliques{inCopy("00", allReady), inCopy("", allReady)},
			outcome{0, 0, 0, 0, never, "0 of 1 copies are available, at least 1 are needed"},
		},
		"the minimum is never above the size": {
			1, ptr.To[int32](3), cliques{inCopy("0", allReady), inCopy("0", allReady)}, outcome{1, 1, 1, 0, sufficient, "1 of 1 copies are available, at least 1 are needed"},
		},
		"a group that is scaled to nothing is idle": {
			0, ptr.To[int32](2), nil, outcome{0, 0, 0, 0, sufficient, "0 of 0 copies are available, at least 0 are needed"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scalingGroup := &grovev1alpha1.PodCliqueScalingGroup{
				ObjectMeta: metav1.ObjectMeta{Name: "set-0-g", Generation: 4},
				Spec:       grovev1alpha1.PodCliqueScalingGroupSpec{Replicas: tc.replicas, MinAvailable: tc.minimum, CliqueNames: []string{"a", "b"}},
				Status: grovev1alpha1.PodCliqueScalingGroupStatus{
					Replicas: 9, ScheduledReplicas: 9, AvailableReplicas: 9, UpdatedReplicas: 9,
					ReplicaAttempts: []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 9, Attempt: 2}},
				},
			}
			before := scalingGroup.DeepCopy()
			snapshot := GroupSnapshot{Group: scalingGroup, Cliques: tc.cliques, Turn: GroupTurn{TemplateHashes: map[string]string{}}}
			for i := range tc.cliques {
				fromWhatIsUpdated(&tc.cliques[i])
				snapshot.Turn.TemplateHashes[tc.cliques[i].Name] = "hash"
			}
			decision := DecideGroup(snapshot, now)
			status, changed := decision.Status, decision.Changed
			expect(t, "the group that was read", before, scalingGroup)
			c := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
			if c == nil {
				t.Fatal("no condition")
			}
			expect(t, "outcome", tc.want, outcome{
				status.Replicas, status.ScheduledReplicas, status.AvailableReplicas, status.UpdatedReplicas, summary{c.Status, c.Reason}, c.Message,
			})
			expect(t, "observed generation", ptr.To[int64](4), status.ObservedGeneration)
			expect(t, "selector", ptr.To("grove.io/podcliquescalinggroup=set-0-g,grove.io/podcliquescalinggroup-first-pod=true"), status.Selector)
			expect(t, "attempts", before.Status.ReplicaAttempts, status.ReplicaAttempts)
			expect(t, "changed", true, changed)

			scalingGroup.Status = status
			expect(t, "changed again", false, DecideGroup(snapshot, now.Add(time.Hour)).Changed)
		})
	}
}
