package gang

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// The order of seed 001, with the exception of D8: enough pods, never available, breach.
func TestMinAvailableBreached(t *testing.T) {
	sufficient := isFalse(grovev1alpha1.ReasonSufficientReadyPods)
	never := isFalse(grovev1alpha1.ReasonNeverAvailable)
	podsFailed := isTrue(grovev1alpha1.ReasonPodsFailed)
	insufficient := isTrue(grovev1alpha1.ReasonInsufficientReadyPods)
	tests := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
		want   summary
		// wantWas is wasAvailable after the pass.
		wantWas bool
		message string
	}{
		"no pod yet": {clique: inference(2), want: never, message: "0 of 2 pods are available, at least 2 are needed"},
		"pods that run and are not Ready do not count": {
			clique: inference(2), pods: podsOfAll(2, running), want: never, message: "0 of 2 pods are available, at least 2 are needed",
		},
		"one below the minimum": {
			clique: inference(3, minAvailable(2)), pods: pods(podOf(0, ready), podOf(1, running), podOf(2, running)),
			want: never, message: "1 of 3 pods are available, at least 2 are needed",
		},
		"the minimum is Ready": {
			clique: inference(3, minAvailable(2)), pods: pods(podOf(0, running), podOf(1, ready), podOf(2, ready)),
			want: sufficient, wantWas: true, message: "2 of 3 pods are available, at least 2 are needed",
		},
		"no minimum is all": {
			clique: inference(2, func(c *grovev1alpha1.PodClique) { c.Spec.MinAvailable = nil }), pods: pods(podOf(0, ready), podOf(1, running)),
			want: never, message: "1 of 2 pods are available, at least 2 are needed",
		},
		"the minimum is never above the size": {
			clique: inference(1, minAvailable(2)), pods: pods(podOf(0, ready)),
			want: sufficient, wantWas: true, message: "1 of 1 pods are available, at least 1 are needed",
		},
		"a breach": {
			clique: inference(2, wasAvailable), pods: pods(podOf(0, ready), podOf(1, running)),
			want: insufficient, wantWas: true, message: "1 of 2 pods are available, at least 2 are needed: pod-1 is not Ready",
		},
		"a breach by the last pod that went": {
			clique: inference(1, wasAvailable), want: insufficient, wantWas: true, message: "0 of 1 pods are available, at least 1 are needed: index 0 has no pod",
		},
		"Ready again": {
			clique: inference(2, wasAvailable), pods: podsOfAll(2, ready),
			want: sufficient, wantWas: true, message: "2 of 2 pods are available, at least 2 are needed",
		},
		"a terminating pod does not count, however Ready it is": {
			clique: inference(1, wasAvailable), pods: pods(podOf(0, ready, terminating)),
			want: insufficient, wantWas: true, message: "0 of 1 pods are available, at least 1 are needed: pod-0 is being deleted",
		},
		"in Inference a pod that exited with 0 does not count": {
			clique: inference(2), pods: pods(podOf(0, succeeded), podOf(1, ready)), want: never, message: "1 of 2 pods are available, at least 2 are needed",
		},
		"nor does a completed index, whoever wrote it there": {
			clique: inference(2, completed("0")), pods: pods(podOf(1, ready)), want: never, message: "1 of 2 pods are available, at least 2 are needed",
		},
		"in Training Ready and Succeeded pods count": {
			clique: training(2), pods: pods(podOf(0, succeeded), podOf(1, ready)),
			want: sufficient, wantWas: true, message: "2 of 2 pods are available, at least 2 are needed",
		},
		"in Training a pod counts that succeeded and is gone": {
			clique: training(2, completed("0")), pods: pods(podOf(1, ready)),
			want: sufficient, wantWas: true, message: "2 of 2 pods are available, at least 2 are needed",
		},
		"in Training a pod counts that succeeded and is cleaned up": {
			clique: training(2), pods: pods(podOf(0, succeeded, finished(-time.Hour), terminating), podOf(1, ready)),
			want: sufficient, wantWas: true, message: "2 of 2 pods are available, at least 2 are needed",
		},
		"a completed index above the size does not count": {
			clique: training(2, minAvailable(1), completed("5")), pods: podsOfAll(2, running),
			want: never, message: "0 of 2 pods are available, at least 1 are needed",
		},
		"a job that crashes at its first start does not hang": {
			clique: training(2), pods: pods(podOf(0, failed), podOf(1, running)),
			want: podsFailed, message: "0 of 2 pods are available, at least 2 are needed: pod-0 failed (exit code 1); pod-1 is not Ready",
		},
		"a failure within the tolerance is no breach": {
			clique: training(2, minAvailable(1)), pods: pods(podOf(0, failed), podOf(1, running)),
			want: never, message: "0 of 2 pods are available, at least 1 are needed",
		},
		"the failure after it is one": {
			clique: training(2, minAvailable(1)), pods: podsOfAll(2, failed),
			want: podsFailed, message: "0 of 2 pods are available, at least 1 are needed: pod-0 failed (exit code 1); pod-1 failed (exit code 1)",
		},
		"once available, the reason is the seed's": {
			clique: training(2, wasAvailable), pods: pods(podOf(0, failed), podOf(1, ready)),
			want: insufficient, wantWas: true, message: "1 of 2 pods are available, at least 2 are needed: pod-0 failed (exit code 1)",
		},
		"in Inference a crash at the first start is the back-off's": {
			clique: inference(2), pods: pods(podOf(0, failed), podOf(1, running)), want: never, message: "0 of 2 pods are available, at least 2 are needed",
		},
		"an index is broken though its pod is gone": {
			clique: training(1, failedBefore(0, 1, -time.Minute)), want: podsFailed, message: "0 of 1 pods are available, at least 1 are needed: before",
		},
		"an index is broken until its pod is Ready again": {
			clique: training(2, failedBefore(0, 1, -time.Minute)), pods: pods(podOf(0, running, withUID("new")), podOf(1, running)),
			want: podsFailed, message: "0 of 2 pods are available, at least 2 are needed: before; pod-1 is not Ready",
		},
		"a Ready pod mends its index": {
			clique: training(2, failedBefore(0, 1, -time.Minute)), pods: pods(podOf(0, ready, withUID("new")), podOf(1, running)),
			want: never, message: "1 of 2 pods are available, at least 2 are needed",
		},
		"a terminating pod mends nothing": {
			clique: training(1, failedBefore(0, 1, -time.Minute)), pods: pods(podOf(0, ready, withUID("new"), terminating)),
			want: podsFailed, message: "0 of 1 pods are available, at least 1 are needed: before",
		},
		"a succeeded pod mends its index": {
			clique: training(2, failedBefore(0, 1, -time.Minute)), pods: pods(podOf(0, succeeded, withUID("new")), podOf(1, running)),
			want: never, message: "1 of 2 pods are available, at least 2 are needed",
		},
		"a completed index is not broken": {
			clique: training(2, completed("0"), failedBefore(0, 1, -time.Minute)), pods: pods(podOf(1, running)),
			want: never, message: "1 of 2 pods are available, at least 2 are needed",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := DecideClique(snapshotOf(tc.clique, tc.pods), now).Status
			expect(t, "breach", tc.want, conditionOf(got.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached))
			expect(t, "was available", tc.wantWas, got.WasAvailable)
			for _, c := range got.Conditions {
				if c.Type == grovev1alpha1.ConditionTypeMinAvailableBreached {
					expect(t, "message", tc.message, c.Message)
					expect(t, "generation", tc.clique.Generation, c.ObservedGeneration)
				}
			}
		})
	}
}

