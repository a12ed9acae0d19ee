package chaos

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// gated are lives of sets whose pods wait to start.
func gated() []Scenario {
	out := []Scenario{containersInOrder(), containersAfterOthers(), barrier(), barrierExpires(), barrierOfACopyExpires(), barrierOfACopyAgain()}
	for i := range out {
		out[i].Seldom = true
	}
	return out
}

// containersInOrder: the leader before the workers, and these before the shards of both the
// base gang and the scaled one; again when a shard has failed.
func containersInOrder() Scenario {
	set := newTraining("chain", 1)
	set.Spec.Template.StartupType = ptr.To(grovev1alpha1.CliqueStartupTypeInOrder)
	return Scenario{
		Name: "containers-in-order", Set: set,
		Script: func(id PodID) Outcome {
			switch {
			case id.Attempt == 0 && strings.HasSuffix(id.Clique, "data-1-shard"):
				return Outcome{After: 5 * time.Second, Exit: 1}
			case id.Attempt == 0:
				return Outcome{}
			}
			return allSucceed(id)
		},
		End: ends(grovev1alpha1.PodCliqueSetSucceeded, 1, ""),
	}
}

// containersAfterOthers: the engines of all copies start after the routers, and those of a
// copy that is made anew again.
func containersAfterOthers() Scenario {
	set := newInference("tree", &metav1.Duration{Duration: 10 * time.Second})
	set.Spec.Template.StartupType = ptr.To(grovev1alpha1.CliqueStartupTypeExplicit)
	set.Spec.Template.Cliques[1].Spec.StartsAfter = []string{"router"}
	return Scenario{
		Name: "containers-after-others", Set: set,
		Script: func(id PodID) Outcome {
			if id.Attempt == 0 && strings.HasSuffix(id.Clique, "pool-2-engine") {
				return Outcome{After: 15 * time.Second, Unready: true}
			}
			return Outcome{ByFile: id.Index == 0}
		},
		End: available(0),
	}
}

// barrier: all of a gang come, one of them fails later, and all come again. Some waiters do
// not reach the API.
func barrier() Scenario {
	set := newTraining("line", 1)
	set.Spec.Template.Cliques[1].Spec.MinAvailable = nil
	set.Spec.GroupSchedulingConfig = &grovev1alpha1.GroupSchedulingConfig{}
	return Scenario{
		Name: "barrier", Set: set,
		Script: func(id PodID) Outcome {
			out := allSucceed(id)
			if id.Attempt == 0 {
				if out = (Outcome{}); strings.HasSuffix(id.Clique, "leader") {
					out = Outcome{After: 12 * time.Second, Exit: 1}
				}
			}
			out.ByFile = id.Index == 1 || strings.HasSuffix(id.Clique, "data-1-shard")
			return out
		},
		End: ends(grovev1alpha1.PodCliqueSetSucceeded, 1, ""),
	}
}

// barrierExpires: a worker never comes, in both attempts. Of the last one those pods are left
// whose waiter has ended before they were deleted.
func barrierExpires() Scenario {
	set := newSet("wait", grovev1alpha1.WorkloadTypeTraining, newClique("leader", 1, nil), newClique("worker", 2, nil))
	set.Spec.TrainingSpec = &grovev1alpha1.TrainingSpec{MaxRestarts: ptr.To[int32](1)}
	set.Spec.GroupSchedulingConfig = &grovev1alpha1.GroupSchedulingConfig{TimeoutAfterSeconds: ptr.To[int32](30)}
	return Scenario{
		Name: "barrier-expires", Set: set, AnyEnd: true,
		Script: func(id PodID) Outcome {
			return Outcome{Stuck: strings.HasSuffix(id.Clique, "worker") && id.Index == 1}
		},
		End: ends(grovev1alpha1.PodCliqueSetFailed, 1, grovev1alpha1.ReasonMaxRestartsExceeded),
	}
}

// barrierOfACopyExpires: in Inference that copy is made anew alone.
func barrierOfACopyExpires() Scenario {
	set := newInference("lone", nil)
	set.Spec.Template.Cliques[1].Spec.Replicas = 2
	set.Spec.Template.PodCliqueScalingGroups[0].Replicas = ptr.To[int32](2)
	set.Spec.GroupSchedulingConfig = &grovev1alpha1.GroupSchedulingConfig{TimeoutAfterSeconds: ptr.To[int32](30), TargetCliques: []string{"engine"}}
	return Scenario{
		Name: "barrier-of-a-copy-expires", Set: set,
		Script: func(id PodID) Outcome {
			return Outcome{Stuck: id.Attempt == 0 && strings.HasSuffix(id.Clique, "pool-1-engine") && id.Index == 1}
		},
		End: available(0),
	}
}

// barrierOfACopyAgain: the user takes a copy away and wants it back while its pods still go.
func barrierOfACopyAgain() Scenario {
	set := newInference("back", nil)
	set.Spec.Template.Cliques[1].Spec.Replicas = 2
	set.Spec.Template.PodCliqueScalingGroups[0].Replicas = ptr.To[int32](2)
	set.Spec.GroupSchedulingConfig = &grovev1alpha1.GroupSchedulingConfig{TargetCliques: []string{"engine"}}
	return Scenario{
		Name: "barrier-of-a-copy-again", Set: set,
		Script: func(PodID) Outcome { return Outcome{} },
		Scale:  []Scaling{{20 * time.Second, "back-0-pool", 1}, {20 * time.Second, "back-0-pool", 2}},
		End:    available(0),
	}
}
