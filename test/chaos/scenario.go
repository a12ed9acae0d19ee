package chaos

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// Scenario is the life of one set.
type Scenario struct {
	Name string
	Set  *grovev1alpha1.PodCliqueSet
	// Script says what becomes of each pod.
	Script func(PodID) Outcome
	// DeleteWhen says when the user deletes the set; nil for never.
	DeleteWhen func(client.Object) bool
	// Scale is what the user makes of the scaling groups, in the order of time.
	Scale []Scaling
	// Changes are what the user makes of the set, in the order of time.
	Changes []Change
	// End says what is wrong with the end. The set is nil when it is gone.
	End func(*grovev1alpha1.PodCliqueSet) error
	// AnyEnd says that the end depends on what is seen together (D6), so that only End
	// and the invariants judge it.
	AnyEnd bool
	// Seldom lets the fast tier try the faults which it does not try everywhere in fewer
	// places, where another scenario takes the same ways.
	Seldom bool
}

// Scaling is a size that the user gives to a scaling group.
type Scaling struct {
	// After is when, from the beginning of the run.
	After    time.Duration
	Group    string
	Replicas int32
}

// Change is what the user does to the set.
type Change struct {
	// After is when, from the beginning of the run.
	After time.Duration
	Do    func(*grovev1alpha1.PodCliqueSet)
}

// Scenarios are the lives that every fault is tried in.
func Scenarios() []Scenario {
	return append([]Scenario{success(), restart(), crashAtStart(), exhausted(), exhaustedTogether(), deadline(), held(), replacement(), recycling(), termination(), deletion(), autoscaled(), ordered(), update(), priority()}, gated()...)
}

func newSet(name string, workload grovev1alpha1.WorkloadType, cliques ...grovev1alpha1.PodCliqueTemplateSpec) *grovev1alpha1.PodCliqueSet {
	return &grovev1alpha1.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: grovev1alpha1.PodCliqueSetSpec{
			Replicas: 1, WorkloadType: workload,
			Template: grovev1alpha1.PodCliqueSetTemplateSpec{Cliques: cliques},
		},
	}
}

func newClique(name string, replicas int32, minAvailable *int32) grovev1alpha1.PodCliqueTemplateSpec {
	return grovev1alpha1.PodCliqueTemplateSpec{Name: name, Spec: grovev1alpha1.PodCliqueSpec{
		Replicas: replicas, MinAvailable: minAvailable,
		PodSpec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
	}}
}

// newTraining has a leader, workers of which one may be missing, and two copies of a group.
func newTraining(name string, maxRestarts int32) *grovev1alpha1.PodCliqueSet {
	set := newSet(name, grovev1alpha1.WorkloadTypeTraining,
		newClique("leader", 1, nil), newClique("worker", 2, ptr.To[int32](1)), newClique("shard", 1, nil))
	set.Spec.TrainingSpec = &grovev1alpha1.TrainingSpec{MaxRestarts: &maxRestarts}
	set.Spec.Template.PodCliqueScalingGroups = []grovev1alpha1.PodCliqueScalingGroupConfig{{Name: "data", CliqueNames: []string{"shard"}, Replicas: ptr.To[int32](2)}}
	return set
}

// newInference has a router, and three copies of a group of which one is needed.
func newInference(name string, delay *metav1.Duration) *grovev1alpha1.PodCliqueSet {
	set := newSet(name, grovev1alpha1.WorkloadTypeInference, newClique("router", 2, nil), newClique("engine", 1, nil))
	set.Spec.Template.TerminationDelay = delay
	set.Spec.Template.PodCliqueScalingGroups = []grovev1alpha1.PodCliqueScalingGroupConfig{
		{Name: "pool", CliqueNames: []string{"engine"}, Replicas: ptr.To[int32](3), MinAvailable: ptr.To[int32](1)},
	}
	return set
}

// allSucceed lets the leader finish last.
func allSucceed(id PodID) Outcome {
	if strings.HasSuffix(id.Clique, "leader") {
		return Outcome{After: 20 * time.Second}
	}
	return Outcome{After: 10*time.Second + time.Duration(id.Index)*2*time.Second}
}

