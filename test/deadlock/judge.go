package deadlock

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	schedulerv1alpha1 "github.com/copse-dev/copse/pkg/apis/scheduler/v1alpha1"
	"github.com/copse-dev/copse/pkg/labels"
)

// The ends that a set may come to.
const (
	endRefused   = "refused"
	endStarted   = "started"
	endSucceeded = "succeeded"
	endFailed    = "failed, and says why"
	endWaiting   = "waits for room, and says so"
)

// judge says what a set has come to when nothing happens any more, or what is wrong with it.
func (l *life) judge() (string, error) {
	missing := l.missing()
	switch status := &l.set.Status; {
	case status.Phase == grovev1alpha1.PodCliqueSetFailed:
		failed := meta.FindStatusCondition(status.Conditions, grovev1alpha1.ConditionTypeFailed)
		if failed == nil || failed.Reason == "" || failed.Message == "" {
			return "", fmt.Errorf("the set has failed and does not say why: %+v", failed)
		}
		if l.nodes.lost == 0 && !l.record.expired && l.set.Spec.TrainingSpec.MaxRuntime == nil {
			return "", fmt.Errorf("the set has failed though nothing has gone wrong: %s", failed.Message)
		}
		return endFailed, nil
	case status.Phase == grovev1alpha1.PodCliqueSetSucceeded:
		for replica := range l.set.Spec.Replicas {
			for _, u := range l.unitsOf(replica) {
				if n := l.record.succeeded[l.current(u)]; n < u.clique.Replicas {
					return "", fmt.Errorf("the set has succeeded with %d of %d pods of %s", n, u.clique.Replicas, u.name)
				}
			}
		}
		return endSucceeded, nil
	case len(missing) == 0:
		return endStarted, l.judgeStarted()
	}
	if l.nodes.capacity >= l.countPods() && l.lot.TooBig == "" {
		return "", fmt.Errorf("%s waits for ever though there is room", missing[0])
	}
	waiting := map[int32]bool{}
	for _, pod := range missing {
		if err := l.justify(pod); err != nil {
			return "", err
		}
		waiting[pod.unit.replica] = true
	}
	for replica := range waiting {
		if err := l.judgeTold(replica); err != nil {
			return "", err
		}
	}
	return endWaiting, nil
}

// missingPod is a pod whose containers have not started in the current attempt.
type missingPod struct {
	unit  unit
	index int32
}

func (m missingPod) String() string { return fmt.Sprintf("pod %d of %s", m.index, m.unit.name) }

func (l *life) missing() []missingPod {
	var out []missingPod
	for replica := range l.set.Spec.Replicas {
		for _, u := range l.unitsOf(replica) {
			for index := range u.clique.Replicas {
				if !l.hasStarted(podOf{l.current(u), index}) {
					out = append(out, missingPod{u, index})
				}
			}
		}
	}
	return out
}

// hasStarted says that the containers of a pod that is there have started.
func (l *life) hasStarted(of podOf) bool {
	return slices.ContainsFunc(l.nodes.pods, func(p *podOnNode) bool {
		return p.of == of && p.DeletionTimestamp == nil && len(p.Status.ContainerStatuses) > 0
	})
}

// countPods is how many pods the set should have by now.
func (l *life) countPods() int {
	pods := 0
	for replica := range l.set.Spec.Replicas {
		for _, u := range l.unitsOf(replica) {
			pods += int(u.clique.Replicas)
		}
	}
	return pods
}

// judgeStarted holds what a set says of which every pod has started.
func (l *life) judgeStarted() error {
	status := &l.set.Status
	if l.isTraining() {
		return fmt.Errorf("every pod has started, and the set never ends: phase %s", status.Phase)
	}
	if status.AvailableReplicas != l.set.Spec.Replicas || status.AvailablePods != status.Pods || int(status.Pods) != l.countPods() {
		return fmt.Errorf("every pod is ready, and the set says %d of %d replicas, %d of %d pods", status.AvailableReplicas, l.set.Spec.Replicas, status.AvailablePods, status.Pods)
	}
	for _, replica := range status.ReplicaStatuses {
		if replica.WaitingFor != nil {
			return fmt.Errorf("every pod has started, and replica %d waits for %+v", replica.Index, *replica.WaitingFor)
		}
	}
	if isStagedSet(l.set) && !meta.IsStatusConditionTrue(status.Conditions, grovev1alpha1.ConditionTypeStartupPolicyCompleted) {
		return fmt.Errorf("every pod has started, and the order is not said to be completed")
	}
	return nil
}

// justify says why a pod may wait, or fails: nobody may be held whose turn it is.
func (l *life) justify(m missingPod) error {
	u := m.unit
	have := l.replicas[u.replica]
	if slices.ContainsFunc(l.earlier(u, false), func(other unit) bool { return !l.isThere(other) }) {
		return nil
	}
	clique := have.cliques[u.name]
	if clique == nil {
		return fmt.Errorf("PodClique %s is never made", u.name)
	}
	i := slices.IndexFunc(l.nodes.pods, func(p *podOnNode) bool { return p.of == podOf{l.current(u), m.index} })
	podGang := have.gangs[clique.Labels[labels.PodGang]]
	switch {
	case podGang == nil:
		return fmt.Errorf("the gang of %s is never made", u.name)
	case i < 0 && !l.isPlaced(have, clique.Labels[labels.BasePodGang]):
		return nil
	case i < 0 && m.index >= u.minimum() && !l.nodes.placed[groupOf(podGang)]:
		return nil
	case i < 0 && m.index >= u.minimum() && !l.isTraining() && !clique.Status.WasAvailable && clique.Status.ScheduledReplicas < u.minimum():
		// Members without a node go first, and are justified themselves.
		return nil
	case i < 0:
		return fmt.Errorf("%s is never made", m)
	}
	p := l.nodes.pods[i]
	switch {
	case p.Spec.NodeName == "" && p.group != "" && !l.nodes.placed[p.group]:
		if members, complete := l.nodes.members(p.group); complete && l.nodes.fit(members...) {
			return fmt.Errorf("gang %s fits and is not placed", p.group)
		}
		return nil
	case p.Spec.NodeName == "" && !l.nodes.fit(p):
		return nil
	case p.waits():
		return l.justifyGate(u, p)
	}
	return fmt.Errorf("%s does not start though nothing holds it", m)
}