// A breach by a pod that is about to be Failed waits for the phase, which breaks the index
// and says why.
func TestABreachAwaitsThePhaseOfAFailingPod(t *testing.T) {
	is := func(status metav1.ConditionStatus, reason string) cliqueOption {
		return condition(grovev1alpha1.ConditionTypeMinAvailableBreached, status, reason, 0)
	}
	available := is(metav1.ConditionFalse, grovev1alpha1.ReasonSufficientReadyPods)
	never := is(metav1.ConditionFalse, grovev1alpha1.ReasonNeverAvailable)
	breached := is(metav1.ConditionTrue, grovev1alpha1.ReasonInsufficientReadyPods)
	insufficient := isTrue(grovev1alpha1.ReasonInsufficientReadyPods)
	tests := map[string]struct {
		clique  *grovev1alpha1.PodClique
		pods    []Pod
		want    summary
		message string
	}{
		"it was available": {
			clique: training(2, wasAvailable, available), pods: pods(podOf(0, ready), podOf(1, failing)),
			want: isFalse(grovev1alpha1.ReasonSufficientReadyPods),
		},
		"the phase has come": {
			clique: training(2, wasAvailable, available), pods: pods(podOf(0, ready), podOf(1, failed)),
			want: insufficient, message: "1 of 2 pods are available, at least 2 are needed: pod-1 failed (exit code 1)",
		},
		"it was never available, and is not by this": {
			clique: training(2, never), pods: pods(podOf(0, ready), podOf(1, failing)), want: isFalse(grovev1alpha1.ReasonNeverAvailable),
		},
		"another pod is missing as well": {
			clique: training(2, wasAvailable, available), pods: pods(podOf(0, running), podOf(1, failing)),
			want: insufficient, message: "0 of 2 pods are available, at least 2 are needed: pod-0 is not Ready; pod-1 failed (exit code 1)",
		},
		"a breach that lasts goes on": {
			clique: training(2, wasAvailable, breached), pods: pods(podOf(0, ready), podOf(1, failing)),
			want: insufficient, message: "1 of 2 pods are available, at least 2 are needed: pod-1 failed (exit code 1)",
		},
		"it is told to go": {
			clique: training(2, wasAvailable, available), pods: pods(podOf(0, ready), podOf(1, failing, terminating)),
			want: insufficient, message: "1 of 2 pods are available, at least 2 are needed: pod-1 is being deleted",
		},
		"in Inference readiness is what counts": {
			clique: inference(2, wasAvailable, available), pods: pods(podOf(0, ready), podOf(1, failing)),
			want: insufficient, message: "1 of 2 pods are available, at least 2 are needed: pod-1 failed (exit code 1)",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			was := tc.clique.Status.WasAvailable
			status := DecideClique(snapshotOf(tc.clique, tc.pods), now).Status
			expect(t, "condition", tc.want, conditionOf(status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached))
			expect(t, "wasAvailable", was, status.WasAvailable)
			if tc.message != "" {
				expect(t, "message", tc.message, meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached).Message)
			}
		})
	}
}

