package history

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
)

func TestI18(t *testing.T) {
	t.Parallel()
	deletes := func(prepare func(*builder)) func(*builder) {
		return func(b *builder) {
			b.inference()
			prepare(b)
			b.going(Pod, "w1")
			b.gone(Pod, "w1")
		}
	}
	recordFailure := func(b *builder) {
		b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) {
			c.Status.FailedIndexes = []grovev1alpha1.FailedIndex{{Index: 1, Count: 1, PodUID: b.uid(Pod, "w1")}}
		})
	}
	run(t, []example{
		{name: "for nothing", want: []string{"I18"}, write: deletes(func(*builder) {})},
		{name: "by the user", write: deletes(func(b *builder) { b.log.Deletions = []Exemption{{Pod: "w1"}} })},
		{name: "by the node controller", write: deletes(func(b *builder) {
			b.pod("w1", func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
			})
		})},
		{name: "as the size shrinks", write: deletes(func(b *builder) {
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 1 })
		})},
		{name: "as the set goes", write: deletes(func(b *builder) { b.going(Set, "job") })},
		{name: "as the clique goes with the replica", write: deletes(func(b *builder) {
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Spec.Replicas = 0 })
			b.going(Clique, "job-0-worker")
		})},
		{name: "as the clique goes for nothing", want: []string{"I18"}, write: deletes(func(b *builder) { b.going(Clique, "job-0-worker") })},
		{name: "a failed pod that is recorded", write: deletes(func(b *builder) {
			b.podPhase("w1", corev1.PodFailed)
			recordFailure(b)
		})},
		{name: "a failed pod that is recorded too late", want: []string{"I2"}, write: func(b *builder) {
			b.inference()
			b.podPhase("w1", corev1.PodFailed)
			b.going(Pod, "w1")
			recordFailure(b)
		}},
		{name: "a gap hides the reason", write: deletes(func(b *builder) {
			b.log.Gaps = []Gap{{Kind: Clique, After: 102, To: 110}}
		})},
		{name: "a finished pod of a job that fails", want: []string{"I18"}, write: func(b *builder) {
			b.training()
			b.podPhase("w1", corev1.PodSucceeded)
			b.breach("job-0-worker")
			b.fail(grovev1alpha1.ReasonMaxRestartsExceeded)
			b.going(Pod, "w1")
		}},
	})
}

func TestI13(t *testing.T) {
	t.Parallel()
	run(t, []example{
		{name: "budgets and delays may change", write: func(b *builder) {
			b.training()
			b.set(func(s *grovev1alpha1.PodCliqueSet) {
				s.Spec.TrainingSpec = nil
				s.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Minute}
			})
			b.restart(0)
		}},
		{name: "the template changes", want: []string{"I13"}, write: func(b *builder) {
			b.training()
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Spec.Template.Cliques[0].Spec.PodSpec.HostNetwork = true })
		}},
		{name: "a clique is scaled", want: []string{"I13"}, write: func(b *builder) {
			b.training()
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 3 })
		}},
		{name: "a clique is to be scaled", want: []string{"I13", "I13"}, write: func(b *builder) {
			b.training()
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.AutoScalingConfig = &grovev1alpha1.AutoScalingConfig{} })
		}},
		{name: "an inference clique is scaled", write: func(b *builder) {
			b.inference()
			b.clique("job-0-worker", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 3 })
		}},
	})
}

func TestI10(t *testing.T) {
	t.Parallel()
	deleted := func(b *builder) {
		b.log.LeakAfter = 30 * time.Second
		b.inference()
		b.going(Set, "job")
		b.going(Clique, "job-0-worker")
		b.going(Pod, "w0")
		b.gone(Pod, "w0")
		b.going(Pod, "w1")
	}
	run(t, []example{
		{name: "nothing is left", write: func(b *builder) {
			deleted(b)
			b.gone(Pod, "w1")
			b.gone(Clique, "job-0-worker")
			b.gone(Set, "job")
			b.wait(time.Minute)
		}},
		{name: "a pod is left", want: []string{"I10", "I10"}, write: func(b *builder) {
			deleted(b)
			b.gone(Clique, "job-0-worker")
			b.gone(Set, "job")
			b.wait(time.Minute)
		}},
		{name: "it has not had its time", write: func(b *builder) {
			deleted(b)
			b.wait(10 * time.Second)
		}},
		{name: "a finalizer stays", want: []string{"I10", "I10"}, write: func(b *builder) {
			deleted(b)
			b.gone(Pod, "w1")
			b.wait(time.Minute)
		}},
	})
}
