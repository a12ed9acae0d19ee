package history

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/naming"
)

// gated makes a training set of a leader and two workers, changed as a test needs it.
func (b *builder) gated(change func(*grovev1alpha1.PodCliqueSet)) {
	b.set(func(s *grovev1alpha1.PodCliqueSet) {
		s.Spec.WorkloadType = grovev1alpha1.WorkloadTypeTraining
		s.Spec.Replicas = 1
		s.Spec.TrainingSpec = &grovev1alpha1.TrainingSpec{MaxRestarts: ptr.To[int32](2)}
		s.Spec.Template.TerminationDelay = &metav1.Duration{}
		s.Spec.Template.Cliques = []grovev1alpha1.PodCliqueTemplateSpec{
			{Name: "leader", Spec: grovev1alpha1.PodCliqueSpec{Replicas: 1}}, {Name: "worker", Spec: grovev1alpha1.PodCliqueSpec{Replicas: 2}},
		}
		change(s)
	})
	b.clique("job-0-leader", func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 1 })
	b.clique("job-0-worker", func(*grovev1alpha1.PodClique) {})
	b.gate(func(*grovev1alpha1.StartGate) {})
}

func inOrder(s *grovev1alpha1.PodCliqueSet) {
	s.Spec.Template.StartupType = ptr.To(grovev1alpha1.CliqueStartupTypeInOrder)
}

func withBarrier(s *grovev1alpha1.PodCliqueSet) {
	s.Spec.GroupSchedulingConfig = &grovev1alpha1.GroupSchedulingConfig{}
}

// waits makes a pod pending, with a container that waits.
func waits(container string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "fetch"}, {Name: container}}
		p.Status.Phase = corev1.PodPending
	}
}

// comes has the container run in which a pod waits.
func (b *builder) comes(pods ...string) {
	for _, name := range pods {
		b.pod(name, func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{
				{Name: "fetch", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
				{Name: p.Spec.InitContainers[1].Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			}
		})
	}
}

// starts has the own container of pods run.
func (b *builder) starts(pods ...string) {
	for _, name := range pods {
		b.pod(name, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		})
	}
}

func (b *builder) ready(pods ...string) {
	for _, name := range pods {
		b.pod(name, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		})
	}
}

// opens opens the gate of cliques in an attempt.
func (b *builder) opens(attempt int32, cliques ...string) {
	b.decides(grovev1alpha1.StartGateClique{Attempt: attempt, Open: true}, cliques...)
}

func (b *builder) decides(entry grovev1alpha1.StartGateClique, cliques ...string) {
	b.gate(func(g *grovev1alpha1.StartGate) {
		g.Status.Cliques = nil
		for _, name := range cliques {
			entry.Name = name
			g.Status.Cliques = append(g.Status.Cliques, entry)
		}
	})
}

// ordered has a leader that is ready and two workers that wait for it.
func (b *builder) ordered() {
	b.gated(inOrder)
	b.makePod("l", "job-0-leader", 0, 0, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })
	b.makePod("w0", "job-0-worker", 0, 0, waits(naming.OrderContainer))
	b.makePod("w1", "job-0-worker", 1, 0, waits(naming.OrderContainer))
	b.comes("w0", "w1")
}

// atBarrier has pods of an attempt that have not come to the barrier yet.
func (b *builder) atBarrier(attempt int32, l, w0, w1 string) {
	b.makePod(l, "job-0-leader", 0, attempt, waits(naming.BarrierContainer))
	b.makePod(w0, "job-0-worker", 0, attempt, waits(naming.BarrierContainer))
	b.makePod(w1, "job-0-worker", 1, attempt, waits(naming.BarrierContainer))
}

// restarted brings the set to attempt 1 after the pods of attempt 0 have ended.
func (b *builder) restarted(pods ...string) {
	for _, name := range pods {
		b.podPhase(name, corev1.PodFailed)
	}
	b.clique("job-0-leader", func(c *grovev1alpha1.PodClique) {
		c.Status.FailedIndexes = []grovev1alpha1.FailedIndex{{Count: 1, PodUID: b.uid(Pod, pods[0])}}
		c.Status.WasAvailable = true
		b.condition(&c.Status.Conditions, grovev1alpha1.ConditionTypeMinAvailableBreached, true, grovev1alpha1.ReasonInsufficientReadyPods)
	})
	b.restart(1)
	b.raise("job-0-leader", 1)
	b.raise("job-0-worker", 1)
}

const leader, worker = "job-0-leader", "job-0-worker"

