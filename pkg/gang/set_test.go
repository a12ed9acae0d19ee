package gang

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
)

// have is a clique that exists, by its name.
type have map[string][]cliqueOption

// setOf is a snapshot of a set of which some cliques exist; each has the size of its
// template, and no pods unless an option gives it some.
func setOf(pcs *grovev1alpha1.PodCliqueSet, existing have) SetSnapshot {
	s := SetSnapshot{
		Set: pcs, Cliques: map[string]*grovev1alpha1.PodClique{}, Groups: map[string]*grovev1alpha1.PodCliqueScalingGroup{},
		Gangs: map[string]*schedulerv1alpha1.PodGang{},
	}
	for replica := range pcs.Spec.Replicas {
		for _, e := range ExpectedCliques(pcs, replica, func(int32, *grovev1alpha1.PodCliqueScalingGroupConfig) int32 { return 9 }) {
			options, exists := existing[e.Name]
			if !exists {
				continue
			}
			clique := newClique(pcs.Spec.WorkloadType, e.Template.Spec.Replicas, append([]cliqueOption{minAvailable(*e.Template.Spec.MinAvailable)}, options...)...)
			clique.Name = e.Name
			s.Cliques[e.Name] = clique
		}
	}
	return s
}

// allOf are all cliques that a set expects, alike.
func allOf(pcs *grovev1alpha1.PodCliqueSet, options ...cliqueOption) have {
	existing := have{}
	for replica := range pcs.Spec.Replicas {
		for _, e := range ExpectedCliques(pcs, replica, TemplateSizes) {
			existing[e.Name] = options
		}
	}
	return existing
}

// but replaces one of them.
func (h have) but(name string, options ...cliqueOption) have {
	h[name] = options
	return h
}

func (h have) without(name string) have {
	delete(h, name)
	return h
}

func size(n int32) cliqueOption {
	return func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = n }
}

func readyPods(n int32) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		runningPods(n)(c)
		c.Status.ReadyReplicas = n
	}
}

func runningPods(n int32) cliqueOption {
	return func(c *grovev1alpha1.PodClique) {
		scheduledPods(n)(c)
		c.Status.RunningReplicas = n
	}
}

func scheduledPods(n int32) cliqueOption {
	return func(c *grovev1alpha1.PodClique) { c.Status.Replicas, c.Status.ScheduledReplicas = n, n }
}

func updatedPods(n int32) cliqueOption {
	return func(c *grovev1alpha1.PodClique) { c.Status.UpdatedReplicas = n }
}

// hasSucceeded is a clique all of whose pods exited with 0.
func hasSucceeded(c *grovev1alpha1.PodClique) {
	completed(fmt.Sprintf("0-%d", c.Spec.Replicas-1))(c)
	if c.Spec.Replicas == 1 {
		completed("0")(c)
	}
	condition(grovev1alpha1.ConditionTypeSucceeded, metav1.ConditionTrue, grovev1alpha1.ReasonAllPodsSucceeded, 0)(c)
}

func phase(p grovev1alpha1.PodCliqueSetPhase) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Status.Phase = p }
}

func failureTarget(message string) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		meta.SetStatusCondition(&pcs.Status.Conditions, metav1.Condition{
			Type: grovev1alpha1.ConditionTypeFailureTarget, Status: metav1.ConditionTrue, Reason: grovev1alpha1.ReasonMaxRestartsExceeded,
			Message: message, LastTransitionTime: at(-time.Minute),
		})
	}
}

// delayed gives the template a terminationDelay.
func delayed(delay time.Duration) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.Template.TerminationDelay = &metav1.Duration{Duration: delay}
	}
}

func trainingSpec(pcs *grovev1alpha1.PodCliqueSet) *grovev1alpha1.TrainingSpec {
	if pcs.Spec.TrainingSpec == nil {
		pcs.Spec.TrainingSpec = &grovev1alpha1.TrainingSpec{}
	}
	return pcs.Spec.TrainingSpec
}