func ends(phase grovev1alpha1.PodCliqueSetPhase, restarts int32, reason string) func(*grovev1alpha1.PodCliqueSet) error {
	return func(set *grovev1alpha1.PodCliqueSet) error {
		if set == nil {
			return fmt.Errorf("the set is gone")
		}
		have := ""
		if failing := meta.FindStatusCondition(set.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget); failing != nil {
			have = failing.Reason
		}
		if set.Status.Phase != phase || set.Status.RestartCount != restarts || have != reason {
			return fmt.Errorf("phase %s after %d restarts (%q), want %s after %d (%q)", set.Status.Phase, set.Status.RestartCount, have, phase, restarts, reason)
		}
		return nil
	}
}

func success() Scenario {
	return Scenario{Name: "success", Set: newTraining("good", 0), Script: allSucceed, End: ends(grovev1alpha1.PodCliqueSetSucceeded, 0, "")}
}

// restart: the leader fails once, and a member of the group with it.
func restart() Scenario {
	return Scenario{
		Name: "restart", Set: newTraining("again", 1),
		Script: func(id PodID) Outcome {
			switch {
			case id.Attempt > 0:
				return allSucceed(id)
			case strings.HasSuffix(id.Clique, "leader"), strings.HasSuffix(id.Clique, "data-1-shard"):
				return Outcome{After: 12 * time.Second, Exit: 1}
			case strings.HasSuffix(id.Clique, "worker") && id.Index == 0:
				return Outcome{After: 5 * time.Second}
			}
			return Outcome{}
		},
		End: ends(grovev1alpha1.PodCliqueSetSucceeded, 1, ""),
	}
}

// held: the restart with a scheduler that knows no gangs. The pods of each attempt are held
// until all exist.
func held() Scenario {
	s := restart()
	s.Name, s.Set.Name = "held", "held"
	for i := range s.Set.Spec.Template.Cliques {
		s.Set.Spec.Template.Cliques[i].Spec.PodSpec.SchedulerName = "one-by-one"
	}
	return s
}

// ordered: the cliques start one after the other, and again from the first when the last
// one has failed.
func ordered() Scenario {
	set := newTraining("order", 1)
	set.Spec.Template.Cliques = append([]grovev1alpha1.PodCliqueTemplateSpec{newClique("init", 1, nil)}, set.Spec.Template.Cliques...)
	set.Spec.StartupPolicy = &grovev1alpha1.StartupPolicy{
		StartupPolicyOrder: grovev1alpha1.StartupPolicyInOrder,
		Rules: []grovev1alpha1.StartupPolicyRule{
			{TargetCliques: []string{"init"}, WaitForCliquesStatus: grovev1alpha1.CliqueStatusSucceeded},
			{TargetCliques: []string{"leader", "worker"}, WaitForCliquesStatus: grovev1alpha1.CliqueStatusReady},
		},
	}
	return Scenario{
		Name: "ordered", Set: set,
		Script: func(id PodID) Outcome {
			switch {
			case strings.HasSuffix(id.Clique, "init"):
				return Outcome{After: 5 * time.Second}
			case id.Attempt == 0 && strings.HasSuffix(id.Clique, "data-1-shard"):
				return Outcome{After: 12 * time.Second, Exit: 1}
			case id.Attempt == 0:
				return Outcome{}
			}
			return allSucceed(id)
		},
		End: ends(grovev1alpha1.PodCliqueSetSucceeded, 1, ""),
	}
}

// crashAtStart: the leader fails while pods are still being made.
func crashAtStart() Scenario {
	return Scenario{
		Name: "crash-at-start", Set: newTraining("early", 1),
		Script: func(id PodID) Outcome {
			switch {
			case id.Attempt > 0:
				return allSucceed(id)
			case strings.HasSuffix(id.Clique, "leader"):
				return Outcome{AtOnce: true, Exit: 1}
			}
			return Outcome{}
		},
		End: ends(grovev1alpha1.PodCliqueSetSucceeded, 1, ""),
	}
}