func TestAnIdleCliqueNeedsNothing(t *testing.T) {
	idle := map[string]*grovev1alpha1.PodClique{
		"that was never more":    inference(0, minAvailable(2), notCreated),
		"that was scaled to it":  inference(0, minAvailable(2), wasAvailable),
		"that still has its pod": inference(0, minAvailable(1), wasAvailable),
	}
	for name, clique := range idle {
		t.Run(name, func(t *testing.T) {
			var all []Pod
			if *clique.Spec.MinAvailable == 1 {
				all = podsOfAll(1, running, terminating)
			}
			got := DecideClique(snapshotOf(clique, all), now)
			expect(t, "breach", isFalse(grovev1alpha1.ReasonSufficientReadyPods), conditionOf(got.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached))
			expect(t, "create", []int32(nil), got.Create)
			expect(t, "was available", false, got.Status.WasAvailable)
		})
	}
}

// What needs nothing has not been available by that: scaled out, it has the time that every
// new clique has, whatever it was before. Only from then on a loss is a breach.
func TestAnIdleCliqueThatIsScaledOutStartsAnew(t *testing.T) {
	never := isFalse(grovev1alpha1.ReasonNeverAvailable)
	sufficient := isFalse(grovev1alpha1.ReasonSufficientReadyPods)
	idle := map[string]struct {
		clique *grovev1alpha1.PodClique
		pods   []Pod
	}{
		"never more":             {clique: inference(2, notCreated)},
		"available":              {clique: inference(2, wasAvailable), pods: podsOfAll(2, ready)},
		"in breach":              {clique: inference(2, wasAvailable, breached(time.Hour, "x")), pods: pods(podOf(0, ready))},
		"in an update":           {clique: inference(2, wasAvailable, updating("hash", 2, -time.Minute)), pods: pods(podOf(0, ready, fromTemplate("before")))},
		"in a later attempt":     {clique: inference(2, inAttempt(1), wasAvailable), pods: podsOfAll(2, ready, ofAttempt(1))},
		"with a minimum of less": {clique: inference(2, minAvailable(1), wasAvailable), pods: podsOfAll(2, ready)},
	}
	for name, tc := range idle {
		t.Run(name, func(t *testing.T) {
			clique := tc.clique
			pass := func(what string, replicas int32, pods []Pod, want summary, was bool) {
				t.Helper()
				clique.Spec.Replicas = replicas
				got := DecideClique(snapshotOf(clique, pods), now).Status
				expect(t, "breach "+what, want, conditionOf(got.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached))
				expect(t, "was available "+what, was, got.WasAvailable)
				clique.Status = got
			}
			podOption := ofAttempt(clique.Spec.Attempt)
			pass("at size 0", 0, tc.pods, sufficient, false)
			pass("when it is scaled out", 2, podsOfAll(2, ready, terminating, podOption), never, false)
			pass("while it starts", 2, podsOfAll(2, running, podOption), never, false)
			pass("when it is Ready", 2, podsOfAll(2, ready, podOption), sufficient, true)
			pass("when its pods are lost", 2, nil, isTrue(grovev1alpha1.ReasonInsufficientReadyPods), true)
		})
	}
}

