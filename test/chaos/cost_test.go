package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// What the failure of one pod costs does not depend on how many replicas the set has: its
// replacement is looked at by the controllers of its own clique and replica alone, and
// the set is looked at as often.
func TestAFailureCostsTheSamePassesHoweverManyReplicas(t *testing.T) {
	const few, many = 1, 8
	one, all := passesOfAFailure(t, few), passesOfAFailure(t, many)
	if diff := cmp.Diff(one, all); diff != "" {
		t.Errorf("passes with %d and with %d replicas (-%d +%d):\n%s", few, many, few, many, diff)
	}
	if len(one) == 0 {
		t.Error("a failure costs nothing: the test does not see the passes")
	}
	t.Log(one)
}

// passesOfAFailure is how many passes of each key the failure and replacement of a pod of
// replica 0 cost, beside those of a run in which nothing fails.
func passesOfAFailure(t *testing.T, replicas int32) map[string]int {
	t.Helper()
	scenario := func(fails bool) Scenario {
		set := newInference("cost", nil)
		set.Spec.Replicas = replicas
		return Scenario{
			Name: fmt.Sprintf("failure-of-one-in-%d", replicas), Set: set,
			Script: func(id PodID) Outcome {
				if fails && id.Incarnation == 0 && strings.HasSuffix(id.Clique, "-0-router") && id.Index == 1 {
					return Outcome{After: time.Minute, Exit: 1}
				}
				return Outcome{}
			},
			End: func(set *grovev1alpha1.PodCliqueSet) error {
				if set == nil || set.Status.AvailableReplicas != replicas {
					return fmt.Errorf("not all %d replicas are available", replicas)
				}
				return nil
			},
		}
	}
	cost := reference(t, scenario(true)).passes
	for key, n := range reference(t, scenario(false)).passes {
		if cost[key] -= n; cost[key] == 0 {
			delete(cost, key)
		}
	}
	return cost
}
