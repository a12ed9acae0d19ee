package history

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestI7(t *testing.T) {
	t.Parallel()
	neverAvailable := func(reason string) func(*builder) {
		return func(b *builder) {
			b.training()
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) {
				b.condition(&c.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached, true, reason)
			})
		}
	}
	run(t, []example{
		{name: "a breach after it was available", write: func(b *builder) {
			b.training()
			b.breach("job-0-worker")
		}},
		{name: "a breach before", want: []string{"I7"}, write: neverAvailable(grovev1alpha1.ReasonInsufficientReadyPods)},
		{name: "a breach by pods that failed", write: neverAvailable(grovev1alpha1.ReasonPodsFailed)},
		{name: "wasAvailable is taken back", want: []string{"I7"}, write: func(b *builder) {
			b.training()
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Status.WasAvailable = true })
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Status.WasAvailable = false })
		}},
		{name: "wasAvailable starts anew with an attempt", write: restarted},
		{name: "wasAvailable ends when nothing is needed", write: func(b *builder) {
			b.inference()
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Status.WasAvailable = true })
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 0 })
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Status.WasAvailable = false })
		}},
		{name: "wasAvailable is taken back when something is needed again", want: []string{"I7"}, write: func(b *builder) {
			b.inference()
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Status.WasAvailable = true })
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 0 })
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 1 })
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Status.WasAvailable = false })
		}},
	})
}

// delayed is a training job with a delay of ten seconds that goes into breach at a whole second.
func delayed(b *builder) {
	b.training()
	b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Spec.Template.TerminationDelay.Duration = 10 * time.Second })
	b.now = start.Add(time.Second)
	b.breach("job-0-worker")
}

// grouped is an inference set with a scaling group of one copy with one clique.
func grouped(b *builder) {
	b.set(func(s *grovev1alpha1.PodCliqueSet) {
		s.Spec.WorkloadType = grovev1alpha1.WorkloadTypeInference
		s.Spec.Replicas = 1
		s.Spec.Template.TerminationDelay = &metav1.Duration{Duration: 10 * time.Second}
		s.Spec.Template.PodCliqueScalingGroups = []grovev1alpha1.PodCliqueScalingGroupConfig{{
			Name: "group", CliqueNames: []string{"member"}, TerminationDelay: &metav1.Duration{Duration: 5 * time.Second},
		}}
	})
	b.group(func(g *grovev1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 1 })
	b.member("job-0-group-0-member", func(*grovev1alpha1.PodClique) {})
	b.makePod("m0", "job-0-group-0-member", 0, 0)
}

func (b *builder) recycle() {
	b.group(func(g *grovev1alpha1.PodCliqueScalingGroup) {
		g.Status.ReplicaAttempts = []grovev1alpha1.ScalingGroupReplicaAttempt{{Index: 0, Attempt: 1}}
	})
}

// recycled is a recycling as it has to be: by the group's own delay.
func recycled(b *builder) {
	grouped(b)
	b.breach("job-0-group-0-member")
	b.wait(7 * time.Second)
	b.recycle()
	b.raise("job-0-group-0-member", 1)
	b.going(Pod, "m0")
	b.gone(Pod, "m0")
	b.makePod("n0", "job-0-group-0-member", 0, 1)
}

func TestI8(t *testing.T) {
	t.Parallel()
	run(t, []example{
		{name: "after the delay", write: func(b *builder) {
			delayed(b)
			b.wait(11 * time.Second)
			b.restart(1)
		}},
		{name: "in the second that rounding hides", want: []string{"I8"}, write: func(b *builder) {
			delayed(b)
			b.wait(10500 * time.Millisecond)
			b.restart(1)
		}},
		{name: "FailureTarget before the delay", want: []string{"I8"}, write: func(b *builder) {
			delayed(b)
			b.fail(grovev1alpha1.ReasonMaxRestartsExceeded)
		}},
		{name: "the breach was over", want: []string{"I8"}, write: func(b *builder) {
			delayed(b)
			b.wait(5 * time.Second)
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) {
				b.condition(&c.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached, false, grovev1alpha1.ReasonSufficientReadyPods)
			})
			b.wait(10 * time.Second)
			b.restart(1)
		}},
		{name: "the breach ended as the decision was written", write: func(b *builder) {
			delayed(b)
			b.wait(11 * time.Second)
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) {
				b.condition(&c.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached, false, grovev1alpha1.ReasonSufficientReadyPods)
			})
			b.restart(1)
		}},
		{name: "no breach", want: []string{"I8"}, write: func(b *builder) {
			b.training()
			b.restart(1)
		}},
		{name: "the breach of another replica", want: []string{"I8"}, write: func(b *builder) {
			b.training()
			b.clique("job-1-worker", func(*grovev1alpha1.PodClique) {})
			b.breach("job-1-worker")
			b.restart(1)
		}},
		{name: "termination is off", want: []string{"I8"}, write: func(b *builder) {
			b.inference()
			b.breach("job-0-worker")
			b.wait(time.Hour)
			b.set(func(s *grovev1alpha1.PodCliqueSet) {
				s.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Attempt: 1}}
			})
		}},
		{name: "the sixth failure of an index", write: func(b *builder) {
			delayed(b)
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) {
				c.Status.FailedIndexes = []grovev1alpha1.FailedIndex{{Index: 1, Count: 6}}
			})
			b.restart(1)
		}},
		{name: "an expired barrier", write: func(b *builder) {
			delayed(b)
			b.gate(func(g *grovev1alpha1.StartGate) {
				g.Status.Cliques = []grovev1alpha1.StartGateClique{{Name: "job-0-worker", Expired: true}}
			})
			b.restart(1)
		}},
		{name: "a copy after its group's delay", write: recycled},
		{name: "a copy before its group's delay", want: []string{"I8"}, write: func(b *builder) {
			grouped(b)
			b.breach("job-0-group-0-member")
			b.wait(4 * time.Second)
			b.recycle()
		}},
		{name: "a gap hides the breach", write: func(b *builder) {
			b.training()
			b.log.Gaps = []Gap{{Kind: Clique, After: 102, To: 110}}
			b.restart(1)
		}},
	})
}
