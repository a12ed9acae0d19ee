package history

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// failing is a job that has failed but for the last write.
func failing(b *builder) {
	b.training()
	b.podPhase("w1", corev1.PodFailed)
	b.breach("job-0-worker")
	b.fail(grovev1alpha1.ReasonMaxRestartsExceeded)
	b.going(Pod, "w0")
}

func TestI3(t *testing.T) {
	t.Parallel()
	run(t, []example{
		{name: "a failure", write: func(b *builder) {
			failing(b)
			b.gone(Pod, "w0")
			b.failed()
			b.wait(time.Minute)
		}},
		{name: "Failed while a pod is active", want: []string{"I3"}, write: func(b *builder) {
			failing(b)
			b.failed()
			b.gone(Pod, "w0")
		}},
		{name: "Failed while a pod stays active", want: []string{"I3"}, write: func(b *builder) {
			failing(b)
			b.failed()
			b.wait(time.Minute)
		}},
		{name: "Failed without FailureTarget before", want: []string{"I3"}, write: func(b *builder) {
			b.training()
			b.podPhase("w0", corev1.PodFailed)
			b.podPhase("w1", corev1.PodFailed)
			b.failed()
		}},
		{name: "a pod after the end", want: []string{"I3"}, write: func(b *builder) {
			failing(b)
			b.gone(Pod, "w0")
			b.failed()
			b.makePod("v0", "job-0-worker", 0, 0)
		}},
		{name: "back to Running", want: []string{"I3"}, write: func(b *builder) {
			failing(b)
			b.gone(Pod, "w0")
			b.failed()
			b.set(func(s *grovev1alpha1.PodCliqueSet) {
				s.Status.Phase = grovev1alpha1.PodCliqueSetRunning
				s.Status.StartTime = &metav1.Time{Time: start}
			})
		}},
		{name: "FailureTarget is taken back", want: []string{"I3"}, write: func(b *builder) {
			failing(b)
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Status.Conditions = nil })
		}},
	})
}

// success ends a job whose pods have both succeeded.
func success(b *builder) {
	b.training()
	b.podPhase("w0", corev1.PodSucceeded)
	b.podPhase("w1", corev1.PodSucceeded)
	b.cliqueSucceeds("job-0-worker")
	b.succeeded()
}

func (b *builder) cliqueSucceeds(name string) {
	b.clique(name, func(c *grovev1alpha1.PodClique) {
		c.Status.CompletedIndexes = "0-1"
		b.condition(&c.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded, true, grovev1alpha1.ReasonAllPodsSucceeded)
	})
}

func (b *builder) succeeded() {
	b.set(func(s *grovev1alpha1.PodCliqueSet) {
		s.Status.Phase = grovev1alpha1.PodCliqueSetSucceeded
		s.Status.CompletionTime = &metav1.Time{Time: b.now.Truncate(time.Second)}
		b.condition(&s.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded, true, grovev1alpha1.ReasonAllReplicasSucceeded)
	})
}