// A message names what is missing, by index, and on which node.
func TestABreachNamesItsCauses(t *testing.T) {
	on := func(node string) podOption { return func(p *Pod) { p.Node = node } }
	tests := map[string]struct {
		pods []Pod
		want string
	}{
		"not Ready":            {pods(podOf(0, running, on("n")), podOf(1, ready), podOf(2, ready), podOf(3, ready)), "pod-0 is not Ready on node n"},
		"without a node":       {pods(podOf(0), podOf(1, ready), podOf(2, ready), podOf(3, ready)), "pod-0 is not Ready"},
		"being deleted":        {pods(podOf(0, ready, terminating, on("n")), podOf(1, ready), podOf(2, ready), podOf(3, ready)), "pod-0 is being deleted on node n"},
		"not there":            {podsOfAll(3, ready), "index 3 has no pod"},
		"ended without a word": {pods(podOf(0, ready), podOf(1, ready), podOf(2, ready), podOf(3, ready, terminating, succeeded)), "pod-3 is being deleted"},
		"failed":               {pods(podOf(0, failed), podOf(1, ready), podOf(2, ready), podOf(3, ready)), "pod-0 failed (exit code 1)"},
		"more than three": {
			pods(podOf(0, failed), podOf(1, running, on("a")), podOf(2, running, terminating, on("b"))), "pod-0 failed (exit code 1); pod-1 is not Ready on node a; pod-2 is being deleted on node b; and 1 more",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := DecideClique(snapshotOf(inference(4, wasAvailable), tc.pods), now).Status
			c := meta.FindStatusCondition(got.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached)
			_, causes, _ := strings.Cut(c.Message, "at least 4 are needed: ")
			expect(t, "causes", tc.want, causes)
		})
	}
}

// What an update takes away is no breach (seed 001); what an update makes available is not
// yet what the clique was.
func TestAnUpdateSuspendsTheEvaluation(t *testing.T) {
	unknown := summary{metav1.ConditionUnknown, grovev1alpha1.ReasonUpdateInProgress}
	tests := map[string]struct {
		clique  *grovev1alpha1.PodClique
		pods    []Pod
		want    summary
		wantWas bool
	}{
		"enough are left":          {inference(2, minAvailable(1), wasAvailable), pods(podOf(0, ready)), isFalse(grovev1alpha1.ReasonSufficientReadyPods), true},
		"too few are left":         {inference(2, wasAvailable), pods(podOf(0, ready)), unknown, true},
		"too few had failed":       {training(2, failedBefore(0, 1, -time.Minute)), pods(podOf(1, ready)), unknown, false},
		"they never were enough":   {inference(2), pods(podOf(0, ready)), isFalse(grovev1alpha1.ReasonNeverAvailable), false},
		"they are the first time":  {inference(2), podsOfAll(2, ready), isFalse(grovev1alpha1.ReasonSufficientReadyPods), false},
		"a breach that was before": {inference(2, wasAvailable, breached(time.Hour, "x")), pods(podOf(0, ready)), unknown, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(tc.clique, tc.pods)
			// Another pod follows the template before, so the update has not come to its end.
			s.Pods = append(s.Pods, podOf(9, fromTemplate("before")))
			s.Clique.Status.UpdateProgress = &grovev1alpha1.PodCliqueUpdateProgress{PodTemplateHash: "hash"}
			got := DecideClique(s, now).Status
			expect(t, "breach", tc.want, conditionOf(got.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached))
			expect(t, "was available", tc.wantWas, got.WasAvailable)
		})
	}
}

func TestTheClockOfABreachRunsWhileItLasts(t *testing.T) {
	clique := inference(2, wasAvailable,
		condition(grovev1alpha1.ConditionTypeMinAvailableBreached, metav1.ConditionTrue, grovev1alpha1.ReasonInsufficientReadyPods, -time.Hour))
	tests := map[string]struct {
		pods []Pod
		want metav1.Time
	}{
		"it lasts, with other pods":     {pods(podOf(0, ready)), at(-time.Hour)},
		"it ends, and its end is noted": {podsOfAll(2, ready), at(0)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, c := range DecideClique(snapshotOf(clique, tc.pods), now).Status.Conditions {
				if c.Type == grovev1alpha1.ConditionTypeMinAvailableBreached {
					expect(t, "since", tc.want, c.LastTransitionTime)
				}
			}
		})
	}
}

