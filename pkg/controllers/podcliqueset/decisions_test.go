package podcliqueset

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
)

// memberPod is a pod of the clique with the labels that the controller writes.
func memberPod(index int32, change func(*corev1.Pod)) client.Object {
	return newPod(naming.Pod("llm-0-worker", "clique", index, 0), corev1.PodRunning, func(p *corev1.Pod) {
		p.Labels[labels.PodClique], p.Labels[labels.PodIndex], p.Labels[labels.RestartAttempt] = "llm-0-worker", labels.Index(index), "0"
		if change != nil {
			change(p)
		}
	})
}

func podReady(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

// podFinished is a pod that exited with 0 a while ago.
func podFinished(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodSucceeded
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(now.Add(-ago))}}}}
	}
}

// restartable is a set that runs and has a restart left.
func restartable(change func(*grovev1alpha1.PodCliqueSet)) *grovev1alpha1.PodCliqueSet {
	return newSet(func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.TrainingSpec = &grovev1alpha1.TrainingSpec{MaxRestarts: ptr.To[int32](1)}
		pcs.Status.Phase, pcs.Status.StartTime = grovev1alpha1.PodCliqueSetRunning, ptr.To(metav1.NewTime(now.Add(-time.Hour)))
		if change != nil {
			change(pcs)
		}
	})
}

// unready is a clique that was available and is not any more, by no failure of its pods.
func unready(lasted time.Duration) func(*grovev1alpha1.PodClique) {
	return func(c *grovev1alpha1.PodClique) {
		c.Status.WasAvailable, c.Status.RunningReplicas = true, 2
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
			Type: grovev1alpha1.ConditionTypeMinAvailableBreached, Status: metav1.ConditionTrue, Reason: grovev1alpha1.ReasonInsufficientReadyPods,
			Message: "not Ready", LastTransitionTime: metav1.NewTime(now.Add(-lasted)),
		})
	}
}

// An attempt ends after a live look at the breach; when that is over, nothing is written.
func TestARestartIsConfirmedBeforeItIsRecorded(t *testing.T) {
	const running = grovev1alpha1.PodCliqueSetRunning
	wrote := []string{"status llm, 0 events"}
	delay := func(pcs *grovev1alpha1.PodCliqueSet) {
		pcs.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Minute}
	}
	restarted := outcome{
		Phase: grovev1alpha1.PodCliqueSetPending, Restarts: 1, Writes: wrote, Events: []string{"Normal ReplicaRestarting replica 0, restart 1 of 1: llm-0-worker: not Ready"},
	}
	kept := outcome{Phase: running}
	tests := map[string]struct {
		run  run
		want outcome
	}{
		"a pod is not Ready": {
			run{objects: []client.Object{restartable(nil), newClique(unready(0))}, live: []client.Object{newClique(unready(0)), memberPod(0, nil), memberPod(1, podReady)}}, restarted,
		},
		"all are, though no cache shows it": {
			run{objects: []client.Object{restartable(nil), newClique(unready(0))}, live: []client.Object{newClique(unready(0)), memberPod(0, podReady), memberPod(1, podReady)}}, kept,
		},
		"the clique says that it is over": {
			run{objects: []client.Object{restartable(nil), newClique(unready(0))}, live: []client.Object{newClique(nil), memberPod(0, nil)}}, kept,
		},
		"the clique has begun another attempt": {
			run{
				objects: []client.Object{restartable(nil), newClique(unready(0))},
				live: []client.Object{newClique(func(c *grovev1alpha1.PodClique) {
					unready(0)(c)
					c.Spec.Attempt, c.Status.ObservedAttempt = 1, 1
				}), memberPod(0, nil)},
			}, kept,
		},
		"nor is FailureTarget recorded": {
			run{
				objects: []client.Object{restartable(func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Spec.TrainingSpec = nil }), newClique(unready(0))},
				live:    []client.Object{newClique(unready(0)), memberPod(0, podReady), memberPod(1, podReady)},
			}, kept,
		},
		"no event tells of a restart that was refused": {
			run{
				objects: []client.Object{restartable(nil), newClique(unready(0))}, live: []client.Object{newClique(unready(0)), memberPod(0, nil)}, refuse: errors.New("boom"),
			},
			outcome{Phase: running, Writes: wrote, Err: "write the status: boom"},
		},
		// What else there is to tell is written, and the deadline is awaited to the second.
		"not due": {
			run{objects: []client.Object{restartable(delay), newClique(unready(15 * time.Second))}}, outcome{Phase: running, Writes: wrote, Requeue: 46 * time.Second},
		},
		"due": {
			run{objects: []client.Object{restartable(delay), newClique(unready(61 * time.Second))}, live: []client.Object{newClique(unready(61 * time.Second))}},
			outcome{Phase: grovev1alpha1.PodCliqueSetPending, Restarts: 1, Writes: wrote, Events: []string{"Normal ReplicaRestarting replica 0, restart 1 of 1: llm-0-worker: not Ready, for 1m1s"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, "outcome", tc.want, tc.run.do(t, nil)) })
	}
	t.Run("a live read that fails", func(t *testing.T) {
		r := run{objects: []client.Object{restartable(nil), newClique(unready(0))}}
		got := r.do(t, func(r *Reconciler) {
			r.Live = interceptor.NewClient(build(t, nil), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return errors.New("boom")
			}})
		})
		expect(t, "outcome", outcome{Phase: running, Err: "read clique llm-0-worker live: boom"}, got)
	})
	t.Run("nothing has changed, and the deadline is awaited", func(t *testing.T) {
		r := run{objects: []client.Object{restartable(delay), newClique(unready(15 * time.Second))}}
		cache := build(t, r.objects)
		status := settled(t, cache)
		r.objects[0] = restartable(func(pcs *grovev1alpha1.PodCliqueSet) {
			delay(pcs)
			pcs.Status = status
		})
		expect(t, "outcome", outcome{Phase: running, Requeue: 46 * time.Second}, r.do(t, nil))
	})
}

