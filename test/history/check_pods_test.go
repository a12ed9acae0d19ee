package history

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

func TestI9(t *testing.T) {
	t.Parallel()
	run(t, []example{
		{name: "two pods of an index", want: []string{"I9"}, write: func(b *builder) {
			b.inference()
			b.makePod("other", "job-0-worker", 1, 0)
		}},
		{name: "one after the other", write: func(b *builder) {
			b.inference()
			b.log.Deletions = []Exemption{{Pod: "w1"}}
			b.going(Pod, "w1")
			b.gone(Pod, "w1")
			b.makePod("other", "job-0-worker", 1, 0)
		}},
		{name: "one is still terminating", want: []string{"I9"}, write: func(b *builder) {
			b.inference()
			b.log.Deletions = []Exemption{{Pod: "w1"}}
			b.going(Pod, "w1")
			b.makePod("other", "job-0-worker", 1, 0)
		}},
		{name: "beyond the size", want: []string{"I9"}, write: func(b *builder) {
			b.inference()
			b.makePod("w2", "job-0-worker", 2, 0)
		}},
		{name: "while it is scaled in", write: func(b *builder) {
			b.inference()
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 3 })
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 2 })
			b.makePod("w2", "job-0-worker", 2, 0)
			b.going(Pod, "w2")
		}},
		{name: "long after it was scaled in", want: []string{"I9"}, write: func(b *builder) {
			b.inference()
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 3 })
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 2 })
			b.wait(time.Minute)
			b.makePod("w2", "job-0-worker", 2, 0)
		}},
	})
}

func TestI11(t *testing.T) {
	t.Parallel()
	// The breached replica has two cliques, of which the other one still has a pod.
	two := func(b *builder) {
		b.training()
		b.clique("job-0-other", func(*grovev1alpha1.PodClique) {})
		b.makePod("o0", "job-0-other", 0, 0)
		b.podPhase("w0", corev1.PodFailed)
		b.podPhase("w1", corev1.PodFailed)
		b.breach("job-0-worker")
		b.restart(1)
		b.raise("job-0-worker", 1)
		b.raise("job-0-other", 1)
		b.going(Pod, "o0")
	}
	run(t, []example{
		{name: "the old pod of another clique is there", want: []string{"I11"}, write: func(b *builder) {
			two(b)
			b.makePod("v0", "job-0-worker", 0, 1)
		}},
		{name: "the old pod of another clique is gone", write: func(b *builder) {
			two(b)
			b.gone(Pod, "o0")
			b.makePod("v0", "job-0-worker", 0, 1)
		}},
		{name: "the old pod of another clique has ended", write: func(b *builder) {
			two(b)
			b.podPhase("o0", corev1.PodFailed)
			b.makePod("v0", "job-0-worker", 0, 1)
		}},
		{name: "another replica is not restarted", write: func(b *builder) {
			b.training()
			b.clique("job-1-worker", func(*grovev1alpha1.PodClique) {})
			b.makePod("x0", "job-1-worker", 0, 0)
			b.podPhase("w0", corev1.PodFailed)
			b.podPhase("w1", corev1.PodFailed)
			b.breach("job-0-worker")
			b.restart(1)
			b.raise("job-0-worker", 1)
			b.makePod("v0", "job-0-worker", 0, 1)
		}},
		{name: "a copy is recycled beside a standalone clique", write: func(b *builder) {
			grouped(b)
			b.clique("job-0-router", func(*grovev1alpha1.PodClique) {})
			b.makePod("r0", "job-0-router", 0, 0)
			b.breach("job-0-group-0-member")
			b.wait(7 * time.Second)
			b.recycle()
			b.raise("job-0-group-0-member", 1)
			b.going(Pod, "m0")
			b.gone(Pod, "m0")
			b.makePod("n0", "job-0-group-0-member", 0, 1)
		}},
		{name: "a copy is recycled beside its old pod", want: []string{"I11"}, write: func(b *builder) {
			grouped(b)
			b.breach("job-0-group-0-member")
			b.wait(7 * time.Second)
			b.recycle()
			b.raise("job-0-group-0-member", 1)
			b.going(Pod, "m0")
			b.makePod("n1", "job-0-group-0-member", 1, 1)
		}},
	})
}

func TestI12(t *testing.T) {
	t.Parallel()
	member := func(p *corev1.Pod) {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("gang")}
	}
	bind := func(p *corev1.Pod) { p.Spec.NodeName = "node" }
	gang := func(b *builder) {
		b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Spec.Replicas = 1 })
		b.clique("job-0-worker", func(*grovev1alpha1.PodClique) {})
		b.native("gang", 2)
		b.makePod("w0", "job-0-worker", 0, 0, member)
	}
	scaled := func(p *corev1.Pod) { p.Labels[labels.BasePodGang] = "job-0" }
	run(t, []example{
		{name: "all pods of the gang exist", write: func(b *builder) {
			gang(b)
			b.makePod("w1", "job-0-worker", 1, 0, member)
			b.pod("w0", bind)
		}},
		{name: "one is missing", want: []string{"I12"}, write: func(b *builder) {
			gang(b)
			b.pod("w0", bind)
		}},
		{name: "the group is missing", want: []string{"I12"}, write: func(b *builder) {
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Spec.Replicas = 1 })
			b.clique("job-0-worker", func(*grovev1alpha1.PodClique) {})
			b.makePod("w0", "job-0-worker", 0, 0, member)
			b.pod("w0", bind)
			b.native("gang", 1)
		}},
		{name: "the group is made again later", write: func(b *builder) {
			gang(b)
			b.makePod("w1", "job-0-worker", 1, 0, member)
			b.pod("w0", bind)
			b.gone(NativeGroup, "gang")
			b.native("gang", 2)
		}},
		{name: "the minimum was lowered", write: func(b *builder) {
			gang(b)
			b.native("gang", 1)
			b.pod("w0", bind)
		}},
		{name: "a scaled gang before the base gang", want: []string{"I12"}, write: func(b *builder) {
			b.inference()
			b.gang("job-0", func(*schedulerv1alpha1.PodGang) {})
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 3 })
			b.makePod("w2", "job-0-worker", 2, 0, scaled)
		}},
		{name: "a scaled gang after the base gang", write: func(b *builder) {
			b.inference()
			b.gang("job-0", func(g *schedulerv1alpha1.PodGang) {
				b.condition(&g.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled, true, "")
			})
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 3 })
			b.makePod("w2", "job-0-worker", 2, 0, scaled)
		}},
	})
}