func TestI4(t *testing.T) {
	t.Parallel()
	run(t, []example{
		{name: "success", write: success},
		{name: "no pod exited with 0", want: []string{"I4"}, write: func(b *builder) {
			b.training()
			b.podPhase("w0", corev1.PodSucceeded)
			b.cliqueSucceeds("job-0-worker")
		}},
		{name: "a pod exited with 0 as it was told to go", want: []string{"I4"}, write: func(b *builder) {
			b.training()
			b.log.Deletions = []Exemption{{Pod: "w1"}}
			b.podPhase("w0", corev1.PodSucceeded)
			b.going(Pod, "w1")
			b.pod("w1", func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodSucceeded
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(b.now.Add(time.Second))}}}}
			})
			b.cliqueSucceeds("job-0-worker")
		}},
		{name: "a gap may hide that it did", write: func(b *builder) {
			b.training()
			b.podPhase("w0", corev1.PodSucceeded)
			b.log.Gaps = []Gap{{Kind: Pod, After: 5002, To: 5010}}
			b.cliqueSucceeds("job-0-worker")
		}},
		{name: "a clique succeeds with an index missing", want: []string{"I4"}, write: func(b *builder) {
			b.training()
			b.podPhase("w0", corev1.PodSucceeded)
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) {
				c.Status.CompletedIndexes = "0"
				b.condition(&c.Status.Conditions, grovev1alpha1.ConditionTypeSucceeded, true, grovev1alpha1.ReasonAllPodsSucceeded)
			})
		}},
		{name: "the set succeeds before its clique", want: []string{"I4"}, write: func(b *builder) {
			b.training()
			b.podPhase("w0", corev1.PodSucceeded)
			b.podPhase("w1", corev1.PodSucceeded)
			b.succeeded()
			b.cliqueSucceeds("job-0-worker")
		}},
		{name: "a clique that was never made", want: []string{"I4"}, write: func(b *builder) {
			b.training()
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Spec.Replicas = 2 })
			// It had two replicas from the beginning.
			b.log.Revisions = b.log.Revisions[1:]
			b.podPhase("w0", corev1.PodSucceeded)
			b.podPhase("w1", corev1.PodSucceeded)
			b.cliqueSucceeds("job-0-worker")
			b.succeeded()
		}},
		{name: "completed indexes are taken back", want: []string{"I4"}, write: func(b *builder) {
			b.training()
			b.podPhase("w0", corev1.PodSucceeded)
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Status.CompletedIndexes = "0" })
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Status.CompletedIndexes = "" })
		}},
	})
}

func TestI5(t *testing.T) {
	t.Parallel()
	running := func(b *builder, at *metav1.Time) {
		b.set(func(s *grovev1alpha1.PodCliqueSet) {
			s.Status.Phase = grovev1alpha1.PodCliqueSetRunning
			s.Status.StartTime = at
		})
	}
	run(t, []example{
		{name: "set once", write: func(b *builder) {
			b.training()
			running(b, &metav1.Time{Time: start})
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Status.Phase = grovev1alpha1.PodCliqueSetPending })
		}},
		{name: "Running without it", want: []string{"I5"}, write: func(b *builder) {
			b.training()
			running(b, nil)
		}},
		{name: "it changes", want: []string{"I5"}, write: func(b *builder) {
			b.training()
			running(b, &metav1.Time{Time: start})
			running(b, &metav1.Time{Time: start.Add(time.Second)})
		}},
		{name: "before Running", want: []string{"I5"}, write: func(b *builder) {
			b.training()
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Status.StartTime = &metav1.Time{Time: start} })
		}},
	})
}

func TestI6(t *testing.T) {
	t.Parallel()
	// The set starts at the first second and may run for ten.
	runs := func(b *builder) {
		b.training()
		b.set(func(s *grovev1alpha1.PodCliqueSet) {
			s.Spec.TrainingSpec = &grovev1alpha1.TrainingSpec{MaxRuntime: &metav1.Duration{Duration: 10 * time.Second}, MaxRestarts: ptr.To[int32](0)}
			s.Status.Phase = grovev1alpha1.PodCliqueSetRunning
			s.Status.StartTime = &metav1.Time{Time: start}
		})
	}
	exceeded := func(after time.Duration) func(*builder) {
		return func(b *builder) {
			runs(b)
			b.now = start.Add(after)
			b.fail(grovev1alpha1.ReasonMaxRuntimeExceeded)
		}
	}
	run(t, []example{
		{name: "in time", write: exceeded(11 * time.Second)},
		{name: "a bit late", write: exceeded(13 * time.Second)},
		{name: "in the second that rounding hides", want: []string{"I6"}, write: exceeded(10500 * time.Millisecond)},
		{name: "early", want: []string{"I6"}, write: exceeded(9 * time.Second)},
		{name: "late", want: []string{"I6"}, write: exceeded(14 * time.Second)},
		{name: "late as the controllers were down", write: func(b *builder) {
			b.log.AllowLate = true
			exceeded(14 * time.Second)(b)
		}},
		{name: "never", want: []string{"I6"}, write: func(b *builder) {
			runs(b)
			b.wait(time.Minute)
		}},
		{name: "of a set that has none", want: []string{"I6"}, write: func(b *builder) {
			b.training()
			b.fail(grovev1alpha1.ReasonMaxRuntimeExceeded)
		}},
	})
}