func maxRuntime(limit time.Duration) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		trainingSpec(pcs).MaxRuntime = &metav1.Duration{Duration: limit}
	}
}

// budget is how many restarts there may be, and how many there were.
func budget(restarts, used int32) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) {
		trainingSpec(pcs).MaxRestarts = ptr.To(restarts)
		pcs.Status.RestartCount = used
	}
}

func started(offset time.Duration) setOption {
	return func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Status.StartTime = ptr.To(at(offset)) }
}

// pair is a training set of two cliques, of 2 pods and of 1.
func pair(options ...setOption) *grovev1alpha1.PodCliqueSet {
	return trainingSet(append([]setOption{template("launcher", 1, 1), template("worker", 2, 2)}, options...)...)
}

func TestPhase(t *testing.T) {
	type outcome struct {
		Phase          grovev1alpha1.PodCliqueSetPhase
		StartTime      *metav1.Time
		CompletionTime *metav1.Time
		FailureTarget  summary
		Failed         summary
		Succeeded      summary
		Events         []string
	}
	failing := isTrue(grovev1alpha1.ReasonMaxRestartsExceeded)
	failEvents := []string{EventMaxRestartsExceeded}
	success := outcome{
		// A set that is first seen when it is over has started as well.
		Phase: grovev1alpha1.PodCliqueSetSucceeded, StartTime: ptr.To(at(0)), CompletionTime: ptr.To(at(0)),
		Succeeded: isTrue(grovev1alpha1.ReasonAllReplicasSucceeded), Events: []string{EventWorkloadSucceeded},
	}
	inferencePair := func(options ...setOption) *grovev1alpha1.PodCliqueSet {
		pcs := pair(options...)
		pcs.Spec.WorkloadType = grovev1alpha1.WorkloadTypeInference
		return pcs
	}
	tests := map[string]struct {
		set      *grovev1alpha1.PodCliqueSet
		existing have
		// gone says that a live list showed no active pod.
		gone bool
		want outcome
	}{
		"nothing exists yet": {set: pair(), want: outcome{Phase: grovev1alpha1.PodCliqueSetPending}},
		"no pod runs": {
			set: pair(), existing: allOf(pair(), scheduledPods(1)), want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"one pod runs": {
			set: pair(), existing: allOf(pair()).but("set-0-worker", runningPods(1)),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetRunning, StartTime: ptr.To(at(0))},
		},
		"one pod of one replica runs": {
			set: pair(replicas(3)), existing: have{"set-1-worker": {runningPods(1)}},
			want: outcome{Phase: grovev1alpha1.PodCliqueSetRunning, StartTime: ptr.To(at(0))},
		},
		"the start is written once": {
			set: pair(phase(grovev1alpha1.PodCliqueSetRunning), started(-time.Hour)), existing: allOf(pair(), runningPods(1)),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetRunning, StartTime: ptr.To(at(-time.Hour))},
		},
		"Running goes back to Pending when nothing runs, and the start stays": {
			set: pair(phase(grovev1alpha1.PodCliqueSetRunning), started(-time.Hour)), existing: allOf(pair()),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetPending, StartTime: ptr.To(at(-time.Hour))},
		},
		"and to Running again": {
			set: pair(phase(grovev1alpha1.PodCliqueSetPending), started(-time.Hour)), existing: allOf(pair(), runningPods(1)),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetRunning, StartTime: ptr.To(at(-time.Hour))},
		},
		"pods of the attempt before do not run": {
			set: pair(), existing: allOf(pair(), runningPods(1), attempt(1)), want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"nor do those of a clique that is below its replica's attempt": {
			set: pair(replicaAttempt(0, 1)), existing: allOf(pair(), runningPods(1)), want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"every clique has succeeded": {set: pair(), existing: allOf(pair(), hasSucceeded), want: success},
		"a success keeps the start": {
			set: pair(started(-time.Hour)), existing: allOf(pair(), hasSucceeded),
			want: outcome{
				Phase: grovev1alpha1.PodCliqueSetSucceeded, StartTime: ptr.To(at(-time.Hour)), CompletionTime: ptr.To(at(0)),
				Succeeded: isTrue(grovev1alpha1.ReasonAllReplicasSucceeded), Events: []string{EventWorkloadSucceeded},
			},
		},
		"nothing ends before it started, whoever's clock is behind": {
			set: pair(started(time.Minute)), existing: allOf(pair(), hasSucceeded),
			want: outcome{
				Phase: grovev1alpha1.PodCliqueSetSucceeded, StartTime: ptr.To(at(time.Minute)), CompletionTime: ptr.To(at(time.Minute)),
				Succeeded: isTrue(grovev1alpha1.ReasonAllReplicasSucceeded), Events: []string{EventWorkloadSucceeded},
			},
		},
		"one clique has not": {
			set: pair(), existing: allOf(pair(), hasSucceeded).but("set-0-worker", runningPods(2)),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetRunning, StartTime: ptr.To(at(0))},
		},
		"one clique was not created yet": {
			set: pair(), existing: allOf(pair(), hasSucceeded).without("set-0-worker"), want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"every clique of every replica has succeeded": {set: pair(replicas(2)), existing: allOf(pair(replicas(2)), hasSucceeded), want: success},
		"one clique of one replica has not": {
			set: pair(replicas(2)), existing: allOf(pair(replicas(2)), hasSucceeded).but("set-1-launcher"),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"one copy of a scaling group has not": {
			set:      pair(group("g", 2, 1, "worker")),
			existing: allOf(pair(group("g", 2, 1, "worker")), hasSucceeded).but("set-0-g-1-worker"),
			want:     outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"a success of the attempt before is none": {
			set: pair(), existing: allOf(pair(), hasSucceeded).but("set-0-worker", hasSucceeded, attempt(1)),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"nor is that of a clique that is below its replica's attempt": {
			set: pair(replicaAttempt(0, 1)), existing: allOf(pair(), inAttempt(1), hasSucceeded).but("set-0-worker", hasSucceeded),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"a condition that is False is no success": {
			set: pair(), existing: allOf(pair(), condition(grovev1alpha1.ConditionTypeSucceeded, metav1.ConditionFalse, "R", 0)),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"a set without replicas does not succeed": {set: pair(replicas(0)), want: outcome{Phase: grovev1alpha1.PodCliqueSetPending}},
		"a failure is recorded first, with the phase of what runs": {
			set: pair(phase(grovev1alpha1.PodCliqueSetRunning), started(-time.Hour)), existing: allOf(pair(), runningPods(1)).but("set-0-worker", runningPods(1), breached(0, "x")),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetRunning, StartTime: ptr.To(at(-time.Hour)), FailureTarget: failing, Events: failEvents},
		},
		"failure wins over success": {
			set: pair(started(-time.Hour), phase(grovev1alpha1.PodCliqueSetRunning), maxRuntime(time.Minute)), existing: allOf(pair(), hasSucceeded),
			want: outcome{
				Phase: grovev1alpha1.PodCliqueSetPending, StartTime: ptr.To(at(-time.Hour)),
				FailureTarget: isTrue(grovev1alpha1.ReasonMaxRuntimeExceeded), Events: []string{EventMaxRuntimeExceeded},
			},
		},
		"a failure of the attempt before is none": {
			set: pair(), existing: allOf(pair()).but("set-0-worker", breached(0, "x"), attempt(1)), want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"nor is a failure of a clique that is below its replica's attempt": {
			set: pair(replicaAttempt(0, 1)), existing: allOf(pair()).but("set-0-worker", breached(0, "x")), want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"failing, it waits for the active pods": {
			set: pair(started(-time.Hour), phase(grovev1alpha1.PodCliqueSetRunning), failureTarget("why")), existing: allOf(pair(), runningPods(1)),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetRunning, StartTime: ptr.To(at(-time.Hour)), FailureTarget: failing},
		},
		"also when the cliques say that none runs": {
			set: pair(phase(grovev1alpha1.PodCliqueSetRunning), failureTarget("why")), existing: allOf(pair(), breached(0, "x")),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetPending, FailureTarget: failing},
		},
		"and has failed when none is left": {
			set: pair(phase(grovev1alpha1.PodCliqueSetRunning), failureTarget("why")), existing: allOf(pair(), breached(0, "x")), gone: true,
			want: outcome{
				Phase: grovev1alpha1.PodCliqueSetFailed, CompletionTime: ptr.To(at(0)), FailureTarget: failing, Failed: failing,
				Events: []string{EventWorkloadFailed},
			},
		},
		"even if all succeed in the meantime": {
			set: pair(phase(grovev1alpha1.PodCliqueSetRunning), failureTarget("why")), existing: allOf(pair(), hasSucceeded), gone: true,
			want: outcome{
				Phase: grovev1alpha1.PodCliqueSetFailed, CompletionTime: ptr.To(at(0)), FailureTarget: failing, Failed: failing,
				Events: []string{EventWorkloadFailed},
			},
		},
		"Failed is final": {
			set: pair(phase(grovev1alpha1.PodCliqueSetFailed), failureTarget("why")), existing: allOf(pair(), runningPods(1)), gone: true,
			want: outcome{Phase: grovev1alpha1.PodCliqueSetFailed, FailureTarget: failing},
		},
		"Succeeded is final": {
			set: pair(phase(grovev1alpha1.PodCliqueSetSucceeded)), existing: allOf(pair(), runningPods(1), breached(0, "x")), gone: true,
			want: outcome{Phase: grovev1alpha1.PodCliqueSetSucceeded},
		},
		"a set that is deleted moves no more": {
			set:      pair(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.DeletionTimestamp = ptr.To(at(0)) }, phase(grovev1alpha1.PodCliqueSetRunning)),
			existing: allOf(pair(), breached(0, "x")), want: outcome{Phase: grovev1alpha1.PodCliqueSetRunning},
		},
		"Inference runs as well": {
			set: inferencePair(), existing: allOf(pair(), runningPods(1)),
			want: outcome{Phase: grovev1alpha1.PodCliqueSetRunning, StartTime: ptr.To(at(0))},
		},
		"Inference does not fail": {
			set: inferencePair(), existing: allOf(pair(), breached(time.Hour, "x")), gone: true, want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
		"Inference does not succeed": {
			set: inferencePair(), existing: allOf(pair(), hasSucceeded), gone: true, want: outcome{Phase: grovev1alpha1.PodCliqueSetPending},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, tc.existing)
			s.NoActivePods = tc.gone
			before := tc.set.DeepCopy()
			d := DecideSet(s, now)
			expect(t, "the set that was read", before, tc.set)
			got := outcome{
				Phase: d.Status.Phase, StartTime: d.Status.StartTime, CompletionTime: d.Status.CompletionTime,
				FailureTarget: conditionOf(d.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget),
				Failed:        conditionOf(d.Status.Conditions, grovev1alpha1.ConditionTypeFailed),
				Succeeded:     conditionOf(d.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded),
			}
			for _, e := range d.Events {
				got.Events = append(got.Events, e.Reason)
			}
			expect(t, "outcome", tc.want, got)
			expect(t, "observed generation", ptr.To[int64](5), d.Status.ObservedGeneration)
		})
	}
}

// The decision to fail is durable before its end is (D4), also when no pod is left.
func TestAFailureAndItsEndAreTwoWrites(t *testing.T) {
	s := setOf(pair(), allOf(pair(), breached(0, "x")))
	s.NoActivePods = true
	d := DecideSet(s, now)
	expect(t, "FailureTarget", isTrue(grovev1alpha1.ReasonMaxRestartsExceeded), conditionOf(d.Status.Conditions, grovev1alpha1.ConditionTypeFailureTarget))
	expect(t, "Failed", summary{}, conditionOf(d.Status.Conditions, grovev1alpha1.ConditionTypeFailed))
	expect(t, "phase", grovev1alpha1.PodCliqueSetPending, d.Status.Phase)
}

func TestWhatIsSaidOfTheEnd(t *testing.T) {
	type said struct {
		Condition metav1.Condition
		Events    []Event
	}
	failed := func(message string) said {
		return said{
			metav1.Condition{Status: metav1.ConditionTrue, Reason: grovev1alpha1.ReasonMaxRestartsExceeded, Message: message},
			[]Event{{corev1.EventTypeWarning, "MaxRestartsExceeded", message + ": all active pods are terminated"}},
		}
	}
	tests := map[string]struct {
		set       *grovev1alpha1.PodCliqueSet
		existing  have
		condition string
		want      said
	}{
		"a failure repeats what its clique says": {
			set: pair(replicas(2)), existing: allOf(pair(replicas(2)), readyPods(1)).but("set-1-worker", readyPods(1), breached(0, "1 of 2 pods are available: set-1-worker-1 failed (exit code 137, OOMKilled) on node gpu-17")),
			condition: grovev1alpha1.ConditionTypeFailureTarget,
			want:      failed("no restart is allowed; replica 1: set-1-worker: 1 of 2 pods are available: set-1-worker-1 failed (exit code 137, OOMKilled) on node gpu-17"),
		},
		"and how long that has been so": {
			set: pair(delayed(time.Minute)), existing: allOf(pair()).but("set-0-worker", breached(90*time.Second, "w")),
			condition: grovev1alpha1.ConditionTypeFailureTarget,
			want:      failed("no restart is allowed; replica 0: set-0-worker: w, for 1m30s"),
		},
		"three replicas are named": {
			set: pair(replicas(3)), existing: allOf(pair(replicas(3)), breached(0, "a")),
			condition: grovev1alpha1.ConditionTypeFailureTarget,
			want:      failed("no restart is allowed; replica 0: set-0-launcher: a; replica 1: set-1-launcher: a; replica 2: set-2-launcher: a"),
		},
		"more are counted": {
			set: pair(replicas(5)), existing: allOf(pair(replicas(5)), breached(0, "a")),
			condition: grovev1alpha1.ConditionTypeFailureTarget,
			want:      failed("no restart is allowed; replica 0: set-0-launcher: a; replica 1: set-1-launcher: a; replica 2: set-2-launcher: a; and 2 more"),
		},
		"Failed repeats what FailureTarget said": {
			set: pair(failureTarget("why")), existing: allOf(pair(), breached(0, "something else")), condition: grovev1alpha1.ConditionTypeFailed,
			want: said{
				metav1.Condition{Status: metav1.ConditionTrue, Reason: grovev1alpha1.ReasonMaxRestartsExceeded, Message: "why"},
				[]Event{{corev1.EventTypeWarning, "WorkloadFailed", "why"}},
			},
		},
		"a success counts its pods": {
			set: pair(replicas(2)), existing: allOf(pair(replicas(2)), hasSucceeded), condition: grovev1alpha1.ConditionTypeSucceeded,
			want: said{
				metav1.Condition{Status: metav1.ConditionTrue, Reason: grovev1alpha1.ReasonAllReplicasSucceeded, Message: "every pod exited with 0, 6 in all"},
				[]Event{{corev1.EventTypeNormal, "WorkloadSucceeded", "every pod exited with 0, 6 in all"}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.set, tc.existing)
			s.NoActivePods = isFailing(&tc.set.Status)
			d := DecideSet(s, now)
			c := meta.FindStatusCondition(d.Status.Conditions, tc.condition)
			if c == nil {
				t.Fatalf("no condition %s", tc.condition)
			}
			tc.want.Condition.Type, tc.want.Condition.LastTransitionTime, tc.want.Condition.ObservedGeneration = tc.condition, at(0), 5
			expect(t, "said", tc.want, said{*c, d.Events})
			if !d.Changed || !d.Urgent {
				t.Errorf("the end may not wait: changed %v, urgent %v", d.Changed, d.Urgent)
			}
		})
	}
}
