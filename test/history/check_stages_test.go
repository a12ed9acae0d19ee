package history

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestI12OfStages(t *testing.T) {
	t.Parallel()
	staged := func(b *builder) {
		b.set(func(s *grovev1alpha1.PodCliqueSet) {
			s.Spec.Replicas = 1
			s.Spec.StartupPolicy = &grovev1alpha1.StartupPolicy{StartupPolicyOrder: grovev1alpha1.StartupPolicyInOrder}
			s.Spec.Template.Cliques = []grovev1alpha1.PodCliqueTemplateSpec{{Name: "first"}, {Name: "worker"}}
		})
		b.clique("job-0-first", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 1 })
		b.makePod("f0", "job-0-first", 0, 0, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })
	}
	reach := func(b *builder) {
		b.clique("job-0-first", func(c *grovev1alpha1.PodClique) { c.Status.ReadyReplicas, c.Status.Replicas = 1, 1 })
	}
	open := func(b *builder, attempt int32) {
		b.set(func(s *grovev1alpha1.PodCliqueSet) {
			s.Status.ReplicaStatuses = []grovev1alpha1.PodCliqueSetReplicaStatus{{Attempt: attempt, OpenStages: []string{"first", "worker"}}}
		})
	}
	run(t, []example{
		{name: "in order", write: func(b *builder) {
			staged(b)
			reach(b)
			open(b, 0)
			b.clique("job-0-worker", func(*grovev1alpha1.PodClique) {})
			b.makePod("w0", "job-0-worker", 0, 0)
		}},
		{name: "opened before the first is ready", want: []string{"I12"}, write: func(b *builder) {
			staged(b)
			open(b, 0)
			reach(b)
		}},
		{name: "a pod before its stage is open", want: []string{"I12"}, write: func(b *builder) {
			staged(b)
			reach(b)
			b.clique("job-0-worker", func(*grovev1alpha1.PodClique) {})
			b.makePod("w0", "job-0-worker", 0, 0)
			b.fence()
			open(b, 0)
		}},
	})
}
