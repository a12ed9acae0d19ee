package history

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	grovev1alpha1 "github.com/copse-dev/copse/pkg/apis/grove/v1alpha1"
	"github.com/copse-dev/copse/pkg/gang"
	"github.com/copse-dev/copse/pkg/labels"
	"github.com/copse-dev/copse/pkg/naming"
	"github.com/copse-dev/copse/pkg/podspec"
)

// checkGates holds I12 at start gates (D20, D21): no container of a pod that waits starts
// before the gate was open for its clique in its attempt; a gate that is open stays open for
// the attempt, as does one that has expired; and none opens before what its clique waits for
// was there, as the pods themselves tell (see check_gates_pods.go).
func checkGates(w *world, f *Findings) {
	for _, pod := range w.pods {
		checkReleased(w, f, pod)
	}
	for _, gate := range w.of(Gate) {
		var before *Revision
		for _, rev := range gate.revs {
			checkGateOpens(w, f, gate, before, rev)
			if before != nil && !w.gapBetween(Gate, before.RV, rev.RV) {
				checkGateStays(w, f, gate, before, rev)
			}
			before = rev
		}
	}
	for _, file := range w.of(File) {
		var before *Revision
		for _, rev := range file.revs {
			checkFile(w, f, file, before, rev)
			before = rev
		}
	}
}

// waiterOf is the place of the init container in which a pod waits, -1 when there is none.
func waiterOf(pod *corev1.Pod) int {
	return slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == naming.BarrierContainer || c.Name == naming.OrderContainer
	})
}

// hasPassed says that the container at a place among the init containers has let its pod
// pass, or that one behind it has started. One of which the kubelet does not know what became
// of it has not, as far as can be told.
func hasPassed(pod *corev1.Pod, waiter int) bool {
	behind := slices.Clone(pod.Status.ContainerStatuses)
	for _, status := range pod.Status.InitContainerStatuses {
		if end := status.State.Terminated; status.Name == pod.Spec.InitContainers[waiter].Name && end != nil && end.ExitCode == 0 {
			return true
		}
	}
	for _, container := range pod.Spec.InitContainers[waiter+1:] {
		for _, status := range pod.Status.InitContainerStatuses {
			if status.Name == container.Name {
				behind = append(behind, status)
			}
		}
	}
	const unknown = "ContainerStatusUnknown"
	return slices.ContainsFunc(behind, func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil || s.RestartCount > 0 || (s.State.Terminated != nil && s.State.Terminated.Reason != unknown)
	})
}

// checkReleased looks whether a pod that has to wait has waited for its gate.
func checkReleased(w *world, f *Findings, pod *podStory) {
	set, created := pod.clique.set, podOf(pod.revs[0])
	if set == nil {
		return
	}
	pcs, waiter := setOf(set.revs[0]), waiterOf(created)
	template := gang.TemplateOf(pcs, cliqueOf(pod.clique.revs[0]))
	if template == nil || (!isTarget(pcs, template.Name) && len(mustBeThere(pcs, template.Name)) == 0) {
		return
	}
	if waiter < 0 {
		f.add("I12", pod.revs[0], pod.clique.revs[:1], "pod %s has no container that waits for its gate", pod.name)
		return
	}
	started := pod.first(func(r *Revision) bool { return hasPassed(podOf(r), waiter) })
	if started == nil {
		return
	}
	related := []*Revision{pod.revs[0]}
	for _, gate := range w.gatesOf(set, pod.clique.replica) {
		opened := firstOpen(gate, pod.clique.name, pod.attempt)
		if opened != nil && !w.certainlyAfter(opened, started) {
			if was := w.cliqueBefore(pod.clique.name, opened); was != nil && was != pod.clique && wasScaledAway(pod.clique, opened) {
				checkOpenForAnother(w, f, pod, template, started, opened)
			}
			return
		}
		related = append(related, gate.revs...)
	}
	if w.hasGap(Gate) {
		f.skip("I12", "revisions of StartGates are missing, so whether pod %s started too early is not known", pod.name)
		return
	}
	f.add("I12", started, related, "a container of pod %s starts before the gate of %s is open in attempt %d", pod.name, pod.clique.name, pod.attempt)
}