func TestPodCliqueScheduled(t *testing.T) {
	yes, no := isTrue(grovev1alpha1.ReasonSufficientScheduledPods), isFalse(grovev1alpha1.ReasonInsufficientScheduledPods)
	tests := map[string]struct {
		clique  *grovev1alpha1.PodClique
		pods    []Pod
		want    summary
		message string
	}{
		"one of two":           {inference(2), pods(podOf(0, scheduled), podOf(1)), no, "1 of 2 pods have a node, at least 2 are needed"},
		"both":                 {inference(2), podsOfAll(2, scheduled), yes, "2 of 2 pods have a node, at least 2 are needed"},
		"the minimum":          {inference(2, minAvailable(1)), pods(podOf(0), podOf(1, scheduled)), yes, "1 of 2 pods have a node, at least 1 are needed"},
		"a terminating pod":    {inference(2), pods(podOf(0, scheduled), podOf(1, scheduled, terminating)), no, "1 of 2 pods have a node, at least 2 are needed"},
		"a pod that has ended": {training(2), pods(podOf(0, scheduled), podOf(1, succeeded)), yes, "2 of 2 pods have a node, at least 2 are needed"},
		"one that ended and is cleaned up": {
			training(2, completed("1")), pods(podOf(0, scheduled), podOf(1, succeeded, terminating)), yes, "2 of 2 pods have a node, at least 2 are needed",
		},
		"one that ended and was cleaned up": {
			training(2, completed("1")), pods(podOf(0, scheduled)), yes, "2 of 2 pods have a node, at least 2 are needed",
		},
		"a completed index above the size": {
			training(2, completed("7")), pods(podOf(0, scheduled)), no, "1 of 2 pods have a node, at least 2 are needed",
		},
		"an idle clique": {inference(0), nil, yes, "0 of 0 pods have a node, at least 0 are needed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clique := tc.clique.DeepCopy()
			clique.Status = DecideClique(snapshotOf(tc.clique, tc.pods), now).Status
			expect(t, "condition", tc.want, conditionOf(clique.Status.Conditions, grovev1alpha1.ConditionTypePodCliqueScheduled))
			for _, c := range clique.Status.Conditions {
				if c.Type == grovev1alpha1.ConditionTypePodCliqueScheduled {
					expect(t, "message", tc.message, c.Message)
				}
			}
			expect(t, "IsScheduled", tc.want.Status == metav1.ConditionTrue, IsScheduled(clique))
			clique.Spec.Attempt++
			expect(t, "IsScheduled of a clique that has a new attempt before it", false, IsScheduled(clique))
		})
	}
}

func TestAvailableOfAStatus(t *testing.T) {
	status := grovev1alpha1.PodCliqueStatus{ReadyReplicas: 1, CompletedIndexes: "0-1,6"}
	tests := map[string]struct {
		clique        *grovev1alpha1.PodClique
		want          int32
		wantAvailable bool
	}{
		"Training counts what has finished below the size": {training(4, minAvailable(3)), 3, true},
		"not more than that":                          {training(4, minAvailable(4)), 3, false},
		"Inference counts Ready pods alone":           {inference(4, minAvailable(1)), 1, true},
		"not what has finished":                       {inference(4, minAvailable(2)), 1, false},
		"a status of the attempt before says nothing": {training(4, minAvailable(1), attempt(1)), 3, false},
		"completed indexes that cannot be read are none": {
			training(4, minAvailable(2), completed("1-0,x")), 1, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			unreadable := tc.clique.Status.CompletedIndexes
			tc.clique.Status = *status.DeepCopy()
			if unreadable != "" {
				tc.clique.Status.CompletedIndexes = unreadable
			}
			expect(t, "Available", tc.want, Available(tc.clique))
			expect(t, "IsAvailable", tc.wantAvailable, IsAvailable(tc.clique))
		})
	}
	idle := inference(0, minAvailable(1))
	idle.Status = grovev1alpha1.PodCliqueStatus{CreatedAttempt: ptr.To[int32](0)}
	expect(t, "an idle clique is available", true, IsAvailable(idle))
}
