package deadlock

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/podspec"
	"github.com/copse-dev/copse/test/lots"
)

// enough is room for any set.
const enough = 1000

// nodes are all nodes together, with room for so many pods, their kubelets and the
// scheduler, which places the members of a gang together or not at all.
type nodes struct {
	life     *life
	capacity int
	pods     []*podOnNode
	// placed are the gangs, each in an attempt, that were placed once.
	placed map[string]bool
	// answers are what the scheduler has said of them.
	answers map[string]string
	uids    int
	// lossy says that some pods fail, are lost or turn bad, and slow that some take long to
	// start; both in early attempts alone, so that a set may come to its end.
	lossy, slow bool
	lost        int
}

// podOnNode is a pod and what will become of it.
type podOnNode struct {
	*corev1.Pod
	owner types.UID
	// of says which pod it is, and seen is what the controllers see of it.
	of   podOf
	seen gang.Pod
	// group is the gang that it is placed with, in an attempt; empty for one of its own.
	group string
	// since is when it came to where it is.
	since time.Time
	// start is how long it takes until the pod starts, and works how long its work takes.
	start, works time.Duration
	// fails says that its work fails, vanishes that it is deleted in its work, and sickens
	// that it is not Ready any more from then on; sick is when it is so.
	fails, vanishes, sickens, sick bool
}

func newNodes(l *life) nodes {
	n := nodes{life: l, placed: map[string]bool{}, answers: map[string]string{}, capacity: enough, lossy: l.lots.IntN(2) == 0, slow: l.lots.IntN(2) == 0}
	if l.lots.IntN(3) == 0 {
		n.capacity = l.lots.IntN(lots.CountPods(l.set))
	}
	return n
}

// groupOf is the key of a gang in its attempt.
func groupOf(podGang *schedulerv1alpha1.PodGang) string {
	return podGang.Name + "/" + podGang.Labels[labels.RestartAttempt]
}

// create makes a pod as its controller does, with its waiter.
func (n *nodes) create(clique *grovev1alpha1.PodClique, index int32, podGang *schedulerv1alpha1.PodGang) {
	n.life.record.checkCreation(n.life, clique)
	around := podspec.ContextOf(n.life.set, clique, "cluster.local")
	around.Waiter = podspec.Waiter{Image: "example.com/start-gate"}
	pod := podspec.Render(clique, index, around)
	if slices.ContainsFunc(n.pods, func(p *podOnNode) bool { return p.Name == pod.Name }) {
		// The name is taken until the old one is gone.
		return
	}
	n.uids++
	pod.UID = types.UID(fmt.Sprintf("pod-%d", n.uids))
	pod.Status.Phase = corev1.PodPending
	p := &podOnNode{Pod: pod, owner: clique.UID, since: n.life.now, of: podOf{inAttempt{clique.Name, clique.Spec.Attempt}, index}}
	if index < min(ptr.Deref(clique.Spec.MinAvailable, clique.Spec.Replicas), clique.Spec.Replicas) {
		p.group = groupOf(podGang)
	}
	n.drawFate(p, clique)
	n.pods = append(n.pods, p)
	n.changed(p)
}

// drawFate says what will become of a pod.
func (n *nodes) drawFate(p *podOnNode, clique *grovev1alpha1.PodClique) {
	draw, training := n.life.lots, n.life.isTraining()
	p.start, p.works = time.Duration(draw.IntN(3))*time.Second, time.Duration(1+draw.IntN(30))*time.Second
	oneIn := 8
	if clique.Labels[labels.ScalingGroup] != "" {
		// What becomes of a copy is the longer story.
		oneIn = 3
	}
	switch early := clique.Spec.Attempt < 2; {
	case early && n.slow && draw.IntN(6) == 0:
		p.start += time.Duration(draw.IntN(120)) * time.Second
	case early && n.lossy && n.lost < 3 && draw.IntN(oneIn) == 0:
		n.lost++
		// Elsewhere a container that fails only starts again.
		p.fails = draw.IntN(2) == 0 && training && p.Spec.RestartPolicy == corev1.RestartPolicyNever
		// One that is bad is bad for ever where nothing follows from it.
		p.sickens = !training && n.life.set.Spec.Template.TerminationDelay != nil && isWhole(clique)
		p.vanishes = !p.fails && !p.sickens
	}
}

// isWhole says that a clique needs all of its pods.
func isWhole(clique *grovev1alpha1.PodClique) bool {
	return ptr.Deref(clique.Spec.MinAvailable, clique.Spec.Replicas) == clique.Spec.Replicas
}