func TestI12OfOrderedContainers(t *testing.T) {
	t.Parallel()
	run(t, []example{
		{name: "in order", write: func(b *builder) {
			b.ordered()
			b.ready("l")
			b.opens(0, worker)
			b.file("job-0-worker 0\n")
			b.starts("w0", "w1")
		}},
		{name: "nobody knows what came first", write: func(b *builder) {
			b.ordered()
			b.loose = true
			b.starts("w0")
			b.opens(0, worker)
			b.ready("l")
			b.fence()
		}},
		{name: "a container starts before the gate is open", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.ready("l")
			b.starts("w0")
			b.opens(0, worker)
		}},
		{name: "a container starts, and the gate never opens", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.starts("w0")
		}},
		{name: "an init container behind the one that waits starts", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.pod("w0", func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: "late", RestartCount: 1})
				p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "late"})
			})
		}},
		{name: "the container that waits lets its pod pass", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.pod("w0", func(p *corev1.Pod) {
				p.Status.InitContainerStatuses[1].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
			})
		}},
		{name: "the container that waits is stopped", write: func(b *builder) {
			b.ordered()
			b.pod("w0", func(p *corev1.Pod) {
				p.Status.InitContainerStatuses[1].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143}}
			})
		}},
		{name: "a pod that does not wait", want: []string{"I12"}, write: func(b *builder) {
			b.gated(inOrder)
			b.makePod("w0", "job-0-worker", 0, 0)
		}},
		{name: "a container ends as its pod is deleted, and has never started", write: func(b *builder) {
			b.ordered()
			b.pod("w0", func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodFailed
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}}}}
			})
		}},
		{name: "opened before the leader is ready", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.opens(0, worker)
			b.ready("l")
		}},
		{name: "opened since the leader is done", write: func(b *builder) {
			b.ordered()
			b.podPhase("l", corev1.PodSucceeded)
			b.opens(0, worker)
		}},
		{name: "opened since the leader has failed", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.podPhase("l", corev1.PodFailed)
			b.opens(0, worker)
		}},
		{name: "opened by the leader of an earlier attempt", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.ready("l")
			b.restarted("l", "w0", "w1")
			b.opens(1, worker)
		}},
		{name: "started by what was opened for an earlier attempt", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.ready("l")
			b.opens(0, worker)
			b.restarted("l", "w0", "w1")
			b.makePod("w2", "job-0-worker", 0, 1, waits(naming.OrderContainer))
			b.starts("w2")
		}},
		{name: "the file is ahead of the gate", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.ready("l")
			b.file("job-0-worker 0\n")
			b.opens(0, worker)
		}},
		{name: "the file forgets what the gate says", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.ready("l")
			b.opens(0, worker)
			b.file("job-0-worker 0\n")
			b.file("")
		}},
		{name: "the file forgets what the gate may have forgotten", write: func(b *builder) {
			b.ordered()
			b.ready("l")
			b.opens(0, worker)
			b.file("job-0-worker 0\n")
			b.loose = true
			b.file("")
			b.decides(grovev1alpha1.StartGateClique{Attempt: 1}, worker)
			b.fence()
		}},
		{name: "opened for a clique that does not wait", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.ready("l")
			b.opens(0, leader)
		}},
		{name: "a gap hides the leader", write: func(b *builder) {
			b.ordered()
			b.log.Gaps = []Gap{{Kind: Pod, After: 5003, To: 5004}}
			b.opens(0, worker)
		}},
	})
}

func TestI12OfGatesThatStay(t *testing.T) {
	t.Parallel()
	expired := grovev1alpha1.StartGateClique{Expired: true}
	begun := grovev1alpha1.StartGateClique{FirstStarted: &metav1.Time{Time: time.Unix(6, 0)}}
	since := func(seconds int64) grovev1alpha1.StartGateClique {
		return grovev1alpha1.StartGateClique{Open: true, Since: ptr.To(metav1.Unix(seconds, 0))}
	}
	opened := func(b *builder) {
		b.ordered()
		b.ready("l")
	}
	run(t, []example{
		{name: "it stays as the leader is lost", write: func(b *builder) {
			opened(b)
			b.decides(since(7), worker)
			b.podPhase("l", corev1.PodFailed)
			b.decides(since(7), worker)
			b.starts("w0")
		}},
		{name: "it is shut", want: []string{"I12"}, write: func(b *builder) {
			opened(b)
			b.opens(0, worker)
			b.decides(grovev1alpha1.StartGateClique{}, worker)
		}},
		{name: "it is forgotten", want: []string{"I12"}, write: func(b *builder) {
			opened(b)
			b.opens(0, worker)
			b.decides(grovev1alpha1.StartGateClique{})
		}},
		{name: "it goes with its PodClique", write: func(b *builder) {
			opened(b)
			b.opens(0, worker)
			b.log.Deletions = []Exemption{{Pod: worker}}
			b.going(Clique, worker)
			b.decides(grovev1alpha1.StartGateClique{})
		}},
		{name: "its time is forgotten", want: []string{"I12"}, write: func(b *builder) {
			opened(b)
			b.decides(begun, worker)
			b.decides(grovev1alpha1.StartGateClique{})
		}},
		{name: "its time goes with its last pod", write: func(b *builder) {
			b.gated(func(s *grovev1alpha1.PodCliqueSet) {
				withBarrier(s)
				s.Spec.WorkloadType, s.Spec.TrainingSpec = grovev1alpha1.WorkloadTypeInference, nil
			})
			b.decides(begun, worker)
			b.clique(worker, func(c *grovev1alpha1.PodClique) { c.Spec.Replicas = 0 })
			b.decides(grovev1alpha1.StartGateClique{})
		}},
		{name: "it is opened once more", want: []string{"I12"}, write: func(b *builder) {
			opened(b)
			b.decides(since(7), worker)
			b.decides(since(8), worker)
		}},
		{name: "it goes back to an earlier attempt", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.decides(grovev1alpha1.StartGateClique{Attempt: 1}, worker)
			b.decides(grovev1alpha1.StartGateClique{Attempt: 0}, worker)
		}},
		{name: "what has expired has not", want: []string{"I12"}, write: func(b *builder) {
			b.ordered()
			b.decides(expired, worker)
			b.decides(grovev1alpha1.StartGateClique{}, worker)
		}},
		{name: "both at once", want: []string{"I12"}, write: func(b *builder) {
			opened(b)
			b.decides(grovev1alpha1.StartGateClique{Open: true, Expired: true}, worker)
		}},
	})
}