// checkOpenForAnother looks at a pod that passed a gate that was opened for an earlier
// PodClique of the same name: its own has to have come as far.
func checkOpenForAnother(w *world, f *Findings, pod *podStory, template *grovev1alpha1.PodCliqueTemplateSpec, started, opened *Revision) {
	missing := w.missingAt(waiting{pod.clique.set, pod.clique.replica, pod.clique.group, pod.clique.copy, template.Name, pod.attempt}, started)
	switch {
	case missing == "":
	case w.hasGap(Pod) || w.hasGap(Clique):
		f.skip("I12", "revisions are missing, so whether pod %s started too early is not known", pod.name)
	default:
		f.add("I12", started, []*Revision{opened, pod.clique.revs[0]}, "a container of pod %s starts by what was opened for an earlier PodClique %s: %s", pod.name, pod.clique.name, missing)
	}
}

// wasScaledAway says that the scaling group of a PodClique had no room for it at some time
// between a revision and the PodClique's creation: it is of another gang then. One that was
// deleted otherwise, and made again, replaces the pods of the same gang.
func wasScaledAway(clique *cliqueStory, since *Revision) bool {
	return clique.group != nil && slices.ContainsFunc(clique.group.revs, func(r *Revision) bool {
		return groupOf(r).Spec.Replicas <= clique.copy && compareRevisions(since, clique.group.next(r)) < 0 && compareRevisions(r, clique.revs[0]) < 0
	})
}

// gatesOf are the StartGates that there were of a replica of a set.
func (w *world) gatesOf(set *story, replica int32) []*story {
	return slices.DeleteFunc(w.of(Gate), func(gate *story) bool {
		return gate.name != naming.Replica(set.name, replica) || !isOwnedBy(gate, set)
	})
}

func isOwnedBy(s, owner *story) bool {
	return slices.ContainsFunc(s.revs[0].Object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.uid })
}

// cliqueBefore is the last PodClique of a name that was there before a revision of its server.
func (w *world) cliqueBefore(name string, at *Revision) *cliqueStory {
	var last *cliqueStory
	for _, clique := range w.cliques {
		if clique.name == name && compareRevisions(clique.revs[0], at) < 0 {
			last = clique
		}
	}
	return last
}

// entryOf is what a revision of a gate says of a PodClique; nil for nothing.
func entryOf(r *Revision, clique string) *grovev1alpha1.StartGateClique {
	if r == nil {
		return nil
	}
	entries := gateOf(r).Status.Cliques
	if i := slices.IndexFunc(entries, func(e grovev1alpha1.StartGateClique) bool { return e.Name == clique }); i >= 0 {
		return &entries[i]
	}
	return nil
}

func isOpenIn(r *Revision, clique string, attempt int32) bool {
	entry := entryOf(r, clique)
	return entry != nil && entry.Open && entry.Attempt == attempt
}

// firstOpen is the revision with which a gate was opened for a PodClique in an attempt, the
// first time; nil for never.
func firstOpen(gate *story, clique string, attempt int32) *Revision {
	return gate.first(func(r *Revision) bool { return isOpenIn(r, clique, attempt) })
}

// checkGateOpens looks whether what was opened with a revision might be.
func checkGateOpens(w *world, f *Findings, gate *story, before, after *Revision) {
	for _, entry := range gateOf(after).Status.Cliques {
		if entry.Open && entry.Expired {
			f.add("I12", after, nil, "the gate of %s is both open and expired in attempt %d", entry.Name, entry.Attempt)
		}
		if !entry.Open || isOpenIn(before, entry.Name, entry.Attempt) {
			continue
		}
		at, known := w.waitingOf(gate, &entry)
		if !known {
			f.add("I12", after, nil, "a gate is opened for %s, which waits for nothing", entry.Name)
			continue
		}
		switch missing := w.missingAt(at, after); {
		case missing == "":
		case w.hasGap(Pod) || w.hasGap(Clique) || w.hasGap(Group):
			f.skip("I12", "revisions are missing, so whether the gate of %s was opened too early is not known", entry.Name)
		default:
			f.add("I12", after, w.proofOf(at.set, at.replica), "the gate of %s is opened in attempt %d, too early: %s", entry.Name, entry.Attempt, missing)
		}
	}
}