// wasAvailable says that the clique of a pod is known to have been available: what never
// was is not terminated when it is not.
func (n *nodes) wasAvailable(p *podOnNode) bool {
	clique := n.life.cliques()[p.of.clique]
	return clique.Status.WasAvailable && clique.Status.ObservedAttempt == p.of.attempt
}

// changed tells those who watch a pod.
func (n *nodes) changed(p *podOnNode) {
	n.life.writes++
	p.seen = gang.NewPod(n.life.cliques()[p.of.clique], p.Pod)
	n.life.record.remember(n.life, p)
	n.life.enqueue(pass{"clique", p.Labels[labels.PodClique]})
	if p.Spec.NodeName == "" || p.hasEnded() {
		n.life.enqueue(pass{"scheduler", ""})
	}
	if p.hasEnded() {
		n.life.enqueue(pass{"set", ""})
	}
}

// remove asks for the deletion of a pod.
func (n *nodes) remove(uid types.UID) {
	for _, p := range n.pods {
		if p.UID != uid || p.DeletionTimestamp != nil {
			continue
		}
		if p.Spec.NodeName == "" || p.hasEnded() {
			n.drop(p)
			return
		}
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(n.life.now.Add(30*time.Second))), ptr.To[int64](30)
		p.since = n.life.now
		n.changed(p)
	}
}

func (n *nodes) drop(gone *podOnNode) {
	n.pods = slices.DeleteFunc(n.pods, func(p *podOnNode) bool { return p == gone })
	n.life.enqueue(pass{"scheduler", ""})
	n.life.enqueue(pass{"set", ""})
	n.changed(gone)
}

// room is how many more pods fit.
func (n *nodes) room() int {
	room := n.capacity
	for _, p := range n.pods {
		if p.Spec.NodeName != "" && !p.hasEnded() {
			room--
		}
	}
	return room
}

// fit says that pods fit at once.
func (n *nodes) fit(pods ...*podOnNode) bool {
	return len(pods) <= n.room() && !slices.ContainsFunc(pods, func(p *podOnNode) bool { return lots.FitsNowhere(&p.Spec) })
}

// schedule places what fits, in any order.
func (n *nodes) schedule() {
	for _, i := range n.life.lots.Perm(len(n.pods)) {
		switch p := n.pods[i]; {
		case p.Spec.NodeName != "":
		case p.group != "" && !n.placed[p.group]:
			members, complete := n.members(p.group)
			if complete && n.fit(members...) {
				n.placed[p.group] = true
				for _, member := range members {
					n.bind(member)
				}
			}
			n.answer(p.group, members, complete)
		case n.fit(p):
			n.bind(p)
		}
	}
}

// members are the pods of a gang in an attempt, and whether all are there.
func (n *nodes) members(group string) (members []*podOnNode, complete bool) {
	for _, p := range n.pods {
		if p.group == group && p.Spec.NodeName == "" {
			members = append(members, p)
		}
	}
	need := int32(0)
	for _, podGang := range n.life.gangs() {
		if groupOf(podGang) == group {
			for _, pods := range podGang.Spec.PodGroups {
				need += pods.MinReplicas
			}
		}
	}
	return members, need > 0 && len(members) >= int(need)
}

// answer tells what the scheduler makes of a gang, if that is news.
func (n *nodes) answer(group string, members []*podOnNode, complete bool) {
	answer := ""
	switch {
	case n.placed[group]:
		answer = schedulerv1alpha1.ReasonPodGangScheduled
	case complete:
		answer = fmt.Sprintf("%d pods do not fit", len(members))
	}
	if answer != n.answers[group] {
		n.answers[group] = answer
		name, _, _ := strings.Cut(group, "/")
		n.life.enqueue(pass{"gang", name})
	}
}

// observe is what the scheduler has said of a gang.
func (n *nodes) observe(podGang *schedulerv1alpha1.PodGang) (scheduled bool, why []schedulerv1alpha1.UnschedulableExplanation) {
	switch answer := n.answers[groupOf(podGang)]; answer {
	case "":
		return false, nil
	case schedulerv1alpha1.ReasonPodGangScheduled:
		return true, nil
	default:
		return false, []schedulerv1alpha1.UnschedulableExplanation{{Reason: schedulerv1alpha1.ReasonNotEnoughResources, Message: answer}}
	}
}

func (n *nodes) bind(p *podOnNode) {
	p.Spec.NodeName = "node"
	p.since = n.life.now
	n.changed(p)
}
