package history

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

func TestI19(t *testing.T) {
	t.Parallel()
	ready := func(names ...string) func(*builder) {
		return func(b *builder) {
			for _, name := range names {
				b.pod(name, func(p *corev1.Pod) {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				})
			}
		}
	}
	unready := func(name string) func(*builder) {
		return func(b *builder) { b.pod(name, func(p *corev1.Pod) { p.Status.Conditions = nil }) }
	}
	update := func(names ...string) func(*builder) {
		return func(b *builder) {
			for _, name := range names {
				b.clique(name, func(c *grovev1alpha1.PodClique) {
					c.Status.UpdateProgress = &grovev1alpha1.PodCliqueUpdateProgress{PodTemplateHash: "new", UpdateStartedAt: metav1.NewTime(start)}
				})
			}
		}
	}
	going := func(name string) func(*builder) { return func(b *builder) { b.going(Pod, name) } }
	workers := func(steps ...func(*builder)) func(*builder) {
		return func(b *builder) {
			b.inference()
			for _, step := range steps {
				step(b)
			}
		}
	}
	mayLose := func(n int32) func(*builder) {
		return func(b *builder) {
			b.set(func(s *grovev1alpha1.PodCliqueSet) {
				s.Spec.UpdateStrategy = &grovev1alpha1.PodCliqueSetUpdateStrategy{MaxUnavailable: ptr.To(n)}
			})
		}
	}
	// Two copies of one worker each.
	copies := func(steps ...func(*builder)) func(*builder) {
		return func(b *builder) {
			b.set(func(s *grovev1alpha1.PodCliqueSet) { s.Spec.Replicas = 1 })
			b.group(func(g *grovev1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 2 })
			for _, index := range []string{"0", "1"} {
				b.copy("job-0-group-"+index+"-worker", index)
				b.makePod("c"+index, "job-0-group-"+index+"-worker", 0, 0)
			}
			for _, step := range append([]func(*builder){ready("c0", "c1")}, steps...) {
				step(b)
			}
		}
	}
	afterwards := func(b *builder) { b.wait(2 * lookWindow) }
	run(t, []example{
		{name: "one after the other", write: workers(ready("w0", "w1"), update("job-0-worker"), going("w0"), func(b *builder) {
			b.gone(Pod, "w0")
			b.makePod("w0-new", "job-0-worker", 0, 0, func(p *corev1.Pod) { p.Labels[labels.PodTemplateHash] = "new" })
		}, ready("w0-new"), going("w1"))},
		{name: "before the update is recorded", want: []string{"I2"}, write: workers(ready("w0", "w1"), going("w0"), update("job-0-worker"))},
		{name: "two at once", want: []string{"I19"}, write: workers(ready("w0", "w1"), update("job-0-worker"), going("w0"), going("w1"))},
		{name: "two at once where they may be away", write: workers(mayLose(2), ready("w0", "w1"), update("job-0-worker"), going("w0"), going("w1"))},
		{name: "one that was not Ready beside another", write: workers(ready("w0"), update("job-0-worker"), going("w1"), going("w0")), want: []string{"I19"}},
		{name: "the Ready one stays", write: workers(ready("w0"), update("job-0-worker"), going("w1"))},
		{name: "another has just lost its readiness", write: workers(ready("w0", "w1"), update("job-0-worker"), unready("w1"), going("w0"))},
		{name: "another lost its readiness long before", want: []string{"I19"}, write: workers(ready("w0", "w1"), update("job-0-worker"), unready("w1"), afterwards, going("w0"))},
		{name: "a user deletes one", write: func(b *builder) {
			workers(ready("w0", "w1"), update("job-0-worker"), going("w0"), going("w1"))(b)
			b.log.Deletions = []Exemption{{Pod: "w1"}}
		}},
		{name: "a copy at a time", write: copies(update("job-0-group-0-worker"), going("c0"))},
		{name: "both copies", want: []string{"I19"}, write: copies(update("job-0-group-0-worker", "job-0-group-1-worker"), going("c0"), going("c1"))},
	})
}