// At the end of maxRuntime a live list says which pods had finished before it.
func TestAtTheEndOfItsRuntimeTheSetIsLookedAt(t *testing.T) {
	limited := func(limit time.Duration, change func(*grovev1alpha1.PodCliqueSet)) *grovev1alpha1.PodCliqueSet {
		return restartable(func(pcs *grovev1alpha1.PodCliqueSet) {
			pcs.Spec.TrainingSpec.MaxRuntime = &metav1.Duration{Duration: limit}
			if change != nil {
				change(pcs)
			}
		})
	}
	runs := func(c *grovev1alpha1.PodClique) { c.Status.RunningReplicas = 2 }
	done := func(c *grovev1alpha1.PodClique) {
		c.Status.CompletedIndexes = "0-1"
		c.Status.Conditions = []metav1.Condition{{Type: grovev1alpha1.ConditionTypeSucceeded, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.NewTime(now)}}
	}
	wrote := []string{"status llm, 0 events"}
	// The deadline of 50 min was 10 min less 1 s ago.
	const limit = 50 * time.Minute
	tooLong := []string{"Warning MaxRuntimeExceeded the workload has run for longer than maxRuntime, 50m0s, since 2026-03-01T11:00:00Z: all active pods are terminated"}
	finishedLive := func(ago time.Duration) []client.Object {
		return []client.Object{newClique(done), memberPod(0, podFinished(ago)), memberPod(1, podFinished(time.Hour))}
	}
	tests := map[string]struct {
		run   run
		lists int
		want  outcome
	}{
		"it is not over": {
			run{objects: []client.Object{limited(2*time.Hour, nil), newClique(runs)}}, 0, outcome{Phase: grovev1alpha1.PodCliqueSetRunning, Writes: wrote, Requeue: time.Hour + time.Second},
		},
		"it is over while pods run": {
			run{objects: []client.Object{limited(limit, nil), newClique(runs), memberPod(0, nil)}}, 2, outcome{Phase: grovev1alpha1.PodCliqueSetRunning, Writes: wrote, Events: tooLong},
		},
		"all had finished in time, and the cache shows it": {
			run{objects: []client.Object{limited(limit, nil), newClique(done)}, live: finishedLive(11 * time.Minute)}, 2,
			outcome{Phase: grovev1alpha1.PodCliqueSetSucceeded, Writes: wrote, Events: []string{"Normal WorkloadSucceeded every pod exited with 0, 2 in all"}},
		},
		"all had finished in time, and the cache does not show it yet": {
			run{objects: []client.Object{limited(limit, nil), newClique(runs)}, live: finishedLive(11 * time.Minute)}, 2, outcome{Phase: grovev1alpha1.PodCliqueSetRunning, Writes: wrote},
		},
		"all had finished in time, and the cache shows their clique in the attempt before": {
			run{
				objects: []client.Object{limited(limit, func(pcs *grovev1alpha1.PodCliqueSet) {
					pcs.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Index: 0, Attempt: 1}}
					pcs.Status.RestartCount = 1
				}), newClique(runs)},
				live: []client.Object{
					newClique(func(c *grovev1alpha1.PodClique) {
						done(c)
						c.Spec.Attempt, c.Status.ObservedAttempt = 1, 1
						c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-11 * time.Minute))
					}),
				},
			}, 2, outcome{Phase: grovev1alpha1.PodCliqueSetPending, Restarts: 1, Writes: wrote},
		},
		"one finished too late": {
			run{objects: []client.Object{limited(limit, nil), newClique(done)}, live: finishedLive(9 * time.Minute)}, 2, outcome{Phase: grovev1alpha1.PodCliqueSetPending, Writes: wrote, Events: tooLong},
		},
		"nobody looks who finished once it fails": {
			run{objects: []client.Object{limited(limit, failing), newClique(runs), memberPod(0, nil)}}, 0, outcome{Phase: grovev1alpha1.PodCliqueSetRunning, Writes: wrote},
		},
		"nor once it is over": {
			run{objects: []client.Object{limited(limit, func(pcs *grovev1alpha1.PodCliqueSet) { pcs.Status.Phase = grovev1alpha1.PodCliqueSetSucceeded }), newClique(runs)}}, 0,
			outcome{Phase: grovev1alpha1.PodCliqueSetSucceeded, Writes: wrote},
		},
		"a pod that cannot be told from others has finished nothing": {
			run{objects: []client.Object{limited(limit, nil), newClique(done)}, live: append(finishedLive(11 * time.Minute)[:2:2], memberPod(1, func(p *corev1.Pod) {
				podFinished(11 * time.Minute)(p)
				p.Labels[labels.PodIndex] = "x"
			}))}, 2, outcome{Phase: grovev1alpha1.PodCliqueSetPending, Writes: wrote, Events: tooLong},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lists := 0
			objects := tc.run.live
			if objects == nil {
				objects = tc.run.objects
			}
			got := tc.run.do(t, func(r *Reconciler) {
				r.Live = interceptor.NewClient(build(t, objects), interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					lists++
					return w.List(ctx, list, opts...)
				}})
			})
			expect(t, "outcome", tc.want, got)
			expect(t, "live lists", tc.lists, lists)
		})
	}
}