// isPlaced says that a gang was placed in its attempt; the name of none is.
func (l *life) isPlaced(have children, name string) bool {
	return name == "" || (have.gangs[name] != nil && l.nodes.placed[groupOf(have.gangs[name])])
}

// justifyGate says what a pod waits for in its waiter.
func (l *life) justifyGate(u unit, p *podOnNode) error {
	held := l.companions(u)
	if len(held) == 0 {
		held = []unit{u}
	}
	for _, other := range held {
		if l.nodes.count(l.current(other)).atBarrier < other.clique.Replicas && other.isTarget(l.set) {
			return nil
		}
		for _, parent := range l.parents(other) {
			if l.nodes.count(l.current(parent)).available < parent.minimum() {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is held for ever though all that it waits for is there", p.Name)
}

// judgeTold holds that a person sees why a replica waits: in the set when the replica is
// not available, and in a gang or a pod that finds no room.
func (l *life) judgeTold(replica int32) error {
	have := l.replicas[replica]
	var waiting *grovev1alpha1.WaitingFor
	for _, status := range l.set.Status.ReplicaStatuses {
		if status.Index == replica {
			waiting = status.WaitingFor
		}
	}
	if waiting == nil && !l.isAvailable(replica) {
		return fmt.Errorf("replica %d waits in silence", replica)
	}
	if waiting != nil && (waiting.Status == "" || waiting.Have >= waiting.Want) {
		return fmt.Errorf("replica %d says that it waits for %+v", replica, *waiting)
	}
	for _, podGang := range have.gangs {
		scheduled := meta.FindStatusCondition(podGang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled)
		if scheduled == nil || scheduled.Reason != schedulerv1alpha1.ReasonNotEnoughResources || scheduled.Message == "" {
			continue
		}
		if isBase := podGang.Labels[labels.BasePodGang] == ""; isBase && (waiting == nil || waiting.Status != scheduled.Reason || waiting.Message == "") {
			return fmt.Errorf("gang %s has no room, and replica %d says that it waits for %+v", podGang.Name, replica, waiting)
		}
		return nil
	}
	for _, clique := range have.cliques {
		if clique.Status.ScheduledReplicas < clique.Status.Replicas {
			return nil
		}
	}
	return fmt.Errorf("replica %d waits, and neither a gang nor a clique says that there is no room", replica)
}

// isAvailable says that a replica has what it needs, by its pods.
func (l *life) isAvailable(replica int32) bool {
	broken := map[string]map[int32]bool{}
	for _, u := range l.unitsOf(replica) {
		if l.nodes.count(l.current(u)).available >= u.minimum() {
			continue
		}
		if u.group == nil {
			return false
		}
		if broken[u.group.Name] == nil {
			broken[u.group.Name] = map[int32]bool{}
		}
		broken[u.group.Name][u.copyOf] = true
	}
	for i := range l.set.Spec.Template.PodCliqueScalingGroups {
		group := &l.set.Spec.Template.PodCliqueScalingGroups[i]
		if l.size(replica, group)-int32(len(broken[group.Name])) < ptr.Deref(group.MinAvailable, 1) {
			return false
		}
	}
	return true
}

// describe tells of a set that waits for ever.
func (l *life) describe() string {
	var out strings.Builder
	manifest, err := yaml.Marshal(l.lot.Set)
	fmt.Fprintf(&out, "seed %d, room for %d of %d pods, %d were lost, after %s\n%s%v\n", l.lot.Seed, l.nodes.capacity, l.countPods(), l.nodes.lost, l.now.Sub(l.began), manifest, err)
	status, err := yaml.Marshal(l.set.Status)
	fmt.Fprintf(&out, "status:\n%s%v\n", status, err)
	for _, have := range l.replicas {
		for _, podGang := range have.gangs {
			c := meta.FindStatusCondition(podGang.Status.Conditions, schedulerv1alpha1.PodGangConditionScheduled)
			fmt.Fprintf(&out, "gang %s attempt %s: %+v\n", podGang.Name, podGang.Labels[labels.RestartAttempt], c)
		}
		for _, clique := range have.cliques {
			s := &clique.Status
			fmt.Fprintf(&out, "clique %s attempt %d (%d): %d pods, %d scheduled, %d at the barrier, %d ready, completed %s, broken %v\n", clique.Name, clique.Spec.Attempt, s.ObservedAttempt,
				s.Replicas, s.ScheduledReplicas, s.StartedReplicas, s.ReadyReplicas, s.CompletedIndexes, s.FailedIndexes)
		}
		for _, gate := range have.gates {
			for _, entry := range gate.Status.Cliques {
				fmt.Fprintf(&out, "gate %s attempt %d: open %t expired %t since %v, first %v\n", entry.Name, entry.Attempt, entry.Open, entry.Expired, entry.Since, entry.FirstStarted)
			}
		}
	}
	for _, p := range l.nodes.pods {
		fmt.Fprintf(&out, "pod %s: node %q phase %s ready %t waits %t deleted %v\n", p.Name, p.Spec.NodeName, p.Status.Phase, p.isReady(), p.waits(), p.DeletionTimestamp)
	}
	return out.String()
}