// proofOf are the last revisions of the pods of a replica.
func (w *world) proofOf(set *story, replica int32) []*Revision {
	var out []*Revision
	for _, pod := range w.pods {
		if pod.clique.set == set && pod.clique.replica == replica {
			out = append(out, pod.revs[len(pod.revs)-1])
		}
	}
	return out
}

// checkGateStays looks whether what was opened, or has expired, stays so for its attempt.
func checkGateStays(w *world, f *Findings, gate *story, before, after *Revision) {
	wrong := func(entry grovev1alpha1.StartGateClique, format string, args ...any) {
		f.add("I12", after, []*Revision{before}, "the gate of %s in attempt %d %s", entry.Name, entry.Attempt, fmt.Sprintf(format, args...))
	}
	for _, was := range gateOf(before).Status.Cliques {
		is := entryOf(after, was.Name)
		switch {
		case is == nil:
			// A PodClique that goes, as that of a copy which is scaled away, takes its entry along.
			clique := w.cliqueBefore(was.Name, after)
			if !was.Open && !was.Expired && clique != nil && w.possibly(clique.story, after, isIdle) {
				// Its time is that of a gang of nobody.
				continue
			}
			if at, known := w.waitingOf(gate, &was); !known || !w.mayBeBeyond(at.group, at.copy, after) && (clique == nil || !w.possibly(clique.story, after, isGoing)) {
				wrong(was, "is forgotten")
			}
		case is.Attempt < was.Attempt:
			wrong(was, "becomes that of attempt %d", is.Attempt)
		case is.Attempt > was.Attempt:
		case was.Open && !is.Open:
			wrong(was, "is shut again")
		case was.Expired && !is.Expired:
			wrong(was, "has expired, and now has not")
		case (was.Open || was.Expired) && !was.Since.Equal(is.Since):
			wrong(was, "was decided at %v, and now at %v", was.Since, is.Since)
		}
	}
}

// checkFile looks whether the ConfigMap of a gate says what the gate has said, and goes on to
// say it as long as the gate does: it is written after the gate.
func checkFile(w *world, f *Findings, file *story, before, after *Revision) {
	replica, ok := labels.ParseIndex(fileOf(after).Labels[labels.ReplicaIndex])
	set := w.setOwning(file)
	if !ok || set == nil || after.Deleted {
		return
	}
	gates := w.gatesOf(set, replica)
	for line := range strings.Lines(fileOf(after).Data[podspec.GateFile]) {
		if !slices.ContainsFunc(gates, func(gate *story) bool { return w.possibly(gate, after, saysLine(line)) }) {
			f.addUnlessGap(w, Gate, after, gates, "ConfigMap %s says %q, its gate has not", file.name, line)
		}
	}
	if before == nil {
		return
	}
	for line := range strings.Lines(fileOf(before).Data[podspec.GateFile]) {
		if !strings.Contains(fileOf(after).Data[podspec.GateFile], line) && slices.ContainsFunc(gates, func(gate *story) bool { return w.allAlong(gate, before, after, saysLine(line)) }) {
			f.addUnlessGap(w, Gate, after, gates, "ConfigMap %s says %q no more, its gate does", file.name, line)
		}
	}
}

// saysLine says that a revision of a gate is open for what a line of the file is about.
func saysLine(line string) func(*Revision) bool {
	name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
	attempt, ok := labels.ParseIndex(number)
	return func(r *Revision) bool { return ok && !r.Deleted && isOpenIn(r, name, attempt) }
}

// addUnlessGap adds a violation of I12, or says that it was not judged since revisions of a
// kind are missing.
func (f *Findings) addUnlessGap(w *world, kind Kind, at *Revision, related []*story, format string, args ...any) {
	if w.hasGap(kind) {
		f.skip("I12", "revisions of %ss are missing, so this is not sure: %s", kind, fmt.Sprintf(format, args...))
		return
	}
	var revs []*Revision
	for _, s := range related {
		revs = append(revs, s.revs...)
	}
	f.add("I12", at, revs, format, args...)
}

// setOwning is the set that owns an object; nil for none.
func (w *world) setOwning(s *story) *story {
	for _, ref := range s.revs[0].Object.GetOwnerReferences() {
		if owner := w.stories[ref.UID]; owner != nil && owner.kind == Set {
			return owner
		}
	}
	return nil
}
