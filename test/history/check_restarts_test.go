package history

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

// restarted is a restart as it has to be.
func restarted(b *builder) {
	b.training()
	b.podPhase("w1", corev1.PodFailed)
	b.breach("job-0-worker")
	b.restart(1)
	b.raise("job-0-worker", 1)
	b.going(Pod, "w0")
	b.gone(Pod, "w1")
	b.gone(Pod, "w0")
	b.makePod("v0", "job-0-worker", 0, 1)
	b.makePod("v1", "job-0-worker", 1, 1)
}

func TestI1(t *testing.T) {
	t.Parallel()
	run(t, []example{
		{name: "a restart", write: restarted},
		// It differs from the sum, too.
		{name: "the count falls", want: []string{"I1", "I1"}, write: func(b *builder) {
			restarted(b)
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Status.RestartCount = 0 })
		}},
		{name: "an attempt falls", want: []string{"I1", "I1"}, write: func(b *builder) {
			restarted(b)
			b.restart(0)
		}},
		{name: "an attempt of a copy falls", want: []string{"I1"}, write: func(b *builder) {
			recycled(b)
			b.group(func(g *grovev1alpha1.PodCliqueScalingGroup) { g.Status.ReplicaAttempts = nil })
		}},
		{name: "two attempts in one write", want: []string{"I1"}, write: func(b *builder) {
			b.training()
			b.breach("job-0-worker")
			b.restart(2)
		}},
		{name: "beyond the budget", want: []string{"I1"}, write: func(b *builder) {
			restarted(b)
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Spec.TrainingSpec.MaxRestarts = ptr.To[int32](1) })
			b.breach("job-0-worker")
			b.restart(2)
		}},
		{name: "the budget is lowered after the restart", write: func(b *builder) {
			restarted(b)
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Spec.TrainingSpec.MaxRestarts = nil })
		}},
		{name: "a restart of a set that fails", want: []string{"I1"}, write: func(b *builder) {
			b.training()
			b.breach("job-0-worker")
			b.fail(grovev1alpha1.ReasonMaxRestartsExceeded)
			b.restart(1)
		}},
		{name: "a count in Inference", want: []string{"I1"}, write: func(b *builder) {
			b.inference()
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Status.RestartCount = 1 })
		}},
	})
}

func TestI2(t *testing.T) {
	t.Parallel()
	run(t, []example{
		{name: "the spec before the record", want: []string{"I2"}, write: func(b *builder) {
			b.training()
			b.breach("job-0-worker")
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Attempt = 1 })
			b.restart(1)
		}},
		{name: "the status before the spec", want: []string{"I2"}, write: func(b *builder) {
			b.training()
			b.breach("job-0-worker")
			b.restart(1)
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Status = grovev1alpha1.PodCliqueStatus{ObservedAttempt: 1} })
		}},
		{name: "a deletion before the record", want: []string{"I2"}, write: func(b *builder) {
			b.training()
			b.going(Pod, "w0")
			b.breach("job-0-worker")
			b.restart(1)
			b.raise("job-0-worker", 1)
		}},
		{name: "a new pod before the record", want: []string{"I2"}, write: func(b *builder) {
			b.training()
			b.breach("job-0-worker")
			b.restart(1)
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Attempt = 1 })
			b.podPhase("w0", corev1.PodFailed)
			b.podPhase("w1", corev1.PodFailed)
			b.makePod("v0", "job-0-worker", 0, 1)
		}},
		{name: "a deletion before FailureTarget", want: []string{"I2"}, write: func(b *builder) {
			b.training()
			b.going(Pod, "w0")
			b.breach("job-0-worker")
			b.fail(grovev1alpha1.ReasonMaxRestartsExceeded)
		}},
		{name: "a record that only arrives late", write: func(b *builder) {
			b.training()
			b.breach("job-0-worker")
			// No fence was set between the deletion and its reason.
			b.loose = true
			b.going(Pod, "w0")
			b.restart(1)
			b.raise("job-0-worker", 1)
			b.fence()
		}},
	})
}
