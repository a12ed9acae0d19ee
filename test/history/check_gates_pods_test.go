package history

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
)

func TestI12OfBarriers(t *testing.T) {
	t.Parallel()
	run(t, []example{
		{name: "together", write: func(b *builder) {
			b.gated(withBarrier)
			b.atBarrier(0, "l", "w0", "w1")
			b.comes("l", "w0", "w1")
			b.opens(0, leader, worker)
			b.starts("l", "w0", "w1")
			// What is open stays open for the one that replaces another.
			b.log.Deletions = []Exemption{{Pod: "w0"}}
			b.gone(Pod, "w0")
			b.makePod("w2", "job-0-worker", 0, 0, waits(naming.BarrierContainer))
			b.comes("w2")
			b.starts("w2")
		}},
		{name: "one has not come", want: []string{"I12", "I12"}, write: func(b *builder) {
			b.gated(withBarrier)
			b.atBarrier(0, "l", "w0", "w1")
			b.comes("l", "w0")
			b.opens(0, leader, worker)
			b.comes("w1")
		}},
		{name: "one does not exist", want: []string{"I12", "I12"}, write: func(b *builder) {
			b.gated(withBarrier)
			b.makePod("l", "job-0-leader", 0, 0, waits(naming.BarrierContainer))
			b.makePod("w0", "job-0-worker", 0, 0, waits(naming.BarrierContainer))
			b.comes("l", "w0")
			b.opens(0, leader, worker)
		}},
		{name: "never all at once", want: []string{"I12", "I12"}, write: func(b *builder) {
			b.gated(withBarrier)
			b.atBarrier(0, "l", "w0", "w1")
			b.comes("l", "w0")
			b.pod("w0", func(p *corev1.Pod) { p.Status.Phase, p.Status.InitContainerStatuses = corev1.PodFailed, nil })
			b.comes("w1")
			b.opens(0, leader, worker)
		}},
		{name: "a clique is missing", want: []string{"I12"}, write: func(b *builder) {
			b.gated(withBarrier)
			b.atBarrier(0, "l", "w0", "w1")
			b.comes("l")
			b.opens(0, leader)
		}},
		{name: "who is no target is not waited for", write: func(b *builder) {
			b.gated(func(s *grovev1alpha1.PodCliqueSet) {
				s.Spec.GroupSchedulingConfig = &grovev1alpha1.GroupSchedulingConfig{TargetCliques: []string{"worker"}}
			})
			b.makePod("w0", "job-0-worker", 0, 0, waits(naming.BarrierContainer))
			b.makePod("w1", "job-0-worker", 1, 0, waits(naming.BarrierContainer))
			b.comes("w0", "w1")
			b.opens(0, worker)
		}},
		{name: "pods of an earlier attempt count", want: []string{"I12", "I12"}, write: func(b *builder) {
			b.gated(withBarrier)
			b.atBarrier(0, "l", "w0", "w1")
			b.comes("l", "w0", "w1")
			b.restarted("l", "w0", "w1")
			b.opens(1, leader, worker)
		}},
		{name: "again in the next attempt", write: func(b *builder) {
			b.gated(withBarrier)
			b.atBarrier(0, "l", "w0", "w1")
			b.comes("l", "w0", "w1")
			b.opens(0, leader, worker)
			b.restarted("l", "w0", "w1")
			b.atBarrier(1, "l1", "w10", "w11")
			b.comes("l1", "w10", "w11")
			b.opens(1, leader, worker)
			b.starts("l1", "w10", "w11")
		}},
	})
}

func TestI12OfCopiesAtBarriers(t *testing.T) {
	t.Parallel()
	const base, scaled = "job-0-group-0-worker", "job-0-group-1-worker"
	copies := func(b *builder) {
		b.set(func(s *grovev1alpha1.PodCliqueSet) {
			s.Spec.Replicas = 1
			withBarrier(s)
			s.Spec.Template.Cliques = []grovev1alpha1.PodCliqueTemplateSpec{{Name: "leader", Spec: grovev1alpha1.PodCliqueSpec{Replicas: 1}}, {Name: "worker", Spec: grovev1alpha1.PodCliqueSpec{Replicas: 1}}}
			s.Spec.Template.PodCliqueScalingGroups = []grovev1alpha1.PodCliqueScalingGroupConfig{{Name: "group", CliqueNames: []string{"worker"}, MinAvailable: ptr.To[int32](1)}}
		})
		b.group(func(g *grovev1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 2 })
		b.clique("job-0-leader", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 1 })
		b.copy(base, "0")
		b.copy(scaled, "1")
		b.gate(func(*grovev1alpha1.StartGate) {})
		b.makePod("l", "job-0-leader", 0, 0, waits(naming.BarrierContainer))
		b.makePod("b", base, 0, 0, waits(naming.BarrierContainer))
		b.makePod("s", scaled, 0, 0, waits(naming.BarrierContainer))
	}
	again := func(b *builder) {
		copies(b)
		b.comes("s")
		b.opens(0, scaled)
		b.starts("s")
		b.group(func(g *grovev1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 1 })
		b.going(Clique, scaled)
		b.gone(Pod, "s")
		b.gone(Clique, scaled)
		b.group(func(g *grovev1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 2 })
		b.copy(scaled, "1")
		b.wait(createWindow)
		b.makePod("s2", scaled, 0, 0, waits(naming.BarrierContainer))
	}
	run(t, []example{
		{name: "each gang for itself", write: func(b *builder) {
			copies(b)
			b.comes("s")
			b.opens(0, scaled)
			b.starts("s")
			b.comes("l", "b")
			b.opens(0, scaled, leader, base)
			b.starts("l", "b")
		}},
		{name: "the base gang by the scaled one", want: []string{"I12", "I12"}, write: func(b *builder) {
			copies(b)
			b.comes("l", "s")
			b.opens(0, leader, base)
		}},
		{name: "a copy that has been scaled away starts again when it has come", write: func(b *builder) {
			again(b)
			b.comes("s2")
			b.starts("s2")
		}},
		{name: "a copy that was deleted, not scaled away, is replaced", write: func(b *builder) {
			copies(b)
			b.comes("s")
			b.opens(0, scaled)
			b.starts("s")
			b.log.Deletions = []Exemption{{Pod: scaled}}
			b.going(Clique, scaled)
			b.gone(Pod, "s")
			b.gone(Clique, scaled)
			b.copy(scaled, "1")
			b.makePod("s2", scaled, 0, 0, waits(naming.BarrierContainer))
			b.starts("s2")
		}},
		{name: "a copy starts by the gate of the one that was scaled away", want: []string{"I12"}, write: func(b *builder) {
			again(b)
			b.starts("s2")
		}},
	})
}
