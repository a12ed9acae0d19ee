package gang

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// The condition Restarting tells of restarts until what was restarted is available again.
func TestRestartingCondition(t *testing.T) {
	type said struct {
		Status          metav1.ConditionStatus
		Reason, Message string
		Since           time.Duration
	}
	was := func(status metav1.ConditionStatus) setOption {
		return func(pcs *grovev1alpha1.PodCliqueSet) {
			meta.SetStatusCondition(&pcs.Status.Conditions, metav1.Condition{
				Type: grovev1alpha1.ConditionTypeRestarting, Status: status, Reason: "Before", Message: "before", LastTransitionTime: at(-time.Hour),
			})
		}
	}
	trueSince := func(message string, since time.Duration) said {
		return said{metav1.ConditionTrue, grovev1alpha1.ReasonReplicaRestarting, message, since}
	}
	// Nothing changes a condition of which there is no news.
	unchanged := said{metav1.ConditionTrue, "Before", "before", -time.Hour}
	over := said{metav1.ConditionFalse, grovev1alpha1.ReasonReplicaRestarted, "before", 0}
	ended := said{metav1.ConditionFalse, grovev1alpha1.ReasonWorkloadEnded, "before", 0}
	two := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		return pair(append([]setOption{replicas(2), budget(5, 1)}, options...)...)
	}
	up := []cliqueOption{readyPods(2)}
	upAgain := []cliqueOption{readyPods(2), inAttempt(1)}
	// recycling is a set of which copy 1 of a scaling group was recycled.
	allUp := func() have { return allOf(service(), readyPods(2)) }
	copyBack := func(options ...cliqueOption) have {
		return allUp().but("set-0-g-1-leader", append(options, inAttempt(1), wasAvailable)...).but("set-0-g-1-worker", append(options, inAttempt(1), wasAvailable)...)
	}
	tests := map[string]struct {
		snapshot SetSnapshot
		want     said
	}{
		"nothing was ever restarted":                 {setOf(pair(), allOf(pair())), said{}},
		"nothing was, though a replica is not there": {setOf(pair(replicas(2)), allOf(pair(), up...)), said{}},
		"a restart":    {setOf(two(), have{"set-0-worker": {breached(0, "why")}}), trueSince("replica 0, restart 2 of 5: set-0-worker: why", 0)},
		"two restarts": {setOf(two(), have{"set-0-worker": {breached(0, "a")}, "set-1-worker": {breached(0, "b")}}), trueSince("replica 0, restart 2 of 5: set-0-worker: a; replica 1, restart 3 of 5: set-1-worker: b", 0)},
		"a restart during a restart has the last say": {setOf(two(was(metav1.ConditionTrue), replicaAttempt(0, 1)), have{"set-1-worker": {breached(0, "b")}}), trueSince("replica 1, restart 2 of 5: set-1-worker: b", -time.Hour)},
		"a restart after one":                         {setOf(two(was(metav1.ConditionFalse), replicaAttempt(0, 1)), have{"set-1-worker": {breached(0, "b")}}), trueSince("replica 1, restart 2 of 5: set-1-worker: b", 0)},
		"gang termination in Inference": {
			setOf(service(delayed(time.Minute)), have{"set-0-router": {breached(2*time.Minute, "why")}}), trueSince("replica 0, set-0-router: why, for 2m0s", 0),
		},
		"the replica is not available yet": {
			setOf(two(was(metav1.ConditionTrue), replicaAttempt(0, 1)), allOf(two(), up...).but("set-0-launcher", upAgain...).but("set-0-worker", inAttempt(1))), unchanged,
		},
		"as long as pods of before are all that is": {setOf(two(was(metav1.ConditionTrue), replicaAttempt(0, 1)), allOf(two(), up...)), unchanged},
		"it is available again": {
			setOf(two(was(metav1.ConditionTrue), replicaAttempt(0, 1)), allOf(two(), up...).but("set-0-launcher", upAgain...).but("set-0-worker", upAgain...)), over,
		},
		"or has succeeded": {
			setOf(two(was(metav1.ConditionTrue), replicaAttempt(0, 1)),
				allOf(two(), up...).but("set-0-launcher", inAttempt(1), hasSucceeded).but("set-0-worker", inAttempt(1), hasSucceeded)), over,
		},
		"one that was not restarted is not waited for": {
			setOf(two(was(metav1.ConditionTrue), replicaAttempt(0, 1)), have{"set-0-launcher": upAgain, "set-0-worker": upAgain}), over,
		},
		"one that was scaled away, neither": {
			setOf(pair(was(metav1.ConditionTrue), replicaAttempt(1, 1), budget(5, 1)), allOf(pair(), up...)), over,
		},
		"later trouble of a replica that was restarted is none": {
			setOf(two(was(metav1.ConditionFalse), replicaAttempt(0, 1)), allOf(two(), up...).but("set-0-worker", inAttempt(1))), said{metav1.ConditionFalse, "Before", "before", -time.Hour},
		},

		"a copy that is recycled": {
			setOf(service(), allUp()).withGroup("set-0-g", 2, copyRecycled(1, 1, 0)), trueSince("copy 1 of scaling group set-0-g is made anew: why", 0),
		},
		"a copy that is recycled during a restart": {
			setOf(service(was(metav1.ConditionTrue)), allUp()).withGroup("set-0-g", 2, copyRecycled(1, 1, 0)), unchanged,
		},
		"a copy that is back": {
			setOf(service(was(metav1.ConditionTrue)), copyBack(readyPods(2))).withGroup("set-0-g", 2, copyRecycled(1, 1, 0)), over,
		},
		"a copy that was back has other trouble": {
			setOf(service(was(metav1.ConditionTrue)), copyBack()).withGroup("set-0-g", 2, copyRecycled(1, 1, 0)), over,
		},
		"a copy that was recycled in an attempt before": {
			setOf(service(replicaAttempt(0, 1)), allOf(service(), readyPods(2), inAttempt(2)).but("set-0-g-1-worker", inAttempt(2))).withGroup("set-0-g", 2, copyRecycled(1, 1, 0)), said{},
		},

		"it fails": {
			setOf(two(was(metav1.ConditionTrue), budget(1, 1)), have{"set-0-worker": {breached(0, "why")}}), ended,
		},
		"it has failed": {setOf(two(was(metav1.ConditionTrue), failureTarget("why")), nil), ended},
		"it has succeeded": {
			setOf(pair(was(metav1.ConditionTrue), replicaAttempt(0, 1), budget(5, 1)), allOf(pair(), inAttempt(1), hasSucceeded)), ended,
		},
		"it ends without a restart":          {setOf(pair(), allOf(pair(), hasSucceeded)), said{}},
		"it ends when the restarts are over": {setOf(pair(was(metav1.ConditionFalse)), allOf(pair(), hasSucceeded)), said{metav1.ConditionFalse, "Before", "before", -time.Hour}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got said
			if c := meta.FindStatusCondition(DecideSet(tc.snapshot, now).Status.Conditions, grovev1alpha1.ConditionTypeRestarting); c != nil {
				got = said{c.Status, c.Reason, c.Message, c.LastTransitionTime.Sub(now)}
			}
			expect(t, "Restarting", tc.want, got)
		})
	}
}