// exhausted: the failure after the last restart is one too many.
func exhausted() Scenario {
	return Scenario{
		Name: "exhausted", Set: newTraining("bad", 1),
		Script: func(id PodID) Outcome {
			switch {
			case strings.HasSuffix(id.Clique, "leader"):
				return Outcome{After: 12 * time.Second, Exit: 1}
			case strings.HasSuffix(id.Clique, "worker") && id.Index == 0:
				return Outcome{After: 5 * time.Second}
			}
			return Outcome{}
		},
		End: ends(grovev1alpha1.PodCliqueSetFailed, 1, grovev1alpha1.ReasonMaxRestartsExceeded),
	}
}

// exhaustedTogether: two replicas fail at the same time, and there is one restart.
func exhaustedTogether() Scenario {
	set := newSet("both", grovev1alpha1.WorkloadTypeTraining, newClique("leader", 1, nil), newClique("worker", 1, nil))
	set.Spec.Replicas = 2
	set.Spec.TrainingSpec = &grovev1alpha1.TrainingSpec{MaxRestarts: ptr.To[int32](1)}
	return Scenario{
		Name: "exhausted-together", Set: set, AnyEnd: true,
		Script: func(id PodID) Outcome {
			if strings.HasSuffix(id.Clique, "leader") {
				return Outcome{After: 12 * time.Second, Exit: 1}
			}
			return Outcome{}
		},
		End: func(set *grovev1alpha1.PodCliqueSet) error {
			if set == nil || set.Status.Phase != grovev1alpha1.PodCliqueSetFailed || set.Status.RestartCount > 1 {
				return fmt.Errorf("the set is not Failed after at most one restart")
			}
			return nil
		},
	}
}

// deadline: the set runs too long, over a restart.
func deadline() Scenario {
	set := newTraining("slow", 1)
	set.Spec.TrainingSpec.MaxRuntime = &metav1.Duration{Duration: time.Minute}
	return Scenario{
		Name: "deadline", Set: set,
		Script: func(id PodID) Outcome {
			if id.Attempt == 0 && strings.HasSuffix(id.Clique, "leader") {
				return Outcome{After: 12 * time.Second, Exit: 1}
			}
			return Outcome{}
		},
		End: ends(grovev1alpha1.PodCliqueSetFailed, 1, grovev1alpha1.ReasonMaxRuntimeExceeded),
	}
}

func available(attempt int32) func(*grovev1alpha1.PodCliqueSet) error {
	return func(set *grovev1alpha1.PodCliqueSet) error {
		if set == nil {
			return fmt.Errorf("the set is gone")
		}
		have := int32(0)
		for _, replica := range set.Status.ReplicaStatuses {
			have = max(have, replica.Attempt)
		}
		if set.Status.AvailablePods != set.Status.Pods || set.Status.AvailableReplicas != 1 || have != attempt {
			return fmt.Errorf("%d of %d pods are available in attempt %d, want all in attempt %d", set.Status.AvailablePods, set.Status.Pods, have, attempt)
		}
		return nil
	}
}

// replacement: without gang termination single pods are made again.
func replacement() Scenario {
	return Scenario{
		Name: "replacement", Set: newInference("heal", nil),
		Script: func(id PodID) Outcome {
			if id.Incarnation == 0 && strings.HasSuffix(id.Clique, "router") && id.Index == 1 {
				return Outcome{After: 15 * time.Second, Exit: 1}
			}
			return Outcome{}
		},
		End: available(0),
	}
}

// recycling: one copy of the group turns bad, enough others are there.
func recycling() Scenario {
	return Scenario{
		Name: "recycling", Set: newInference("recycle", &metav1.Duration{Duration: 10 * time.Second}),
		Script: func(id PodID) Outcome {
			if id.Attempt == 0 && strings.HasSuffix(id.Clique, "pool-2-engine") {
				return Outcome{After: 15 * time.Second, Unready: true}
			}
			return Outcome{}
		},
		End: available(0),
	}
}

// termination: a standalone clique turns bad, which takes the whole replica along.
func termination() Scenario {
	return Scenario{
		Name: "termination", Set: newInference("terminate", &metav1.Duration{Duration: 10 * time.Second}),
		Script: func(id PodID) Outcome {
			if id.Attempt == 0 && strings.HasSuffix(id.Clique, "router") && id.Index == 0 {
				return Outcome{After: 15 * time.Second, Unready: true}
			}
			return Outcome{}
		},
		End: available(1),
	}
}

// update: both replicas follow a new template, and a newer one before they have; a pod fails on
// the way.
func update() Scenario {
	set := newInference("roll", &metav1.Duration{Duration: time.Minute})
	set.Spec.Replicas = 2
	image := func(name string) func(*grovev1alpha1.PodCliqueSet) {
		return func(set *grovev1alpha1.PodCliqueSet) {
			for i := range set.Spec.Template.Cliques {
				set.Spec.Template.Cliques[i].Spec.PodSpec.Containers[0].Image = "example.com/" + name
			}
		}
	}
	return Scenario{
		Name: "update", Set: set, Seldom: true,
		Script: func(id PodID) Outcome {
			if id.Incarnation == 0 && strings.HasSuffix(id.Clique, "roll-1-router") && id.Index == 1 {
				return Outcome{After: 12 * time.Second, Exit: 1}
			}
			return Outcome{}
		},
		Changes: []Change{{20 * time.Second, image("second")}, {25 * time.Second, image("third")}},
		End:     updated(2, 0),
	}
}

// priority: another priority class makes the replica anew as a whole.
func priority() Scenario {
	set := newInference("class", nil)
	set.Spec.Template.PriorityClassName = "low"
	return Scenario{
		Name: "priority", Set: set, Seldom: true, Script: func(PodID) Outcome { return Outcome{} },
		Changes: []Change{{20 * time.Second, func(set *grovev1alpha1.PodCliqueSet) { set.Spec.Template.PriorityClassName = "high" }}},
		End:     updated(1, 1),
	}
}

func updated(replicas, attempt int32) func(*grovev1alpha1.PodCliqueSet) error {
	return func(set *grovev1alpha1.PodCliqueSet) error {
		if set == nil {
			return fmt.Errorf("the set is gone")
		}
		have := int32(0)
		for _, replica := range set.Status.ReplicaStatuses {
			have = max(have, replica.Attempt)
		}
		progress := set.Status.UpdateProgress
		if progress == nil || progress.UpdateEndedAt == nil || set.Status.UpdatedReplicas != replicas || set.Status.AvailablePods != set.Status.Pods || have != attempt {
			return fmt.Errorf("%d replicas are updated, %d of %d pods available, in attempt %d, the update is %+v", set.Status.UpdatedReplicas, set.Status.AvailablePods, set.Status.Pods, have, progress)
		}
		return nil
	}
}

// deletion: the user deletes a set that runs.
func deletion() Scenario {
	return Scenario{
		Name: "deletion", Set: newTraining("gone", 0), Script: func(PodID) Outcome { return Outcome{} },
		DeleteWhen: func(obj client.Object) bool {
			set := obj.(*grovev1alpha1.PodCliqueSet)
			return set.Status.Pods > 0 && set.Status.AvailablePods == set.Status.Pods
		},
		End: func(set *grovev1alpha1.PodCliqueSet) error {
			if set != nil {
				return fmt.Errorf("the set is still there")
			}
			return nil
		},
	}
}

// autoscaled: the same of a service with autoscalers, which go before what keeps the set.
func autoscaled() Scenario {
	s := deletion()
	s.Name, s.Set, s.Seldom = "autoscaled", newInference("auto", nil), true
	template := &s.Set.Spec.Template
	template.Cliques[0].Spec.AutoScalingConfig = &grovev1alpha1.AutoScalingConfig{MaxReplicas: 4}
	template.PodCliqueScalingGroups[0].ScaleConfig = &grovev1alpha1.AutoScalingConfig{MaxReplicas: 5}
	return s
}
